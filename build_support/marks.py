"""Find the marks in the Go code that say what breaks without a statement, and apply them.

A mark is a comment above the statement that it changes:

    //mutate:remove a temporary is kept whose elements were filled
    defer r.kept.changed(dst)

OPERATIONS lists what stands after the colon; the rest of the line is the name, which
says what breaks. `//mutate:with` below gives `replace` its text and `insert` its
statement. `//mutate:also OPERATION` has the mutation above change this statement, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("arrayiface", "backends", "gobuffer", "hetero", "internal", "pyhamr", "store")

# Code below such a folder is tested by all that the folder holds; other code by its own package.
TESTED_TOGETHER = re.compile(r"gobuffer|store|hetero|backends/(?!internal/)\w+(?=/)")

_MARK = re.compile(r"\s*//mutate:(also )?(\S*) ?(.*)")
_HIDDEN = re.compile(r"""//.*|"(?:\\.|[^"\\])*"|`[^`]*`|'(?:\\.|[^'\\])*'""")
_CONDITION = re.compile(r"\s*(?:\} else )?(?:if|for|case) ")
_CALL = re.compile(r"\s*(?:\} else )?(?:if )?(?:return|\w+ :?=) ")
_CONTINUES = re.compile(r"(?<!\+\+)(?<!--)(?<=[-+*/%&|^=,.<>!(])$")


class MarkError(ValueError):
    """A mark that cannot be applied: where it is, and why."""


@dataclass
class Change:
    """What to do with the statement that begins in a line, counted from 0."""

    operation: str
    where: str
    line: int = -1
    text: str | None = None


@dataclass
class Mutation:
    """What breaks, and the changes of a file that break it."""

    name: str
    file: str
    where: str
    changes: list[Change] = field(default_factory=list)

    @property
    def tests(self) -> str:
        """Return the packages whose tests must notice."""
        together = TESTED_TOGETHER.match(self.file)
        return f"./{together[0]}/..." if together else f"./{Path(self.file).parent}"


def _remove(statement: str, _: str | None) -> str:
    return f"if false {{\n{statement}\n}}"


def _insert(statement: str, text: str | None) -> str:
    return f"{text}\n{statement}"


def _replace(statement: str, text: str | None) -> str:
    old, arrow, new = (text or "").partition(" =>")
    if not arrow or statement.count(old) != 1:
        raise ValueError(f"the statement has {old!r} {statement.count(old)} times, not once")
    return statement.replace(old, new.removeprefix(" "))


def _masked(text: str) -> str:
    """Return text of the same length without what strings and comments hold."""
    return _HIDDEN.sub(
        lambda hidden: "_" * len(hidden[0]) if hidden[0][0] != "/" else " " * len(hidden[0]), text
    )


def _depths(masked: str) -> Iterator[int]:
    depth = 0
    for c in masked:
        depth += (c in "([{") - (c in ")]}")
        yield depth


def _parts(statement: str, head: re.Pattern[str]) -> tuple[list[int], int]:
    """Return where the parts between semicolons begin after a head, and where the last one ends."""
    masked = _masked(statement)
    begins = head.match(masked)
    if not begins:
        raise ValueError(f"the statement is not one for this operation:\n{statement}")
    end = len(masked.rstrip())
    if re.match(r"\s*(\} else )?(if|for|case) ", masked):
        end = len(masked[: end - 1].rstrip())
    starts = [begins.end()]
    depths = list(_depths(masked[begins.end() : end]))
    starts += [
        begins.end() + i + 2
        for i, d in enumerate(depths)
        if d == 0 and masked[begins.end() + i] == ";"
    ]
    return starts, end


def _condition(statement: str, before: str) -> str:
    starts, end = _parts(statement, _CONDITION)
    start = starts[1 if len(starts) == 3 else -1]
    if len(starts) == 3:
        end = starts[2] - 2
    return f"{statement[:start]}{before} ({statement[start:end]}){statement[end:]}"


def _never(statement: str, _: str | None) -> str:
    return _condition(statement, "false &&")


def _always(statement: str, _: str | None) -> str:
    return _condition(statement, "true ||")


def _skip(statement: str, _: str | None) -> str:
    starts, end = _parts(statement, _CALL)
    if len(starts) > 1:
        end = starts[1] - 2
    call = statement[starts[0] : end]
    none = f"func() (none error) {{ if false {{ none = {call} }}; return }}()"
    return f"{statement[: starts[0]]}{none}{statement[end:]}"


# What a mark does with the statement below it. The variables that the statement uses stay used.
OPERATIONS = {
    "remove": _remove,  # it is not run
    "skip": _skip,  # the call in it is not made, and gives no error
    "never": _never,  # its condition is false
    "always": _always,  # its condition is true
    "insert": _insert,  # another statement is run before it
    "replace": _replace,  # a piece of its text is another one: old => new
}
WITH_TEXT = ("insert", "replace")


def _extent(lines: list[str], start: int, *, head: bool) -> int:
    """Return the line after a statement, or after its head: the part before its block."""
    depth = 0
    for at in range(start, len(lines)):
        masked = _masked(lines[at]).rstrip()
        depth += sum(masked.count(c) for c in "([{") - sum(masked.count(c) for c in ")]}")
        opens = head and masked.endswith("{") and depth == 1
        if (depth <= 0 and not _CONTINUES.search(masked)) or opens:
            return at + 1
    raise ValueError("the statement has no end")


def marks(text: str, file: str) -> Iterator[Mutation]:
    """Give the mutations that a file's text has marks of."""
    mutation: Mutation | None = None
    open_changes: list[Change] = []
    for at, line in enumerate(text.split("\n")):
        where = f"{file}:{at + 1}"
        mark = _MARK.fullmatch(line)
        if not mark:
            if line.strip() and not line.lstrip().startswith("//"):
                for change in open_changes:
                    change.line = at
                open_changes = []
            continue
        also, verb, rest = mark.groups()
        if verb == "with":
            if not open_changes or open_changes[-1].operation not in WITH_TEXT:
                raise MarkError(f"{where}: `with` belongs below one of {', '.join(WITH_TEXT)}")
            open_changes[-1].text = rest
            continue
        if verb not in OPERATIONS:
            raise MarkError(f"{where}: {verb!r} is none of {', '.join(OPERATIONS)}, with")
        if bool(also) == bool(rest) or (also and not mutation):
            raise MarkError(
                f"{where}: a mark has a name, and one with `also` has that of the one above"
            )
        if not also:
            if mutation:
                yield mutation
            mutation = Mutation(rest, file, where)
        assert mutation
        open_changes.append(Change(verb, where))
        mutation.changes.append(open_changes[-1])
    if mutation:
        yield mutation


def mutated(mutation: Mutation, text: str) -> str:
    """Return the file's text with the mutation."""
    lines = text.split("\n")
    for change in sorted(mutation.changes, key=lambda change: -change.line):
        if change.line < 0:
            raise MarkError(f"{change.where}: no statement follows the mark")
        if (change.text is None) == (change.operation in WITH_TEXT):
            raise MarkError(f"{change.where}: {change.operation} needs a line //mutate:with")
        try:
            whole = change.operation in ("remove", "insert")
            end = _extent(lines, change.line, head=not whole)
            statement = OPERATIONS[change.operation](
                "\n".join(lines[change.line : end]), change.text
            )
        except ValueError as error:
            raise MarkError(f"{change.where}: {error}") from error
        lines[change.line : end] = statement.split("\n")
    return "\n".join(lines)


def all_marks() -> list[Mutation]:
    """Return all mutations, in the order of their files."""
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.go"))
    names = ((file, file.relative_to(ROOT).as_posix()) for file in files)
    return [m for file, name in names for m in marks(file.read_text(), name)]

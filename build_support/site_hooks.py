"""What mkdocs does beside its plugins: pages for files of the repository and Go's reference.

Pages of ``docs`` link to examples and headers as they lie in the repository. On the site each of
these is a page that shows the file.
"""

from __future__ import annotations

import inspect
import os
import posixpath
import re
import shutil
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

#: Go packages that programs import.
GO_PACKAGES = ("gobuffer", "backends", "hetero", "store", "arrayiface")
#: An alias of a type of an inner package, with its comment.
ALIAS = re.compile(r"^type (\w+) = (\w+)\.(\w+)\n(?:    .*\n)*", re.MULTILINE)

#: Pages for contributors, whose links to sources are for the repository.
CONTRIBUTORS = ("contributing/", "rationale/")

LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)((?:#[^)\s]*)?)\)")
NAMED_LINK = re.compile(rf"\[([^\]]*){LINK.pattern}")
LANGUAGES = {
    ".py": "python", ".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".cu": "cpp",
    ".f90": "fortran", ".go": "go", ".mod": "text", ".sum": "text", ".ptx": "text",
}  # fmt: skip


def outside(page: str, link: str) -> str:
    """Return where a link of a page leads in the repository, or "" if that is a page, too."""
    target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return "" if target.startswith("docs/") else target


def is_shown(page: str, target: str) -> bool:
    """Return whether the site shows a file that a page links to.

    Who reads of the code itself has it: the site leaves out sources that contributors' pages name.
    """
    return target.endswith(".md") or not page.startswith(CONTRIBUTORS)


def page_of(target: str) -> str:
    """Return the site's page for a file or folder of the repository."""
    return f"files/{target}.md" if target != "README.md" else "index.md"


def linked(folder: Path) -> dict[str, Path]:
    """Return the files and folders that pages link to, by their places in the repository."""
    found = {}
    for path in sorted(folder.rglob("*.md")):
        page = path.relative_to(folder).as_posix()
        for link, _ in LINK.findall(path.read_text(encoding="utf-8")):
            target = outside(page, link)
            if target and target != "README.md":
                if not (ROOT / target).exists():
                    raise FileNotFoundError(f"{page} links to {target}, which is not there")
                if is_shown(page, target):
                    found[target] = ROOT / target
    return found


def shown(target: str, path: Path) -> str:
    """Return a page that shows a file, or the files of a folder."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    files = [p for p in files if p.suffix in LANGUAGES and p.suffix != ".sum"]
    parts = [f"# {target}\n"]
    for file in files:
        if path.is_dir():
            parts.append(f"## {file.relative_to(path)}\n")
        text = file.read_text(encoding="utf-8")
        parts.append(f"````{LANGUAGES[file.suffix]}\n{text}````\n")
    return "\n".join(parts)


def go_reference() -> str:
    """Return what ``go doc`` says of the packages, or that there was no Go to ask."""
    if not shutil.which("go"):
        if os.environ.get("HAMR_DOCS_GO") == "required":
            raise FileNotFoundError("no go, which tells what the Go packages have")
        return "This site was built without Go: `go doc -all hamr/gobuffer` shows a package.\n"
    parts = []
    for name in GO_PACKAGES:
        command = ["go", "doc", "-all", f"./{name}"]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
        parts.append(go_page(f"hamr/{name}", ALIAS.sub(partial(go_alias, name), done.stdout)))
    return "\n".join(parts)


def go_alias(package: str, alias: re.Match[str]) -> str:
    """Return what ``go doc`` says of the type of an inner package that an alias stands for."""
    name, inner, kind = alias.groups()
    command = ["go", "doc", "-all", f"./{package}/internal/{inner}", kind]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    told = done.stdout.partition("\n\n")[2].rstrip("\n")
    return re.sub(rf"\b{kind}\b", name, told) + "\n"


def go_page(name: str, told: str) -> str:
    """Return what ``go doc -all`` told of a package, a heading for each type and function."""
    lines: list[str] = [f"## {name}\n"]
    code: list[str] = []

    def end_code() -> None:
        while code and not code[-1].strip():
            code.pop()
        if code:
            language = "go" if any(line.startswith("###") for line in lines) else "text"
            lines.append(f"```{language}\n" + "\n".join(code) + "\n```\n")
        code.clear()

    start, _, declared = told.partition("\n\n")
    lines.append(f"`{start.strip()}`\n")
    for line in declared.split("\n"):
        title = re.match(r"(CONSTANTS|VARIABLES|FUNCTIONS|TYPES)$", line)
        found = re.match(r"(?:func (?:\([^)]*\) )?|type )(\w+)", line)
        if title:
            end_code()
            lines.append(f"### {name}: {title[1].lower()}\n")
        else:
            if found and line.startswith("type "):
                end_code()
                lines.append(f"#### {name.rpartition('/')[2]}.{found[1]}\n")
            code.append(line)
    end_code()
    return "\n".join(lines)


def members(name: str) -> str:
    """Return a table of a class's public members that no page of its file's texts has.

    These are made as the class is, or are those of C's types.
    """
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    rows = []
    for member in sorted(
        n for n in dir(found) if not n.startswith("_") and not n.startswith("set_transfer_syc")
    ):
        value = inspect.getattr_static(found, member)
        lines = (inspect.getdoc(getattr(found, member)) or "").strip().split("\n\n")
        told = " ".join(lines[0].split()).replace("|", "\\|")
        if told and not told.startswith("Not hamr's") and not hasattr(int, member):
            rows.append(f"| `{member}{'()' if callable(value) else ''}` | {told} |")
    return "\n".join(["| | |", "|---|---|", *rows])


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages of files that others link to, and the notebooks."""
    if str(ROOT) not in sys.path:  # mkdocs runs this file by itself
        sys.path.insert(0, str(ROOT))
    from mkdocs.structure.files import File, InclusionLevel

    from build_support import notebooks

    for name, text in notebooks.made().items():
        file = File.generated(config, f"notebooks/{name}.ipynb", content=text)
        files.append(file)
    for target, path in linked(DOCS).items():
        file = File.generated(config, page_of(target), content=shown(target, path))
        file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links that leave ``docs`` to the pages of those files."""
    source = page.file.src_uri
    if source.startswith("files/"):
        # Documents that are shown link as they do in the repository: their text is what counts.
        return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", markdown)

    def moved(match: re.Match[str]) -> str:
        target = outside(source, match[1])
        if not target:
            return match[0]
        way = posixpath.relpath(page_of(target), posixpath.dirname(source) or ".")
        return f"]({way}{match[2]})"

    def without_sources(match: re.Match[str]) -> str:
        target = outside(source, match[2])
        return match[0] if not target or is_shown(source, target) else match[1]

    markdown = LINK.sub(moved, NAMED_LINK.sub(without_sources, markdown))
    if source == "api/go.md":
        markdown = markdown.replace("<!-- go reference -->", go_reference())
    if source == "examples.md":
        markdown = re.sub(
            r"(\[(\w+)\.py\].*)\| yes \|", r"\1| [notebook](notebooks/\2.ipynb) |", markdown
        )
    return re.sub(r"<!-- members: (\S+) -->", lambda found: members(found[1]), markdown)

"""What CONTRIBUTING.md, docs/contributing and docs/rationale name is there.

A name in backquotes with a folder or with the ending of a source file is a path, from the root or
the end of one: `native/array/change.c`. ``<name>`` and ``*`` in it stand for anything.
"""

import fnmatch
import os
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

RATIONALE = ROOT / "docs" / "rationale"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "contributing").glob("*.md")),
    *sorted(RATIONALE.glob("*.md")),
]
SUBJECTS = [page for page in sorted(RATIONALE.glob("*.md")) if page.name != "index.md"]

ENDINGS = [
    "py", "pyi", "go", "c", "h", "hpp", "cpp", "cu", "f90", "md", "sh", "json", "yml", "toml",
    "txt",
]  # fmt: skip
#: Folders that hold nothing of the repository.
PRUNED = {"build", "dist", "vendor", "__pycache__", "node_modules", "_gopy"}


def tree(root):
    """All files and folders of the repository, from its root."""
    found = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [n for n in folders if n == ".ci" or not (n in PRUNED or n.startswith("."))]
        here = os.path.relpath(folder, root)
        found |= {os.path.normpath(os.path.join(here, name)) for name in [*files, *folders]}
    return found


TREE = tree(ROOT)
TOP = {name.partition("/")[0] for name in TREE}
ENDS = {name[at:] for name in TREE for at in [0, *(m.end() for m in re.finditer("/", name))]}


def paths_named(text):
    """The paths that a page names in backquotes."""
    for word in re.findall(r"`([^`\n]+)`", text):
        word = word.rstrip("/")
        if not re.fullmatch(r"[\w.][\w./*<>+-]*", word):
            continue
        ending = word.rpartition(".")[2] in ENDINGS and "." in word
        below = "/" in word and (ending or word.partition("/")[0] in TOP)
        if below or ending:
            yield word


def is_there(word):
    pattern = re.sub(r"<[^>]*>", "*", word)
    return bool(fnmatch.filter(ENDS, pattern)) if "*" in pattern else pattern in ENDS


def elsewhere(word):
    """Where files of that name are, for who has moved one."""
    found = sorted(name for name in TREE if name.endswith("/" + word.rpartition("/")[2]))
    return f"{word}: no such file; {' or '.join(found) or 'none has its name'}"


def anchors(page):
    """What links may name of a page: its headings, as GitHub and mkdocs write them."""
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", t.lower()).strip()) for t in titles]


def broken_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            yield elsewhere(target)
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_path_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    assert [elsewhere(word) for word in paths_named(text) if not is_there(word)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    assert list(broken_links(page, page.read_text(encoding="utf-8"))) == []


def test_a_path_that_is_gone_is_found(tmp_path):
    text = "`native/array/change.c`, `gobuffer/nothing.go`, `tests/<name>`, `b.get(out)`, `1/2`"
    named = list(paths_named(text))
    assert named == ["native/array/change.c", "gobuffer/nothing.go", "tests/<name>"]
    assert [word for word in named if not is_there(word)] == ["gobuffer/nothing.go"]
    assert elsewhere("hetero/change.c").endswith("; python/hamr/native/array/change.c")
    page = tmp_path / "page.md"
    page.write_text("# One page\n[a](#one-page) [b](#two) [c](none.md)\n")
    assert list(broken_links(page, page.read_text())) == [
        "#two: no such heading",
        "none.md: no such file; none has its name",
    ]


def test_contributing_is_read_in_five_minutes():
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n")) <= 130


def test_the_floors_are_those_of_the_lint():
    lint = (ROOT / "internal" / "lint" / "native.go").read_text(encoding="utf-8")
    listed = re.search(r"nativeFloors = \[\]string\{(.*?)\}", lint, re.DOTALL)[1]
    floors = re.findall(r'"(\w+)"', listed)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| `native/` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == floors


def test_headings_have_one_anchor_on_the_site_and_in_the_repository():
    """GitHub keeps what the site drops: letters beyond ASCII, and each of two spaces."""
    found = []
    for page in PAGES:
        for title in re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            plain = re.sub(r"[^\w\s-]", "", title).strip()
            if not title.isascii() or re.search(r"\s\s|-\s|\s-", plain):
                found.append(f"{page.name}: {title}")
    assert found == []


def test_code_and_pages_name_reasons_that_are_there():
    wrong = []
    for name in sorted(TREE):
        path = ROOT / name
        if path.suffix[1:] in ENDINGS and path.is_file() and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            for page, anchor in re.findall(r"(docs/rationale/\w[\w-]*\.md)(?:#([\w-]+))?", text):
                there = (ROOT / page).exists()
                if not there or (anchor and anchor not in anchors(ROOT / page)):
                    wrong.append(f"{name}: {page}#{anchor}")
    assert wrong == []


def rows(page, heading):
    """The first and the last cell of each row of a page's table below a heading, with a folder."""
    text = (
        page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n\n## ")[0]
    )
    cells = [line.strip("| ").split(" | ") for line in text.split("\n") if line.startswith("| `")]
    return {row[0]: row[-1] for row in cells if len(row) == 3}


def test_contributing_and_the_tree_agree_on_imports():
    floors = rows(ROOT / "CONTRIBUTING.md", "The floors")
    tree_rows = rows(ROOT / "docs" / "contributing" / "tree.md", "Folders")
    both = {name for name in floors.keys() & tree_rows.keys() if not name.startswith("`python")}
    assert {"`arrayiface`", "`backends/<name>`", "`gobuffer`", "`store`", "`pyhamr`"} <= both
    assert {name: floors[name] for name in both} == {name: tree_rows[name] for name in both}


def test_the_tree_names_what_the_lint_knows():
    text = (ROOT / "docs" / "contributing" / "tree.md").read_text(encoding="utf-8")
    first = set(re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))))
    lint = (ROOT / "internal" / "lint" / "lint.go").read_text(encoding="utf-8")
    rules = lint.partition("var rules")[2].partition("\n}\n")[0]
    folders = re.findall(r'^\t\{"([^"]+?)(?:/\.\.\.)?"', rules, re.MULTILINE)
    parts = (ROOT / "internal" / "lint" / "python.go").read_text(encoding="utf-8")
    parts = parts.partition("var pythonRules")[2].partition("\n}\n")[0]
    named = set(re.findall(r'^\t\{"([^"]+)"', parts, re.MULTILINE))
    named = {part for part in named if not (ROOT / "python" / "hamr" / f"{part}.pyi").exists()}
    below = {folder for folder in folders if re.search(r"/internal/|\*|^backends/hip$", folder)}
    assert sorted(({*folders} - below | named) - first) == []


def test_every_decision_has_a_status_and_a_place_in_the_index():
    assert SUBJECTS
    index = (RATIONALE / "index.md").read_text(encoding="utf-8")
    missing = []
    for page in SUBJECTS:
        text = page.read_text(encoding="utf-8")
        for title, status in re.findall(r"^## (.+)\n\n(.*)$", text, re.MULTILINE):
            words = "Dropped by" if page.name == "history.md" else "Holds since|Replaced by"
            if not re.match(rf"\*({words}) .*\d{{4}}-\d\d-\d\d\..*\*$", status):
                missing.append(f"{page.name}, {title}: its status, *Holds since 2030-01-31.*")
        if f"({page.name})" not in index:
            missing.append(f"index.md: a line that links to {page.name}")
        titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
        for title, anchor in zip(titles, anchors(page)[1:], strict=True):
            if f"- [{title}]({page.name}#{anchor})" not in index:
                missing.append(f"index.md: - [{title}]({page.name}#{anchor})")
        missing += [f"{page.name}: {one} twice" for one in titles if titles.count(one) > 1]
    assert missing == []


#: First words that name no subject, so that the heading has to be read as part of the sentence.
UNNAMED = re.compile(
    r"(?:It|Its|So|This|That|These|Those|They|Their|Such|Both|Here|There|Otherwise|Hence|Then)\b"
)
MOST_WORDS = 40


def bodies(page):
    """The headings of a page's decisions, and the text below their status."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^## (.+)\n\n\*.+\*\n\n(.+)$", text, re.MULTILINE)


def unnamed_subjects(page):
    return [
        f"{page.name}, {title}: {body[:40]}…" for title, body in bodies(page) if UNNAMED.match(body)
    ]


def sentences(text):
    """The sentences of a page outside of tables, headings, comments and blocks of code."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)\s]*\)", "]", re.sub(r"`[^`\n]+`", "code", text))
    text = re.sub(r"^\s*(?:\||#).*$", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", text):
        yield from re.split(r"(?<=[.!?])[)\"]?\s+", paragraph.strip())


def long_sentences(text):
    return [one for one in sentences(text) if len(one.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", SUBJECTS, ids=lambda page: page.name)
def test_decisions_begin_with_their_subject(page):
    assert unnamed_subjects(page) == []


ALL_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_are_short(page):
    assert long_sentences(page.read_text(encoding="utf-8")) == []


def test_unnamed_subjects_and_long_sentences_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("## A\n\n*Holds.*\n\nIt is.\n\n## B\n\n*Holds.*\n\nItems are.\n")
    assert unnamed_subjects(page) == ["page.md, A: It is.…"]
    words = "word " * 20
    assert long_sentences(f"| {words * 3} |\n```\n{words * 3}\n```\n{words}end. {words}end.") == []
    assert len(long_sentences(f"One. {words}\n{words}, [words](link) `{words}` end. Two.")) == 1

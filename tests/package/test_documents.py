"""Every code block of README.md and docs runs, and prints what the page shows.

tests/support/documents.py says how. Those that need a CUDA device run in tests/cuda.
"""

import re
import subprocess
import sys

import pytest

from tests.support import documents
from tests.support.paths import ROOT


@pytest.mark.parametrize("group", documents.parameters(on_a_device=False))
def test_blocks(group, tmp_path):
    documents.run(group, tmp_path)


@pytest.mark.parametrize("block", documents.BLOCKS, ids=lambda block: block.place)
def test_every_block_is_run_by_somebody(block):
    if block.not_run:
        pytest.skip(f"{block.place} is not run: {block.not_run}")
    assert block.language in documents.LANGUAGES, f"nobody runs {block.language!r}"
    runs = [
        group
        for group in documents.GROUPS
        if any((one.page, one.line) == (block.page, block.line) for one in group.blocks)
    ]
    assert runs


def test_a_language_that_nobody_runs_is_found(tmp_path):
    (block,) = documents.blocks_of(page(tmp_path, "```cobol\nSTOP RUN.\n```\n"))
    with pytest.raises(AssertionError, match="nobody runs 'cobol'"):
        test_every_block_is_run_by_somebody(block)


def test_every_page_is_looked_at():
    assert ROOT / "README.md" in documents.PAGES
    assert {block.page.name for block in documents.BLOCKS} >= {"README.md", "reference.md"}


def anchors(path):
    """What links may name in a page, as its readers make them of headings."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", documents.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        found = path.parent / name if name else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print(1)  # prints 2", "printed\n1\nwhere the page shows\n2"),
        ("print(1)", "printed\n1\nwhere the page shows\n"),
        ("pass  # prints 1", "where the page shows\n1"),
        ("raise KeyError", "line 4, in <module>"),
    ],
)
def test_wrong_output_is_found(tmp_path, code, told):
    text = f"# Title\n\n```python\n{code}\n```\n"
    (group,) = documents.groups_of(documents.blocks_of(page(tmp_path, text)))
    with pytest.raises(AssertionError) as caught:
        documents.run(group, tmp_path)
    assert told in str(caught.value)


def test_a_block_that_is_not_run_says_why(tmp_path):
    text = "# A\n<!-- not run: it never ends -->\n```sh\nsleep inf\n```\n```sh\ntrue\n```\n"
    blocks = documents.blocks_of(page(tmp_path, text))
    assert [block.not_run for block in blocks] == ["it never ends", ""]
    assert [len(group.blocks) for group in documents.groups_of(blocks)] == [1]
    with pytest.raises(pytest.skip.Exception, match="it never ends"):
        test_every_block_is_run_by_somebody(blocks[0])


def test_blocks_of_a_heading_share_names_and_output(tmp_path):
    text = (
        "# A\n```python\na = 3\n```\nmore\n\n```python\nprint(a, object())\n```\n"
        "```text\n3 <object ...>\n```\n# B\n```sh\necho b  # prints b\n```\n"
    )
    first, second = documents.groups_of(documents.blocks_of(page(tmp_path, text)))
    documents.run(first, tmp_path)
    documents.run(second, tmp_path)


def test_needs_make_runs_of_their_own(tmp_path):
    text = (
        "# A\n```python\na = 1\n```\n<!-- needs: torch -->\n```python\na = 2\n```\n"
        "<!-- needs: cupy -->\n\n```python\na = 3\n```\n"
    )
    groups = documents.groups_of(documents.blocks_of(page(tmp_path, text)))
    assert [set(group.needs) for group in groups] == [set(), {"torch"}, {"cupy"}]
    assert [len(group.blocks) for group in groups] == [1, 2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n", "page.md:1: the block is not closed"),
        ("<!-- needs: abacus -->\n```python\n```\n", "needs \\['abacus'\\]"),
    ],
)
def test_pages_that_nobody_can_run_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        documents.blocks_of(page(tmp_path, text))


def test_figures_are_those_of_the_results():
    command = [sys.executable, ROOT / "build_support" / "figures.py", "--check"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr

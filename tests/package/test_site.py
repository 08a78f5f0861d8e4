"""What of the site can be checked without building it; make docs builds it."""

import importlib
import inspect
import json
import re
import types
from xml.etree import ElementTree

import pytest

from build_support import site, site_hooks, toolchain, trace_figure
from hamr.pygpu import SUPPORTED_DTYPES
from tests.support import documents
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
#: Each module that users import, and the page that its names are on.
MODULES = {
    "hamr": ("api/hamr.md", "api/upstream.md"),
    "hamr.store": ("api/store.md",),
    "hamr.hetero": ("api/hetero.md",),
    "hamr.allocators": ("api/allocators.md",),
    "hamr.pygpu": ("api/pygpu.md",),
    "hamr.pygpu.gpuarray": ("api/pygpu.md",),
    "hamr.pygpu.nvml": ("api/pygpu.md",),
    "hamr.dask": ("api/dask.md",),
}


def public(name):
    """The names of a module that users may type."""
    module = importlib.import_module(name)
    named = getattr(module, "__all__", [])
    own = [
        one
        for one in dir(module)
        if not one.startswith("_")
        and (one in named or getattr(getattr(module, one), "__module__", "").startswith(name))
        and not isinstance(getattr(module, one), types.ModuleType)
    ]
    return sorted({*named, *own})


def referred(pages):
    """What pages show by mkdocstrings, and what they name."""
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^::: (\S+)$", text, re.MULTILINE)), set(re.findall(r"`(\w+)`", text))


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_on_the_reference(name):
    shown, named = referred(MODULES[name])
    found = {one.rpartition(".")[2] for one in shown} | named
    assert set(public(name)) - found == set()


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_an_example_of_the_reference(name):
    """One that runs: tests/support/documents.py says how."""
    blocks = [block for page in MODULES[name] for block in documents.blocks_of(DOCS / page)]
    said = "\n".join(block.text for block in blocks if block.language == "python")

    def is_in(one):
        stem, _, kind = one.rpartition("_")
        stem = re.sub("^(Device|Host|Pagelocked)(?=Allocator)", "{place}", stem)
        family = kind in SUPPORTED_DTYPES and f"{stem}_{{kind}}" in said
        return family or re.search(rf"\b{one}\b", said)

    assert [one for one in public(name) if not is_in(one)] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring(name):
    module = importlib.import_module(name)
    found = [(one, getattr(module, one)) for one in public(name)]
    missing = [one for one, value in found if callable(value) and not inspect.getdoc(value)]
    assert missing == []


def test_what_the_reference_shows_is_there():
    for pages in MODULES.values():
        for name in referred(pages)[0]:
            module, _, member = name.rpartition(".")
            assert hasattr(importlib.import_module(module), member), name


def test_methods_of_the_main_classes_have_docstrings():
    import hamr
    import hamr.store

    for kind in (hamr.Buffer, hamr.Handle, hamr.Stream, hamr.Event, hamr.store.Client):
        members = [name for name in dir(kind) if not name.startswith("_")]
        assert [name for name in members if not inspect.getdoc(getattr(kind, name))] == [], kind


def test_the_site_leads_to_every_page():
    configured = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = re.findall(r": ([\w/-]+\.md)$", configured, re.MULTILINE)
    pages = {path.relative_to(DOCS).as_posix() for path in documents.PAGES if DOCS in path.parents}
    assert sorted(nav) == sorted(pages)


def test_files_outside_of_docs_are_pages():
    found = site_hooks.linked(DOCS)
    assert {"examples/heat", "include/hamr/interface.h"} <= found.keys()
    text = site_hooks.shown("examples/heat", found["examples/heat"])
    assert "## main.go\n\n````go\n" in text


def test_a_link_to_a_file_that_is_not_there_is_found(tmp_path):
    (tmp_path / "page.md").write_text("[x](../examples/nothing.py)\n")
    with pytest.raises(FileNotFoundError, match=r"page.md links to examples/nothing.py"):
        site_hooks.linked(tmp_path)


def test_sources_that_contributors_pages_name_are_no_pages(tmp_path):
    (tmp_path / "rationale").mkdir()
    text = "[`pool.go`](../../backends/cuda/pool.go) [one page](../../CONTRIBUTING.md)\n"
    (tmp_path / "rationale" / "page.md").write_text(text)
    assert site_hooks.linked(tmp_path) == {"CONTRIBUTING.md": ROOT / "CONTRIBUTING.md"}
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri="rationale/page.md"))
    shown = site_hooks.on_page_markdown(text, page=page)
    assert shown == "`pool.go` [one page](../files/CONTRIBUTING.md.md)\n"


def test_members_that_c_has_are_listed():
    table = site_hooks.members("hamr.Buffer")
    for name in ("`shape` |", "`copy()` |", "`get_cuda_accessible()` |", "`resize()` |"):
        assert name in table
    assert "`sum" not in table


@pytest.mark.skipif(toolchain.find_go() is None, reason="no go, or one that is too old")
def test_types_of_inner_packages_are_shown_as_users_name_them():
    page = site_hooks.go_reference()
    assert re.search(r"type ServerOptions struct \{\n\s*Path +string", page)
    assert "func (e *FullError) Error() string" in page
    assert not site_hooks.ALIAS.search(page)


def test_what_go_tells_becomes_a_page():
    told = (
        'package p // import "hamr/p"\n\nPackage p is small.\n\nFUNCTIONS\n\n'
        "func F() int\n    F is one.\n\nTYPES\n\ntype T struct{}\n    T is two.\n\n"
    )
    page = site_hooks.go_page("hamr/p", told)
    assert "```text\nPackage p is small.\n```" in page
    assert "### hamr/p: functions\n\n```go\n\nfunc F() int\n    F is one.\n```" in page
    assert "#### p.T\n\n```go\ntype T struct{}" in page


def test_the_picture_of_a_pipeline_is_that_of_its_record(tmp_path):
    trace = json.loads(trace_figure.RESULT.read_text(encoding="utf-8"))
    assert trace_figure.drawn(trace) == trace_figure.PICTURE.read_text(encoding="utf-8")
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    bars = ElementTree.fromstring(trace_figure.drawn(trace)).findall(".//{*}rect/{*}title")
    assert len(bars) == len(spans) > 0


def test_a_new_trace_can_be_drawn(tmp_path):
    pytest.importorskip("numpy")
    trace_figure.record(tmp_path / "trace.json")
    picture = trace_figure.drawn(json.loads((tmp_path / "trace.json").read_text()))
    for name in ("worker 1", "stream 3", "read, event 7", "peak, event 0"):
        assert name in picture


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://example.org/x.js"></script>', 1),
        ('<img alt="x" src="//example.org/x.png">', 1),
        ('<link rel="stylesheet" href="https://example.org/x.css">', 1),
        ('<script src="../assets/x.js"></script><a href="https://example.org">x</a>', 0),
        ('<link rel="canonical" href="https://example.org/">', 0),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(tmp_path, text, found):
    (tmp_path / "page.html").write_text(text)
    assert len(site.loaded_from_elsewhere(tmp_path)) == found

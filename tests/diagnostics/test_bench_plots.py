"""The plots of a record show its figures, and nothing else."""

import importlib.util
import json
import re

import pytest

from build_support import figures
from hamr._benchmark import (
    blocks,
    copying,
    host_copying,
    plots,
    plotting,
    processes,
    running,
    tables,
)
from tests.support.paths import ROOT

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="no matplotlib"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # matplotlib's own
MADE = {
    "machine": {"gpus": ["GPU"]},
    "groups": [
        {
            "group": "take and give back 1 KiB, device memory",
            "rows": [
                {"operation": "numba.device_array(n)", "value": 60.0},
                {"operation": "hamr.Buffer(n, 'u1', cuda)", "value": 1.1},
                {"operation": "torch.empty(n)", "error": "lost"},
            ],
        },
        {
            "group": "take and give back 1 KiB, from a pool",
            "rows": [{"operation": "cp.empty(n, 'u1')", "value": 2.4}],
        },
        {
            "group": "take and give back 1 KiB, memory of the host",
            "rows": [{"operation": "np.empty(n, 'u1')", "value": 0.1}],
        },
        {
            "group": "hamr's memory in other libraries",
            "rows": [{"operation": "cp.asarray(buf)", "value": 4.3}],
        },
    ],
    "curves": [
        {
            "path": copying.TO_NEW,
            "direction": "down",
            "nbytes": [1024, 4096, 16384],
            "ways": [
                {
                    "library": "hamr",
                    "operation": "h",
                    "role": "hamr",
                    "GBps": [0.1, 0.4, 1.6],
                },
                {"library": "CuPy", "operation": "c", "role": "peer", "GBps": [0.1, None, 1.5]},
                {"library": "driver", "operation": "d", "role": "driver", "GBps": [0.2, 0.5, 1]},
                {"library": "driver", "operation": "l", "role": "limit", "GBps": [1, 2, 50.0]},
                {"library": "Numba", "operation": "n", "role": "peer", "errors": {"1024": "lost"}},
            ],
        },
        {
            "path": processes.FIRST,
            "direction": "down",
            "nbytes": [16384],
            "ways": [
                {"library": "hamr", "operation": "h", "role": "hamr", "GBps": [0.7]},
                {"library": "driver", "operation": "d", "role": "driver", "GBps": [0.9]},
            ],
        },
    ],
    "scaling": [
        {
            "cores": cores,
            "nbytes": 1 << 29,
            "points": [
                {
                    "path": copying.TO_ARRAY,
                    "rows": [
                        {"library": "hamr", "operation": "h", "role": "hamr", "GBps": 10.0 * cores},
                        {"library": "driver", "operation": "d", "role": "driver", "error": "lost"},
                    ],
                }
            ],
        }
        for cores in (1, 2)
    ],
}


def recorded():
    """What docs/results has, as the page draws it."""
    return [record for record in figures.records()[:2] if record is not None]


def by_name(record):
    return {plot["name"]: plot for plot in plots.plots_of(record)}


def test_blocks_have_plots_of_their_own():
    def way(library, role, *values):
        return {"library": library, "operation": library, "role": role, "GBps": [*values]}

    ways = [
        way("hamr", "hamr", 45.0, 50.0),
        way("hamr: lists", "hamr", 40.0, 50.0),
        way("hamr: copy_many", "hamr", 1.0, 4.0),
        way("driver", "driver", 1.2, 4.8),
        way("driver: batch", "peer", 3.0, None),
        way("PyTorch", "peer", 1.0, 1.3),
        way("driver", "limit", 53.0, 54.0),
    ]
    head = {"direction": "blocks", "nbytes": [4096, 16384], "counts": [2048, 64]}
    curves = [{"path": path, **head, "ways": ways} for path in (blocks.TO_PINNED, blocks.WITHIN)]
    found = by_name({"machine": {}, "curves": curves})
    assert set(found) == {"blocks", "blocks-device"}
    (panel,) = found["blocks"]["panels"]
    lines = {line["label"]: (line["style"], line["y"]) for line in panel["lines"]}
    assert lines == {
        "hamr": ("hamr", [45.0, 50.0]),
        "hamr: lists": ("hamr: lists", [40.0, 50.0]),
        "hamr: copy_many": ("hamr: copy_many", [1.0, 4.0]),
        "driver: loop": ("driver", [1.2, 4.8]),
        "driver: batch": ("driver: batch", [3.0]),
        "PyTorch": ("PyTorch", [1.0, 1.3]),
        "one copy": ("limit", [53.0, 54.0]),
    }
    assert {style for style, _ in lines.values()} <= plotting.STYLES.keys()
    table = figures._curve_table(curves[0])
    assert table[0].startswith("| blocks | size | hamr | hamr: lists | ")
    assert table[2].startswith("| 2,048 | 4 KiB | 45 | ")
    shown = "\n".join(tables.curve_lines(curves[0]))
    assert "x 2,048" in shown
    assert "  hamr: copy_many  " in shown


def test_what_the_plots_of_a_record_are():
    found = by_name(MADE)
    assert set(found) == {"copies", "allocation", "sharing", "scaling"}
    (panel,) = found["copies"]["panels"]
    lines = {line["label"]: (line["style"], line["x"], line["y"]) for line in panel["lines"]}
    assert lines == {
        "hamr": ("hamr", [1024, 4096, 16384], [0.1, 0.4, 1.6]),
        "CuPy": ("CuPy", [1024, 16384], [0.1, 1.5]),
        "driver": ("driver", [1024, 4096, 16384], [0.2, 0.5, 1]),
        "limit: page-locked": ("limit", [1024, 4096, 16384], [1, 2, 50.0]),
        "hamr, first call": ("first", [16384], [0.7]),
    }
    (panel,) = found["allocation"]["panels"]
    assert panel["title"] == "1 KiB"
    assert [(bar["style"], bar["value"]) for bar in panel["bars"]] == [
        ("hamr", 1.1),
        ("CuPy", 2.4),
        ("Numba", 60.0),
    ]
    (panel,) = found["scaling"]["panels"]
    assert [(line["label"], line["x"], line["y"]) for line in panel["lines"]] == [
        ("hamr", [1, 2], [10.0, 20.0])
    ]


@pytest.mark.parametrize(
    ("operation", "library"),
    [
        ("cp.asarray(buf.get_cuda_accessible())", "hamr"),
        ("numba.as_cuda_array(cupy_array)", "Numba"),
        ("torch.as_tensor(cupy_array)", "PyTorch"),
        ("cupy_array.__cuda_array_interface__", "CuPy"),
        ("CuPy's MemoryPool.malloc(n)", "CuPy"),
        ("cuda.core: allocate(n), close()", "cuda.core"),
        ("cuMemAlloc, cuMemFree (ctypes)", "driver"),
        ("np.empty(n, 'u1')", "NumPy"),
        ("something", "other"),
    ],
)
def test_whose_an_operation_is(operation, library):
    assert plots.whose(operation) == library
    assert library in plotting.STYLES


def test_nothing_measured_draws_nothing():
    assert plots.plots_of({"groups": [], "curves": []}) == []
    assert plots.plots_of({"machine": {}, "curves": [{**MADE["curves"][0], "ways": []}]}) == []


@needs_matplotlib
@pytest.mark.parametrize("record", [MADE, *recorded()], ids=["made", "host", "cuda"])
def test_axes_show_what_was_recorded(record):
    for plot in plots.plots_of(record):
        figure = plotting.figure_of(plot)
        assert len(figure.axes) == len(plot["panels"])
        for axis, panel in zip(figure.axes, plot["panels"], strict=True):
            assert axis.get_title(loc="left") == panel["title"]
            if "lines" in panel:
                check_lines(axis, panel)
            else:
                assert [bar.get_width() for bar in axis.patches] == [
                    bar["value"] for bar in panel["bars"]
                ]
                names = [label.get_text() for label in axis.get_yticklabels()]
                assert names == [bar["label"] for bar in panel["bars"]]
                assert axis.get_xlabel() == panel["unit"]


def check_lines(axis, panel):
    assert len(axis.lines) == len(panel["lines"])
    for drawn, line in zip(axis.lines, panel["lines"], strict=True):
        assert list(drawn.get_xdata()) == line["x"]
        assert list(drawn.get_ydata()) == line["y"]
        assert drawn.get_label() == line["label"]
        assert (drawn.get_linestyle() == "--") is (line["style"] == "limit")
    assert axis.get_ylabel() == "GB/s"
    low, high = axis.get_ylim()
    assert all(low <= y <= high for line in panel["lines"] for y in line["y"])
    assert axis.get_xscale() == "log"
    assert axis.get_yscale() == ("log" if panel["across"] == "bytes" else "linear")


@needs_matplotlib
def test_the_same_record_gives_the_same_files(tmp_path):
    written = [plotting.draw(MADE, tmp_path / name) for name in ("a", "b")]
    assert [path.name for path in written[0]] == [
        f"{name}.{kind}"
        for name in ("copies", "allocation", "sharing", "scaling")
        for kind in ("svg", "png")
    ]
    for one, other in zip(*written, strict=True):
        assert one.read_bytes() == other.read_bytes()
    for plot in plots.plots_of(MADE):
        assert plotting.is_drawn(plot, tmp_path / "a")
        assert not plotting.is_drawn({**plot, "title": "another"}, tmp_path / "a")
        assert not plotting.is_drawn(plot, tmp_path)
    assert b"<dc:date>" not in (tmp_path / "a" / "copies.svg").read_bytes()


@needs_matplotlib
def test_drawing_leaves_the_settings_alone(tmp_path):
    matplotlib = importlib.import_module("matplotlib")
    before = dict(matplotlib.rcParams)
    plotting.draw(MADE, tmp_path)
    assert dict(matplotlib.rcParams) == before


@needs_matplotlib
def test_the_command_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(running, "measured", lambda request: MADE)
    assert running.main(running.Request(json="-", plot=str(tmp_path / "new"))) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == MADE
    assert re.findall(r"\w+\.(?:svg|png)", captured.err) == [
        path.name for path in plotting.draw(MADE, tmp_path)
    ]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        path.name for path in tmp_path.iterdir() if path.is_file()
    }


def test_the_page_shows_every_plot():
    page = (ROOT / "docs" / "figures.md").read_text()
    host, cuda = recorded()
    shown = figures.plots_for(host, True) + figures.plots_for(cuda, False)
    names = {plot["name"] for plot in shown}
    assert len(names) == len(shown)
    assert set(re.findall(r"\]\(plots/([\w-]+)\.svg\)", page)) == names
    readme = (ROOT / "README.md").read_text()
    assert set(re.findall(r"\]\(docs/plots/([\w-]+)\.svg\)", readme)) <= names


def test_a_record_of_a_gpu_may_have_the_host_in_it():
    """Its copies on the host are not drawn over those of the host's own record."""
    ways = MADE["curves"][0]["ways"]
    curve = {"path": host_copying.NEW, "direction": "host", "nbytes": [1, 2, 3], "ways": ways}
    both = {**MADE, "curves": [*MADE["curves"], curve]}
    names = [[plot["name"] for plot in figures.plots_for(both, host)] for host in (True, False)]
    assert names == [["host-copies"], ["copies", "allocation", "sharing", "scaling"]]


def test_records_from_before_there_were_curves():
    rows = [
        {"operation": "driver", "value": 50.0},
        {"operation": "hamr: buf.get(array)", "value": 49.0},
        {"operation": "torch: h.copy_(t)", "error": "lost"},
    ]
    groups = [
        {"group": f"device to host, pinned, {mib} MiB", "rows": rows[: 3 - i]}
        for i, mib in enumerate((1, 64))
    ]
    (curve,) = figures.with_curves({"groups": groups})["curves"]
    assert (curve["path"], curve["nbytes"]) == (copying.TO_PINNED, [1 << 20, 64 << 20])
    assert [(way["role"], way["GBps"]) for way in curve["ways"]] == [
        ("hamr", [49.0, 49.0]),
        ("limit", [50.0, 50.0]),
    ]
    assert figures.with_curves({"curves": []}) == {"curves": []}

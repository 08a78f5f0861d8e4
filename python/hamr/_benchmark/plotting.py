"""Drawing the plots of a record, by matplotlib; the same figures give the same files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from .groups import GIB, KIB, MIB
from .plots import digest_of, plots_of

WIDTH = 8.6  # inches; README shows about as many hundred pixels
COLUMNS = 2
DOTS = 110  # an inch, of the PNG

#: Colours that the colour-blind tell apart, and markers for those who print in grey.
STYLES: dict[str, dict[str, Any]] = {
    "hamr": {"color": "#0072B2", "marker": "o", "linewidth": 2.2, "zorder": 5},
    "first": {"color": "#0072B2", "marker": "o", "linewidth": 1.2, "markerfacecolor": "white"},
    "hamr: lists": {"color": "#0072B2", "marker": "o", "linestyle": ":"},
    "hamr: copy_many": {"color": "#0072B2", "marker": "o", "markerfacecolor": "white"},
    "CuPy": {"color": "#009E73", "marker": "s"},
    "PyTorch": {"color": "#D55E00", "marker": "^"},
    "Numba": {"color": "#CC79A7", "marker": "v"},
    "NumPy": {"color": "#E69F00", "marker": "D"},
    "cuda.core": {"color": "#56B4E9", "marker": "P"},
    "driver": {"color": "#444444", "marker": "x"},
    "driver: batch": {"color": "#444444", "marker": "+", "linestyle": ":"},
    "limit": {"color": "#777777", "linestyle": "--", "marker": ""},
    "other": {"color": "#999999", "marker": "+"},
}
SETTINGS = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "svg.hashsalt": "hamr",  # else each file has other names in it
    "svg.fonttype": "none",
}


def draw(record: dict[str, Any], folder: str | Path) -> list[Path]:
    """Draw all plots of a record into a folder, as SVG and PNG; the files."""
    return [path for plot in plots_of(record) for path in draw_plot(plot, folder)]


def draw_plot(plot: dict[str, Any], folder: str | Path) -> list[Path]:
    """Draw one plot into a folder, which is made if need be; its two files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    matplotlib = import_module("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **SETTINGS, "backend": "agg"}):
        figure, description = figure_of(plot), f"hamr: {digest_of(plot)}"
        written = []
        for kind, metadata in (
            ("svg", {"Date": None, "Creator": None, "Description": description}),
            ("png", {"Software": None, "Description": description}),
        ):
            path = folder / f"{plot['name']}.{kind}"
            figure.savefig(path, dpi=DOTS, metadata=metadata)
            written.append(path)
    return written


def is_drawn(plot: dict[str, Any], folder: str | Path) -> bool:
    """Whether a folder has a plot's files, of these very figures."""
    mark = f"hamr: {digest_of(plot)}".encode()
    files = [Path(folder) / f"{plot['name']}.{kind}" for kind in ("svg", "png")]
    return all(path.exists() and mark in path.read_bytes() for path in files)


def figure_of(plot: dict[str, Any]) -> Any:
    """A plot as a figure of matplotlib's; nothing is shown or written."""
    make_figure = import_module("matplotlib.figure").Figure
    panels = plot["panels"]
    if "bars" in panels[0]:
        rows = [len(panel["bars"]) for panel in panels]
        figure = make_figure(figsize=(WIDTH, 0.7 + sum(0.17 * n + 0.55 for n in rows)))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[n + 1 for n in rows])
        axes = list(grid[:, 0])
    else:
        lines = -(-len(panels) // COLUMNS)
        figure = make_figure(figsize=(WIDTH, 1.0 + 2.4 * lines))
        grid = figure.subplots(lines, COLUMNS, squeeze=False)
        axes = list(grid.flat)
        for spare in axes[len(panels) :]:
            spare.remove()
    for axis, panel in zip(axes, panels, strict=False):
        axis.set_title(panel["title"], loc="left")
        if "bars" in panel:
            _draw_bars(axis, panel)
        else:
            _draw_lines(axis, panel, span_of(panels))
    top, inch = 1.0, 1 / figure.get_figheight()
    figure.text(
        0.01, top - 0.08 * inch, plot["title"], va="top", fontweight="bold", fontsize=10
    ).set_in_layout(False)
    top -= 0.3 * inch
    if "lines" in panels[0]:
        found = {label: h for axis in axes[: len(panels)] for h, label in _legend(axis)}
        place = {"loc": "upper left", "bbox_to_anchor": (0.0, top), "ncols": 7}
        legend = figure.legend(found.values(), found.keys(), columnspacing=1.2, **place)
        legend.set_in_layout(False)
        top -= 0.25 * inch
    figure.tight_layout(rect=(0, 0, 1, top))
    return figure


def span_of(panels: list[dict[str, Any]]) -> tuple[float, float]:
    """From the least to the most of all panels, which are compared with each other."""
    found = [y for panel in panels for line in panel["lines"] for y in line["y"]]
    return min(found) / 1.5, max(found) * 1.5


def _legend(axis: Any) -> list[tuple[Any, str]]:
    handles, labels = axis.get_legend_handles_labels()
    return list(zip(handles, labels, strict=True))


def _draw_lines(axis: Any, panel: dict[str, Any], span: tuple[float, float]) -> None:
    for line in panel["lines"]:
        axis.plot(line["x"], line["y"], label=line["label"], **STYLES[line["style"]])
    xs = sorted({x for line in panel["lines"] for x in line["x"]})
    axis.set_ylabel("GB/s")
    if panel["across"] == "cores":
        axis.set_xscale("log", base=2)
        axis.set_xticks(xs, [str(x) for x in xs])
        axis.set_xlabel("cores")
        axis.set_ylim(0, span[1] / 1.4)
    else:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_ylim(*span)
        ticks = [n for n in (KIB << 4 * i for i in range(6)) if xs[0] / 2 <= n <= 2 * xs[-1]]
        axis.set_xticks(ticks or xs, [short(n) for n in ticks or xs])
        axis.set_xlabel("size")
        rates = rates_between(*span)
        axis.set_yticks(rates, [f"{rate:g}" for rate in rates])
    axis.minorticks_off()


def rates_between(least: float, most: float) -> list[float]:
    """Powers of 10, with 2 and 5 of each where there are few of them."""
    steps = (1, 2, 5) if most < 300 * least else (1,)
    every = [step * 10.0**power for power in range(-4, 6) for step in steps]
    return [rate for rate in every if least <= rate <= most]


def _draw_bars(axis: Any, panel: dict[str, Any]) -> None:
    bars = panel["bars"]
    colours = [STYLES[bar["style"]]["color"] for bar in bars]
    places = range(len(bars))
    drawn = axis.barh(places, [bar["value"] for bar in bars], color=colours, height=0.7)
    axis.bar_label(drawn, [f"{plain(bar['value'])} {panel['unit']}" for bar in bars], padding=3)
    axis.set_yticks(places, [bar["label"] for bar in bars])
    axis.invert_yaxis()
    axis.set_xscale("log")
    least, most = (f(bar["value"] for bar in bars) for f in (min, max))
    axis.set_xlim(least / 2.5, most * 3)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_xlabel(panel["unit"])
    axis.minorticks_off()


def plain(value: float) -> str:
    """Three digits, and never an exponent."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def short(nbytes: int) -> str:
    """A size as a tick says it."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if nbytes >= unit:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"

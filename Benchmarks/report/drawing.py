"""One look for all plots: colours, fonts, and the way from a figure to SVG and PNG."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 - the backend is chosen before pyplot is loaded
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

INK, MUTED, GRID, BAND, SURFACE = "#1b2430", "#5b6573", "#dde1e7", "#f4f6f8", "#ffffff"

# The colours of Okabe and Ito, made for readers who see colours differently. No two engines differ
# in colour alone: bars and lines have names, and second configurations are pale or dashed.
ENGINE_COLOURS = {
    "tidemark": "#0072b2", "rocksdb": "#d55e00", "leveldb": "#e69f00", "lmdb": "#009e73",
    "sqlite": "#cc79a7", "redis": "#7a5195", "rsync": "#8c6d31", "cp": "#7f8790",
}
DARK_ENGINE_COLOURS = {
    "tidemark": "#4db3ec", "rocksdb": "#f07f2e", "leveldb": "#f2b632", "lmdb": "#2fc79b",
    "sqlite": "#e29cc4", "redis": "#b48ad0", "rsync": "#c2a25e", "cp": "#a5adb8",
}
_UNKNOWN_ENGINE = "#7f8790"

# The colours of a plot become variables of the page, which has them light and dark.
_VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", BAND: "--band", SURFACE: "--surface",
    **{colour: f"--{engine}" for engine, colour in ENGINE_COLOURS.items()},
}

PANEL_WIDTH = 4.4
_TITLE_COLUMNS_MAX = 48

matplotlib.rcParams.update({
    "font.family": ["DejaVu Sans", "sans-serif"], "font.size": 8.5,
    "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.edgecolor": MUTED, "axes.labelcolor": MUTED, "axes.titlecolor": INK,
    "axes.linewidth": 0.6, "axes.labelsize": 7.8,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.facecolor": SURFACE, "figure.facecolor": SURFACE, "savefig.facecolor": SURFACE,
    "xtick.labelsize": 8, "ytick.labelsize": 8,
    "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True,
    "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.6,
    # Letters stay letters: they can be searched, and the page's own font is no wider than this.
    "svg.fonttype": "none",
})


@dataclass(frozen=True)
class Plot:
    """A finished plot: its file's name without ending, what it shows, and the inline SVG."""

    name: str
    description: str
    svg: str


def engine_colour(engine: str) -> str:
    """The colour of an engine in every plot."""
    return ENGINE_COLOURS.get(engine, _UNKNOWN_ENGINE)


def is_second_config(series: tuple[str, str]) -> bool:
    """True of the configurations that are drawn pale or dashed."""
    return series[1] in ("none", "writemap")


def make_panel(height: float, title: str) -> tuple[Figure, Axes]:
    """A figure of one plot, as wide as a phone's page."""
    figure, axes = pyplot.subplots(figsize=(PANEL_WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    # The title belongs to the figure, not the plot: long labels at the left must not push it.
    if len(title) > _TITLE_COLUMNS_MAX:
        title = ",\n".join(title.rsplit(", ", 1))
    figure.suptitle(title, x=0.015, ha="left", fontsize=10, fontweight="bold", color=INK)
    return figure, axes


def add_legend(figure: Figure, axes: Axes, columns: int) -> None:
    """A legend below the plot, where it can cover nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, labels, loc="outside lower left", ncols=columns, handlelength=2.2,
            columnspacing=1.0, handletextpad=0.6)


def add_bands(axes: Axes, count: int) -> None:
    """A pale band behind every second row leads the eye from name to bar."""
    for index in range(1, count, 2):
        axes.axhspan(index - 0.5, index + 0.5, color=BAND, linewidth=0, zorder=0)


def finish(figure: Figure, name: str, description: str, directory: Path | None) -> Plot:
    """Saves the figure as SVG and PNG if there is a directory, and makes the page's SVG of it."""
    with matplotlib.rc_context({"svg.hashsalt": name}):
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.svg").write_text(text, encoding="utf-8")
        figure.savefig(directory / f"{name}.png", dpi=150)
    pyplot.close(figure)
    return Plot(name, description, _inline(text, description))


def _inline(text: str, description: str) -> str:
    """The SVG element alone, as wide as its place, in the colours and the font of the page."""
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups()
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    text = re.sub(
        r"<svg[^>]*>",
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}"'
        ' xmlns:xlink="http://www.w3.org/1999/xlink">',
        text, count=1)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text

"""Plots of curves: latencies by percentile, and throughput over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from drawing import Plot, add_legend, engine_colour, finish, is_second_config, make_panel
from rows import Line, Row, Rows
from wording import count_text, plot_names, seconds_text, series_text, shortened

LATENCY_WORKLOADS = (
    "readrandom", "readwhilewriting-get", "readwhilewriting-put", "fillsync", "groupcommit")
TIMELINE_WORKLOADS = ("fillrandom", "overwrite", "readwhilewriting-put")

_NINES = (50.0, 90.0, 99.0, 99.9, 99.99)
_NINES_LABELS = ("50", "90", "99", "99.9", "99.99", "max")
# The largest is one step of a nine behind the last percentile: it has no place of its own.
_MAX_PLACE = 5.0


def nines(percentile: float) -> float:
    """A place on an axis where each further nine is one further: 90 is at 1, 99 at 2."""
    if percentile >= 100:
        return _MAX_PLACE
    return min(-math.log10(1 - percentile / 100), _MAX_PLACE)


def line_style(series: tuple[str, str]) -> dict[str, object]:
    """Colour by engine; the second configuration is dashed, and Tidemark lies on top."""
    ours = series[0] == "tidemark"
    return {
        "color": engine_colour(series[0]), "linestyle": (0, (3, 1.5)) if
        is_second_config(series) else "-", "linewidth": 2.2 if ours else 1.4,
        "zorder": 4 if ours else 3, "label": series_text(series),
    }


def plot_latencies(rows: Rows, directory: Path | None) -> list[Plot]:
    """A plot per workload and size of values with the curves of all engines."""
    return [
        plot
        for workload in LATENCY_WORKLOADS
        for line in rows.lines_of(workload)
        for plot in _plot_latency(rows, line, directory)
    ]


def _plot_latency(rows: Rows, line: Line, directory: Path | None) -> list[Plot]:
    curves = [
        (row, points)
        for row in rows.of(line)
        if (points := [(p, us) for p, us in row.pairs("latency") if p >= 50 and us > 0])
    ]
    if not curves:
        return []
    name, title = plot_names(rows, line)
    title = f"Latency of {line.workload}, {title}"
    figure, axes = make_panel(3.9, title)
    for row, points in curves:
        axes.plot(
            [nines(p) for p, _ in points], [us * 1e-6 for _, us in points],
            **line_style(row.series))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_duration(value)))
    axes.set_xticks([*map(nines, _NINES), _MAX_PLACE], _NINES_LABELS)
    axes.set_xlim(nines(50), _MAX_PLACE)
    axes.grid(True)
    axes.set_xlabel("percentile of operations; lower is better")
    add_legend(figure, axes, 3)
    return [finish(figure, f"latency-{name}", f"{title}, by percentile", directory)]


def _round_duration(value: float) -> str:
    """Whole powers of ten: 1 µs, 10 µs."""
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {unit}"
    return seconds_text(value)


def plot_timelines(rows: Rows, directory: Path | None) -> list[Plot]:
    """A plot per workload and size of values with the rates of all engines over time."""
    return [
        plot
        for workload in TIMELINE_WORKLOADS
        for line in rows.lines_of(workload)
        for plot in _plot_timeline(rows, line, directory)
    ]


def _plot_timeline(rows: Rows, line: Line, directory: Path | None) -> list[Plot]:
    curves = [
        (row, points) for row in rows.of(line) if (points := sorted(row.pairs("timeline")))]
    if not curves:
        return []
    name, title = plot_names(rows, line)
    title = f"Throughput of {line.workload}, {title}"
    figure, axes = make_panel(3.9, title)
    for row, points in curves:
        style = line_style(row.series)
        # A curve of one point would be invisible.
        marker = "o" if len(points) == 1 else None
        seconds, rates = zip(*points, strict=True)
        axes.plot(seconds, rates, marker=marker, markersize=5, **style)
    _scale_time(axes, curves)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: shortened(count_text(value)) if value else "0"))
    axes.set_ylabel("operations per second")
    axes.grid(True)
    add_legend(figure, axes, 3)
    return [finish(figure, f"timeline-{name}", f"{title}, over time", directory)]


def _scale_time(axes: Axes, curves: Sequence[tuple[Row, list[tuple[float, float]]]]) -> None:
    """Seconds; by powers of ten if one engine takes so long that the others would be a stroke."""
    ends = [points[-1][0] for _, points in curves]
    starts = [points[0][0] for _, points in curves if points[0][0] > 0]
    if min(ends) > 0 and max(ends) / min(ends) > 6 and starts:
        axes.set_xscale("log")
        axes.set_xlim(min(starts), max(ends) * 1.05)
        subs = (1, 2, 5) if max(ends) / min(starts) < 300 else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("seconds, log scale; a curve ends with its run")
    else:
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds; a curve ends with its run")

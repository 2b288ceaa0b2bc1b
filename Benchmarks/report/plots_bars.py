"""Plots of bars: ratios to the peers, nearness to the limits, space, memory, sync."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

from drawing import (
    INK, MUTED, Plot, add_bands, add_legend, engine_colour, finish, is_second_config, make_panel)
from rows import ENGINE_LABELS, PEERS, Line, Row, Rows, ratio
from wording import (
    bytes_text, count_text, figure_text, line_text, plot_names, ratio_text, seconds_text,
    series_text, shortened, significant, size_slug, size_text)

PALE = 0.5
_ROW_INCHES = 0.34
# The greatest ratio, or its inverse, that a bar shows in full.
_RATIO_MAX = 1000.0


def bar_style(series: tuple[str, str]) -> dict[str, object]:
    """Colour by engine; the second configuration is pale."""
    return {
        "color": engine_colour(series[0]), "alpha": PALE if is_second_config(series) else 1.0,
        "linewidth": 0,
    }


def prepare_rows(axes: Axes, names: Sequence[str], notes: Sequence[str] = ()) -> None:
    """One named row per bar or group of bars, the first at the top; with notes below the names."""
    axes.set_yticks(range(len(names)), [""] * len(names) if notes else names)
    for index, (name, note) in enumerate(zip(names, notes, strict=False)):
        place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
        axes.text(-0.015, index - 0.2, name, fontsize=8, **place)
        axes.text(-0.015, index + 0.23, note, fontsize=6.8, color=MUTED, **place)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    add_bands(axes, len(names))


def write_beside(axes: Axes, x: float, y: float, text: str, left: bool = False) -> None:
    """The figure of a bar, beyond its end."""
    axes.annotate(
        text, (x, y), xytext=(-3 if left else 3, 0), textcoords="offset points", va="center",
        ha="right" if left else "left", fontsize=7.3, color=INK)


def offsets(count: int) -> list[float]:
    """Where the bars of a group lie around the middle of their row."""
    return [(index - (count - 1) / 2) * 0.8 / count for index in range(count)]


# Ratios


def _peer_ratios(rows: Rows, lines: Sequence[Line], peer: str) -> dict[Line, dict[str, float]]:
    """Per line and configuration of Tidemark, how many times better than the peer's best."""
    found: dict[Line, dict[str, float]] = {}
    for line in lines:
        theirs = rows.best(line, (peer,))
        for row in rows.of(line):
            value = ratio(row, theirs) if row.engine == "tidemark" else None
            if value is not None:
                found.setdefault(line, {})[row.config] = value
    return found


def _within_plot(value: float) -> float:
    """Where the bar of a ratio ends: beyond a thousand times only its figure tells."""
    return min(max(value, 1 / _RATIO_MAX), _RATIO_MAX)


def _ratio_limits(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten, with room for the figures at the ends of the bars."""
    ends = [_within_plot(value) for value in values]
    low, high = math.log10(min(*ends, 1)), math.log10(max(*ends, 1))
    room = max(high - low, 1.0) * 0.45
    return 10 ** (min(low, -0.3) - room), 10 ** (max(high, 0.3) + room)


def _draw_ratios(
    axes: Axes, lines: Sequence[Line], ratios: dict[Line, dict[str, float]], configs: list[str]
) -> None:
    places = offsets(len(configs))
    for place, config in zip(places, configs, strict=True):
        style = bar_style(("tidemark", config))
        label: str | None = f"Tidemark {config}"
        for index, line in enumerate(lines):
            value = ratios.get(line, {}).get(config)
            if value is None:
                continue
            end = _within_plot(value)
            axes.barh(
                index + place, end - 1, left=1, height=0.8 / len(places), label=label, **style)
            label = None
            write_beside(axes, end, index + place, ratio_text(value), left=value < 1)
    axes.axvline(1, color=INK, linewidth=1)


def plot_ratios(rows: Rows, value_bytes: int | None, directory: Path | None) -> list[Plot]:
    """A plot per peer, all of one size of values with the same rows and the same scale."""
    every_line = rows.lines(value_bytes)
    by_peer = {peer: _peer_ratios(rows, every_line, peer) for peer in PEERS}
    lines = [line for line in every_line if any(line in found for found in by_peer.values())]
    values = [
        value for found in by_peer.values() for each in found.values() for value in each.values()]
    configs = [
        config for engine, config in rows.series(lines) if engine == "tidemark"]
    plots = []
    for peer, ratios in by_peer.items():
        if not ratios:
            continue
        label = ENGINE_LABELS[peer]
        title = f"Tidemark against {label}, values of {size_text(value_bytes)}"
        figure, axes = make_panel(1.35 + _ROW_INCHES * len(lines), title)
        axes.set_xscale("log")
        bounds = _ratio_limits(values)
        axes.set_xlim(*bounds)
        is_cut = any(value != _within_plot(value) for value in values)
        if bounds[1] / bounds[0] < 300:
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        else:
            # Their texts would touch if there were more.
            axes.set_xticks([tick for tick in (0.01, 1, 100) if bounds[0] < tick < bounds[1]])
        prepare_rows(axes, [line_text(line, lines) for line in lines])
        _draw_ratios(axes, lines, ratios, configs)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shortened(ratio_text(value))))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(axis="x")
        axes.set_xlabel(
            f"ratio to {label}'s best configuration, log scale\n"
            "right of 1×: Tidemark is better; costs are inverted"
            + ("\nbars end at 1,000 times, their figures do not" if is_cut else ""), loc="right")
        add_legend(figure, axes, 2)
        plots.append(finish(
            figure, f"ratios-{size_slug(value_bytes)}-{peer}",
            f"{title}: ratios by workload, above 1 is better for Tidemark", directory))
    return plots


# Limits


def _limit_ratio(row: Row) -> tuple[float, str] | None:
    """How much of the limit a row reaches, and the limit's name."""
    limit = row.extra.get("limit")
    if row.engine != "tidemark" or not isinstance(limit, dict):
        return None
    value = limit.get("ratio")
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    size = limit.get("size")
    name = str(limit.get("name") or "?")
    return value, f"{name} {size:,}" if isinstance(size, int) and size > 1 else name



def plot_limits(rows: Rows, value_bytes: int | None, directory: Path | None) -> list[Plot]:
    """How near each of Tidemark's rows comes to the limit that it stands next to."""
    every_line = [
        *rows.lines(value_bytes),
        *(line for line in rows.sync_lines() if line.value_bytes == value_bytes)]
    near = [
        (row, *found)
        for line in every_line for row in rows.of(line)
        if (found := _limit_ratio(row)) is not None
    ]
    if not near:
        return []
    lines = list(dict.fromkeys(row.line for row, _, _ in near))
    configs = list(dict.fromkeys(row.config for row, _, _ in near))
    places = dict(zip(configs, offsets(len(configs)), strict=True))
    title = f"Share of the physical limit, values of {size_text(value_bytes)}"
    figure, axes = make_panel(1.25 + _ROW_INCHES * len(lines), title)
    # The figures stand in a column of their own, beyond the full bar.
    axes.set_xlim(0, 125)
    axes.set_xticks(range(0, 101, 25))
    names = [", ".join(dict.fromkeys(name for row, _, name in near if row.line == line))
             for line in lines]
    prepare_rows(axes, [line_text(line, lines) for line in lines], names)
    named: set[str] = set()
    for row, share, _ in near:
        y = lines.index(row.line) + places[row.config]
        length = min(100 * share, 100)
        axes.barh(
            y, length, height=0.8 / len(configs), **bar_style(row.series),
            label=None if row.config in named else series_text(row.series))
        named.add(row.config)
        write_beside(axes, 101, y, f"{significant(100 * share)}%")
    axes.axvline(100, color=INK, linewidth=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.grid(axis="x")
    axes.set_xlabel("share of the limit's rate", loc="right")
    add_legend(figure, axes, 2)
    name = f"limits-{size_slug(value_bytes)}"
    return [finish(figure, name, f"{title}, by workload", directory)]


# Costs: one bar per engine and configuration


def plot_figures(
    rows: Rows, line: Line, heading: str, axis_label: str, directory: Path | None
) -> list[Plot]:
    """The figures of one line as bars, an engine's configuration each."""
    name, title = plot_names(rows, line)
    title = f"{heading}, {title}"
    shown = [row for row in rows.of(line) if row.figure is not None]
    if not shown:
        return []
    figure, axes = make_panel(1.0 + 0.27 * len(shown), title)
    prepare_rows(axes, [series_text(row.series) for row in shown])
    for index, row in enumerate(shown):
        axes.barh(index, row.figure, height=0.68, **bar_style(row.series))
        write_beside(axes, row.figure or 0, index, figure_text(row))
    axes.set_xlim(0, max(1e-9, *(row.figure or 0 for row in shown)) * 1.2)
    _thin_axis(axes, shown[0].unit)
    axes.set_xlabel(axis_label)
    return [finish(figure, name, title, directory)]


def _thin_axis(axes: Axes, unit: str) -> None:
    """The bars carry their figures; the axis needs only a few, and round ones."""
    axes.locator_params(axis="x", nbins=4)
    if unit == "bytes":
        step = 2 ** math.ceil(math.log2(max(axes.get_xlim()[1], 4) / 5))
        axes.xaxis.set_major_locator(MultipleLocator(step))
    texts = {"bytes": bytes_text, "s": seconds_text}
    text = texts.get(unit, count_text)
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: shortened(text(value)) if value else "0"))
    axes.grid(axis="x")
    axes.tick_params(axis="x", labelcolor=MUTED)


def plot_space(rows: Rows, directory: Path | None) -> list[Plot]:
    """Bytes on disk and bytes written, each per logical byte."""
    kinds = {
        "disk-ratio": ("Space on disk", "bytes on disk / logical bytes; less is better"),
        "write-amplification": (
            "Write amplification", "bytes written / logical bytes; less is better"),
        "sustained-amplification": (
            "Write amplification, all overwritten several times",
            "bytes written / logical bytes; less is better"),
        "datasets-disk": ("Many datasets: space on disk", "less is better"),
    }
    return [
        plot
        for workload, (heading, axis_label) in kinds.items()
        for line in rows.lines_of(workload)
        for plot in plot_figures(rows, line, heading, axis_label, directory)
    ]


def plot_memory(rows: Rows, directory: Path | None) -> list[Plot]:
    """Memory at rest, and what the peak adds to it, as one bar per engine's configuration."""
    plots = []
    for kind in ("anonymous", "resident"):
        peaks = rows.lines_of(f"memory-{kind}-peak")
        rests = rows.lines_of(f"memory-{kind}-rest")
        done: set[str] = set()
        for line in [*rests, *peaks]:
            slug, title = plot_names(rows, line)
            name = slug.replace("-rest", "").replace("-peak", "")
            if name in done:
                continue
            done.add(name)
            chosen_rests, chosen_peaks = (
                [each for each in lines if replace(each, workload=line.workload) == line]
                for lines in (rests, peaks))
            title = f"{kind.capitalize()} memory, {title}"
            plots += _plot_memory_of(
                rows, chosen_rests, chosen_peaks, (name, title), directory)
    return plots


def _plot_memory_of(
    rows: Rows, rests: list[Line], peaks: list[Line], names: tuple[str, str],
    directory: Path | None,
) -> list[Plot]:
    def by_series(lines: list[Line]) -> dict[tuple[str, str], float]:
        return {
            row.series: row.figure
            for line in lines for row in rows.of(line) if row.figure is not None}

    rest, peak = by_series(rests), by_series(peaks)
    series = [each for each in rows.series([*rests, *peaks]) if each in rest or each in peak]
    if not series:
        return []
    name, title = names
    figure, axes = make_panel(1.0 + 0.36 * len(series), title)
    prepare_rows(axes, [series_text(each) for each in series])
    for index, each in enumerate(series):
        for values, offset, text in ((rest, -0.19, "rest"), (peak, 0.19, "peak")):
            if each in values:
                axes.barh(
                    index + offset, values[each], height=0.34, **bar_style(each))
                write_beside(
                    axes, values[each], index + offset, f"{text} {bytes_text(values[each])}")
    axes.set_xlim(0, max(1, *rest.values(), *peak.values()) * 1.35)
    _thin_axis(axes, "bytes")
    axes.set_xlabel("bytes; less is better")
    return [finish(figure, name, title, directory)]


def plot_sync(rows: Rows, directory: Path | None) -> list[Plot]:
    """Exchange between replicas, against other ways to bring the same records over."""
    plots = []
    for line in rows.sync_lines():
        shown = rows.of(line)
        is_rate = bool(shown) and shown[0].is_rate
        axis_label = "per second; more is better" if is_rate else "less is better"
        plots += plot_figures(rows, line, line.workload, axis_label, directory)
    return plots

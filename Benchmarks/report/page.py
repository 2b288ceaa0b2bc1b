"""The page: its order, its words, its style. It needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import plots_bars
import plots_curves
import tables
from drawing import BAND, DARK_ENGINE_COLOURS, ENGINE_COLOURS, GRID, INK, MUTED, SURFACE, Plot
from rows import Rows
from wording import size_slug, size_text

_STYLE = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.8rem, 3vw, 2rem) 4rem; max-width: 90rem;
  background: var(--surface); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 0.4rem; padding-top: 0.8rem;
  border-top: 1px solid var(--grid); }
h3 { font-size: 1rem; margin: 1.6rem 0 0.3rem; }
p, ul { max-width: 48rem; margin: 0.4rem 0; }
nav { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; margin: 1rem 0; }
a { color: var(--tidemark); }
.note { color: var(--muted); font-size: 0.92rem; }
.plots { display: grid; gap: 1rem 1.5rem; margin: 1rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; }
figure svg { display: block; width: 100%; max-width: 36rem; height: auto; }
.scroll { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; font-size: 0.84rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; text-align: right; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--grid); }
thead th { vertical-align: bottom; color: var(--muted); font-weight: 600; }
tr > th:first-child { position: sticky; left: 0; text-align: left; font-weight: 500;
  background: var(--surface); }
td small, th small { display: block; color: var(--muted); font-size: 0.74rem;
  font-weight: 400; }
.prose { display: block; white-space: normal; text-align: left; min-width: 15rem;
  max-width: 46rem; }
.gap { color: var(--muted); }
.behind { font-style: italic; } .ahead { font-weight: 600; }
summary { cursor: pointer; margin: 0.8rem 0; }
@media (max-width: 36rem) { th, td { padding: 0.3rem 0.45rem; } .prose { min-width: 12rem; } }
"""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _style() -> str:
    light = {
        "ink": INK, "muted": MUTED, "grid": GRID, "band": BAND, "surface": SURFACE,
        **ENGINE_COLOURS}
    dark = {
        "ink": "#e6e9ee", "muted": "#9aa4b1", "grid": "#343c47", "band": "#1c222a",
        "surface": "#14181e", **DARK_ENGINE_COLOURS}
    return _STYLE.replace("LIGHT", _variables(light)).replace("DARK", _variables(dark))


def _figures(plots: Sequence[Plot]) -> str:
    if not plots:
        return ""
    items = "".join(f"<figure>{plot.svg}</figure>\n" for plot in plots)
    return f'<div class="plots">\n{items}</div>\n'


def _section(anchor: str, title: str, note: str, content: str) -> tuple[str, str, str]:
    """The link's anchor, the title, and the HTML; empty HTML if there is nothing to show."""
    if not content:
        return anchor, title, ""
    note = f'<p class="note">{note}</p>\n' if note else ""
    html = f'<section id="{anchor}">\n<h2>{escape(title)}</h2>\n{note}{content}</section>\n'
    return anchor, title, html


_RATIO_NOTE = (
    "Each bar is Tidemark's figure over that of the peer's best configuration for the same "
    "workload, durability and number of records. To the right of 1× Tidemark is better. Costs "
    "(seconds, bytes, space) are inverted, so that this holds for them too. Rows survive "
    "<code>kill -9</code>; those marked (power) survive the loss of power.")
_TABLE_NOTE = (
    "Medians over the rounds; the spread is (largest − smallest) / median, and a figure of one "
    "round says so. Bold: the best of the line. k, M: thousand and million per second. † The time "
    "ran out before all operations were done. – Not measured.")


def _size_section(rows: Rows, size: int | None, directory: Path | None) -> tuple[str, str, str]:
    lines = rows.lines(size)
    content = _figures(plots_bars.plot_ratios(rows, size, directory))
    content += f'<h3>All figures</h3>\n<p class="note">{_TABLE_NOTE}</p>\n'
    content += tables.results_table(rows, lines)
    latencies = tables.latency_table(rows, lines)
    if latencies:
        content += f"<details><summary>Latencies</summary>\n{latencies}</details>\n"
    return _section(
        f"values-{size_slug(size)}", f"Values of {size_text(size)}", _RATIO_NOTE, content)


def _sections(rows: Rows, directory: Path | None) -> list[tuple[str, str, str]]:
    sizes = rows.value_sizes()
    sections = [_size_section(rows, size, directory) for size in sizes]
    sections.append(_section(
        "latency", "Latency",
        "How long operations take, from the median to the longest. Both axes are logarithmic: "
        "each further nine of the percentile is one step to the right. Dashed: an engine's "
        "second configuration.",
        _figures(plots_curves.plot_latencies(rows, directory))))
    sections.append(_section(
        "time", "Throughput over time",
        "A curve that falls to the floor is an engine that makes its writers wait.",
        _figures(plots_curves.plot_timelines(rows, directory))))
    sections.append(_section(
        "space", "Space and writes", "", _figures(plots_bars.plot_space(rows, directory))))
    sections.append(_section(
        "memory", "Memory",
        "Anonymous memory is the process's own; resident memory counts mapped files in the page "
        "cache too, which the kernel can take back.",
        _figures(plots_bars.plot_memory(rows, directory))))
    sync_lines = rows.sync_lines()
    limit_sizes = dict.fromkeys([*sizes, *(line.value_bytes for line in sync_lines)])
    limits = [
        plot for size in limit_sizes for plot in plots_bars.plot_limits(rows, size, directory)]
    sections.append(_section(
        "limits", "Physical limits",
        "What the machine can do at all, measured in the same run, and how near Tidemark comes. "
        "The number behind a limit is its size of operations in bytes.",
        _figures(limits) + tables.limits_table(rows)))
    sync = _figures(plots_bars.plot_sync(rows, directory))
    if sync_lines:
        sync += tables.results_table(rows, sync_lines, with_ratio=False)
    sections.append(_section("sync", "Exchange between replicas", "", sync))
    sections.append(_section(
        "settings", "Versions and settings", "", tables.settings_table(rows)))
    sections.append(_section("machine", "Machine", "", tables.machine_table(rows)))
    return [section for section in sections if section[2]]


def build_page(rows: Rows, directory: Path | None) -> str:
    """The whole page; the plots are saved into the directory on the way, if there is one."""
    sections = _sections(rows, directory)
    links = "".join(f'<a href="#{anchor}">{escape(title)}</a>\n' for anchor, title, _ in sections)
    body = "".join(html for _, _, html in sections)
    if not body:
        body = "<p>There are no rows to show.</p>\n"
    date = rows.machine.get("date")
    when = f'<p class="note">Measured {escape(str(date))}, {len(rows)} rows.</p>\n' if date else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Tidemark: benchmarks</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        f"<h1>Tidemark side by side</h1>\n{when}{tables.summary(rows) if len(rows) else ''}"
        f"<nav>\n{links}</nav>\n{body}</body>\n</html>\n")

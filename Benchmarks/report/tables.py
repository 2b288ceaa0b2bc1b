"""The tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from rows import ENGINE_LABELS, PEERS, Line, Row, Rows, is_number, ratio
from wording import (
    bytes_text, count_text, figure_text, line_text, ratio_text, seconds_text, series_text,
    significant, size_text)


def html_table(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; its first column stays in sight."""
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    lines = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{each}</td>" for each in rest)
        + "</tr>\n"
        for first, *rest in body)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}</tbody></table></div>\n")


def prose(text: str) -> str:
    """Plain text of a cell that may take several lines."""
    return f'<span class="prose">{escape(text)}</span>'


def _spread_text(row: Row) -> str:
    spread, rounds = row.extra.get("spread"), row.extra.get("rounds")
    text = f"spread {100 * spread:.0f}%" if is_number(spread) else ""
    if isinstance(rounds, list) and len(rounds) == 1:
        text = "1 round"
    if row.extra.get("capped"):
        text = f"{text} †".strip()
    return f"<small>{text}</small>" if text else ""


def figure_cell(row: Row | None, is_best: bool) -> str:
    """A figure with its spread; the best of a line is bold."""
    if row is None or row.figure is None:
        return '<span class="gap">–</span>'
    text = escape(figure_text(row))
    return (f"<b>{text}</b>" if is_best else text) + _spread_text(row)


def ratio_cell(rows: Rows, line: Line) -> str:
    """Tidemark's configurations against the peer that is best in the line."""
    best = rows.best(line, PEERS)
    ours = [row for row in rows.of(line) if row.engine == "tidemark"]
    values = [(row.config, value) for row in ours if (value := ratio(row, best)) is not None]
    if best is None or not values:
        return '<span class="gap">–</span>'
    texts = "<br>".join(
        f'<span class="{"ahead" if value >= 1 else "behind"}">{escape(config)} '
        f"{ratio_text(value)}</span>"
        for config, value in values)
    return f"{texts}<small>{escape(series_text(best.series))}</small>"


def results_table(rows: Rows, lines: Sequence[Line], with_ratio: bool = True) -> str:
    """One row per line, one column per engine and configuration."""
    series = rows.series(lines)
    heads = ["workload"] + ["Tidemark /<br>best peer"] * with_ratio
    heads += ["<br>".join(escape(series_text(each)).split(" ", 1)) for each in series]
    body = []
    for line in lines:
        best = rows.best(line, ENGINE_LABELS)
        name = escape(line_text(line, lines))
        if not with_ratio:
            name += f"<small>{escape(size_text(line.value_bytes))}</small>"
        unit = next((row.unit for row in rows.of(line)), "")
        cells = [f"{name}<small>{escape(_unit_note(unit))}</small>"]
        if with_ratio:
            cells.append(ratio_cell(rows, line))
        for each in series:
            row = rows.find(line, each)
            cells.append(figure_cell(row, row is not None and row == best))
        body.append(cells)
    return html_table(heads, body)


def _unit_note(unit: str) -> str:
    if unit == "ops/s":
        return "per second"
    return f"{'seconds' if unit == 's' else unit}, less is better".removeprefix(", ")


def latency_table(rows: Rows, lines: Sequence[Line]) -> str:
    """The percentiles of every row that has some; empty without any."""
    names = ("p50_us", "p99_us", "p999_us", "max_us")
    body = []
    for line in lines:
        for row in rows.of(line):
            if row.latencies_us:
                times = [row.latencies_us.get(name) for name in names]
                body.append([
                    escape(line_text(line, lines)), escape(series_text(row.series)),
                    *("–" if time is None else seconds_text(time * 1e-6) for time in times)])
    if not body:
        return ""
    return html_table(["workload", "engine", "p50", "p99", "p99.9", "longest"], body)


def limits_table(rows: Rows) -> str:
    """What the machine itself can do."""
    body = []
    for row in rows.limits:
        rate = row.figure
        bandwidth = row.extra.get("bytes_per_s")
        body.append([
            escape(row.workload if row.config == "-" else f"{row.workload} ({row.config})"),
            "–" if row.value_bytes is None else f"{row.value_bytes:,} B",
            "–" if rate is None else count_text(rate),
            "–" if not rate else seconds_text(1 / rate),
            bytes_text(bandwidth) if is_number(bandwidth) and bandwidth else "–",
            prose(str(row.extra.get("what") or "")),
        ])
    heads = [
        "limit", "size", "per second", "each", "bytes per second", prose("what it measures")]
    return html_table(heads, body) if body else ""


def settings_table(rows: Rows) -> str:
    """Versions and settings of every engine, as the drivers used them."""
    body = []
    for row in rows.settings:
        settings = str(row.extra.get("settings") or "–")
        body.append([
            escape(series_text(row.series)), escape(str(row.durability or "–")),
            escape(str(row.extra.get("version") or "–")),
            prose(settings)])
    heads = ["engine", "durability", "version", prose("settings")]
    return html_table(heads, body) if body else ""


def machine_table(rows: Rows) -> str:
    """Where the run took place."""
    body = [
        [escape(name.replace("_", " ").removesuffix(" bytes")),
         prose(_machine_text(name, value))]
        for name, value in rows.machine.items()]
    return html_table(["what", prose("value")], body) if body else ""


def _machine_text(name: str, value: Any) -> str:
    return bytes_text(value) if name.endswith("_bytes") and is_number(value) else str(value)


def summary(rows: Rows) -> str:
    """How many lines are won and lost against the best peer, and the worst, in sentences."""
    standings = []
    for size in rows.value_sizes():
        lines = rows.lines(size)
        for line in lines:
            value = ratio(rows.best(line, ("tidemark",)), best := rows.best(line, PEERS))
            if value is not None and best is not None:
                standings.append((value, f"{line_text(line, lines)} at {size_text(size)}", best))
    if not standings:
        return "<p>No line has both Tidemark and a peer.</p>\n"
    standings.sort(key=lambda each: each[0])
    ahead = sum(value >= 1 for value, _, _ in standings)
    worst = "".join(
        f"<li>{escape(name)}: {significant(value)}× of {escape(series_text(best.series))}</li>"
        for value, name, best in standings[:3])
    return (
        f"<p>Tidemark's best configuration is ahead of the best peer in {ahead} of "
        f"{len(standings)} lines. It stands worst in:</p>\n<ul>{worst}</ul>\n")

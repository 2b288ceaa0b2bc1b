"""Numbers and names as a reader sees them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from rows import ENGINE_LABELS, Line, Row, Rows


def significant(value: float) -> str:
    """Three digits that count, never in powers of ten."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    if size < 0.0995:
        # Two digits are enough of something so small.
        digits = min(1 - math.floor(math.log10(size)), 6)
    return f"{value:,.{digits}f}"


def shortened(text: str) -> str:
    """The text of a round number without the zeros behind the point, for an axis."""
    return re.sub(r"\.(?!\d)", "", re.sub(r"(\.\d*?)0+(?!\d)", r"\1", text))


def scaled(value: float, steps: Iterable[tuple[float, str]]) -> str:
    """The value in the largest unit that leaves something before the point."""
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{significant(value / factor)} {unit}".rstrip()
    return significant(value)


def count_text(value: float) -> str:
    """A count or rate: 1.25 M, 320 k."""
    return scaled(value, ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")))


def bytes_text(value: float) -> str:
    """An amount of memory."""
    steps = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
    return scaled(value, steps) if value else "0 B"


def seconds_text(value: float) -> str:
    """A duration given in seconds."""
    steps = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    return scaled(value, steps) if value else "0 s"


def figure_text(row: Row) -> str:
    """The figure of a row with its unit; rates without, as they are most."""
    if row.figure is None:
        return "–"
    if row.is_rate:
        return count_text(row.figure)
    if row.unit == "bytes":
        return bytes_text(row.figure)
    if row.unit == "s":
        return seconds_text(row.figure)
    if row.unit == "ratio":
        return f"{significant(row.figure)}×"
    return f"{significant(row.figure)} {row.unit}".rstrip()


def ratio_text(value: float | None) -> str:
    """How many times better: 2.1×; of the smallest ones the inverse, 1/25.0 k."""
    if value is None:
        return "–"
    if 0 < value < 0.000995:
        return f"1/{count_text(1 / value)}"
    return f"{significant(value)}×"


def size_text(value_bytes: int | None) -> str:
    """A size of values as a heading: 100 B, 1 KiB."""
    if value_bytes is None:
        return "any size"
    for factor, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if value_bytes >= factor and value_bytes % factor == 0:
            return f"{value_bytes // factor} {unit}"
    return f"{value_bytes:,} B"


def size_slug(value_bytes: int | None) -> str:
    """The same in names of files."""
    return size_text(value_bytes).replace(" ", "").replace(",", "").lower()


def series_text(series: tuple[str, str]) -> str:
    """An engine and its configuration; the configuration only if there is one to choose."""
    engine, config = series
    label = ENGINE_LABELS.get(engine, engine)
    alone = config in ("-", "") or series in (("sqlite", "default"), ("redis", "default"))
    return label if alone else f"{label} {config}"


def line_text(line: Line, among: Iterable[Line]) -> str:
    """The name of a line, with what tells it from others of its workload."""
    same = [other for other in among if other.workload == line.workload]
    text = line.workload
    if line.durability == "power":
        text += " (power)"
    if line.n is not None and len({other.n for other in same}) > 1:
        text += f", {shortened(count_text(line.n))}"
    return text


def plot_names(rows: Rows, line: Line) -> tuple[str, str]:
    """The name of a line's file, and what its title says behind the name of the workload."""
    same = [
        other for other in rows.lines_of(line.workload) if other.value_bytes == line.value_bytes]
    name = f"{line.workload}-{size_slug(line.value_bytes)}"
    title = f"values of {size_text(line.value_bytes)}"
    if len({other.durability for other in same}) > 1:
        name += f"-{line.durability or 'none'}"
        title += f", {line.durability or 'no durability'}"
    if len({other.n for other in same}) > 1:
        name += f"-{line.n}"
        title += f", {shortened(count_text(line.n or 0))} records"
    return name, title

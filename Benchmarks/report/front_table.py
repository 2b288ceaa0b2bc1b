"""Prints the table in README.md, in Markdown, from the rows of a run of `tools/bench --store`.

    python3 front_table.py results.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from rows import ENGINE_LABELS, Row, Rows, parse_row, read_items

# With what each engine compresses by itself, if with anything.
SERIES = (
    ("tidemark", "lz4"), ("rocksdb", "lz4"), ("leveldb", "snappy"), ("lmdb", "default"),
    ("sqlite", "default"),
)

WORKLOADS = {
    "fillrandom": "put, in no order",
    "fillrandom-batch": "put, in batches of 1,000",
    "fillsync": "put that survives power loss",
    "groupcommit": "the same by eight threads",
    "readrandom": "get, in no order",
    "scan": "scan, records",
    "open-killed": "open after `kill -9`",
    "disk-ratio": "disk for a byte of data",
}


def cell(row: Row | None) -> str:
    """A figure in the unit of its line, or a dash if it was not measured."""
    if row is None or row.figure is None:
        return "-"
    if row.is_rate:
        return f"{row.figure:,.0f} /s" if row.figure < 10_000 else f"{row.figure / 1000:,.0f} k/s"
    return f"{row.figure * 1000:.1f} ms" if row.unit == "s" else f"{row.figure:.2f}"


def table(rows: Rows, value_bytes: int = 100) -> str:
    """The lines of the table, for one size of values."""
    lines = [
        "| | " + " | ".join(ENGINE_LABELS[engine] for engine, _ in SERIES) + " |",
        "| --- |" + " ---: |" * len(SERIES),
    ]
    for workload, wording in WORKLOADS.items():
        for line in rows.lines_of(workload):
            if line.value_bytes == value_bytes:
                cells = (cell(rows.find(line, series)) for series in SERIES)
                lines.append(f"| {wording} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Rows(map(parse_row, read_items(Path(sys.argv[1]))))))

"""Prints the table in README.md, in Markdown, from the rows of a run of `tools/bench --store`.

    python3 front_table.py results.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from rows import ENGINE_LABELS, Rows, parse_row, read_items
from wording import figure_text

# With what each engine compresses by itself, if with anything.
SERIES = (
    ("tidemark", "lz4"), ("rocksdb", "lz4"), ("leveldb", "snappy"), ("lmdb", "default"),
    ("sqlite", "default"),
)

WORKLOADS = {
    "fillrandom": "puts a second, in no order",
    "fillrandom-batch": "by batches of 1,000",
    "fillsync": "puts a second that survive power loss",
    "groupcommit": "by eight threads",
    "readrandom": "gets a second, in no order",
    "scan": "records a second of a scan",
    "open-killed": "open after `kill -9`",
    "disk-ratio": "disk for a byte of data",
}


def table(rows: Rows, value_bytes: int = 100) -> str:
    """The lines of the table, for one size of values."""
    lines = [
        "| | " + " | ".join(ENGINE_LABELS[engine] for engine, _ in SERIES) + " |",
        "| --- |" + " ---: |" * len(SERIES),
    ]
    for workload, wording in WORKLOADS.items():
        for line in rows.lines_of(workload):
            if line.value_bytes == value_bytes:
                found = (rows.find(line, series) for series in SERIES)
                cells = (figure_text(row) if row else "–" for row in found)
                lines.append(f"| {wording} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Rows(map(parse_row, read_items(Path(sys.argv[1]))))))

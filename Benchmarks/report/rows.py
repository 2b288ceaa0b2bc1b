"""The rows that the drivers write, and the questions that the report asks of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PEERS = ("rocksdb", "leveldb", "lmdb", "sqlite")
ENGINES = ("tidemark", *PEERS, "redis", "rsync", "cp")

ENGINE_LABELS = {
    "tidemark": "Tidemark", "rocksdb": "RocksDB", "leveldb": "LevelDB", "lmdb": "LMDB",
    "sqlite": "SQLite", "redis": "Redis", "rsync": "rsync", "cp": "cp",
}

CONFIGS = ("lz4", "snappy", "default", "none", "writemap")

WORKLOADS = tuple("""
    fillseq fillrandom overwrite deleterandom fillseq-batch fillrandom-batch fillsync groupcommit
    readrandom readrandom-2t readmissing scan seek100 prefixscan ycsb-a ycsb-b
    readwhilewriting-get readwhilewriting-put compact open-clean open-killed
    first-key-once first-key first-key-fresh first-key-slowdown
    disk-ratio write-amplification sustained-amplification
    memory-anonymous-rest memory-anonymous-peak memory-resident-rest memory-resident-peak
    datasets-fill datasets-open datasets-read datasets-memory datasets-disk
    large-put large-get
    sync-bootstrap sync-delta-1 sync-delta-100 sync-delta-1000 sync-delta-10000 sync-delta-100000
    sync-push-1 sync-push-100 sync-push-1000 sync-push-10000 sync-push-100000
    sync-idle sync-idle-1000-datasets sync-idle-10000-datasets
    sync-idle-restarted-1000-datasets sync-idle-restarted-10000-datasets
    sync-first-push sync-reconcile sync-merge sync-merge-half-newer sync-bootstrap-memory
""".split())


def is_number(value: Any) -> bool:
    """True of finite numbers; JSON's true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def rank(value: Any, order: tuple[str, ...]) -> tuple[int, str]:
    """A sort key: known names in their order, then the others by name."""
    text = str(value)
    return (order.index(text), "") if text in order else (len(order), text)


def optional(value: float | None) -> tuple[bool, float]:
    """A sort key that puts what is missing last."""
    return (value is None, value or 0)


@dataclass(frozen=True, order=False)
class Line:
    """What is measured, without who: a row of a table."""

    workload: str
    durability: str | None
    value_bytes: int | None
    n: int | None

    def sort_key(self) -> tuple[Any, ...]:
        """The order of the report."""
        return (rank(self.workload, WORKLOADS), self.durability or "", optional(self.n))

    @property
    def is_sync(self) -> bool:
        """True of the exchange between replicas, whose competitors are others."""
        return self.workload.startswith("sync-")


@dataclass(frozen=True)
class Row:
    """One row of the JSON file; whatever is missing there is None here."""

    engine: str
    config: str
    workload: str
    durability: str | None = None
    value_bytes: int | None = None
    n: int | None = None
    ops_per_s: float | None = None
    latencies_us: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> Line:
        """What the row measures."""
        return Line(self.workload, self.durability, self.value_bytes, self.n)

    @property
    def series(self) -> tuple[str, str]:
        """Who was measured."""
        return (self.engine, self.config)

    @property
    def is_rate(self) -> bool:
        """True if more is better; the other figures are costs."""
        return self.ops_per_s is not None

    @property
    def figure(self) -> float | None:
        """The rate or, of a row that is none, the value."""
        value = self.ops_per_s if self.is_rate else self.extra.get("value")
        return value if is_number(value) else None

    @property
    def unit(self) -> str:
        """The unit of the figure."""
        return "ops/s" if self.is_rate else str(self.extra.get("unit") or "")

    def pairs(self, name: str) -> list[tuple[float, float]]:
        """A curve of `extra`, without points that are none."""
        points = self.extra.get(name)
        if not isinstance(points, list):
            return []
        return [
            (float(point[0]), float(point[1]))
            for point in points
            if isinstance(point, list) and len(point) == 2 and all(map(is_number, point))
        ]


def parse_row(item: dict[str, Any]) -> Row:
    """Takes one object of the file; names that the report does not use are passed over."""

    def number(name: str) -> Any:
        return item[name] if is_number(item.get(name)) else None

    latencies = {
        name: item[name]
        for name in ("p50_us", "p99_us", "p999_us", "max_us")
        if is_number(item.get(name))
    }
    extra = item.get("extra")
    return Row(
        engine=str(item.get("engine") or "?"),
        config=str(item.get("config") or "-"),
        workload=str(item.get("workload") or "?"),
        durability=item.get("durability"),
        value_bytes=number("value_bytes"),
        n=number("n"),
        ops_per_s=number("ops_per_s"),
        latencies_us=latencies,
        extra=extra if isinstance(extra, dict) else {},
    )


def read_items(path: Path) -> list[dict[str, Any]]:
    """Reads a file as it is; ValueError says what is wrong with it."""
    items = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("the file is not an array of objects")
    return items


def write_items(items: list[dict[str, Any]], path: Path) -> None:
    """Writes rows as an array, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def ratio(ours: Row | None, theirs: Row | None) -> float | None:
    """How many times better the first is: more than 1 is better for rates and costs alike."""
    if ours is None or theirs is None or ours.is_rate != theirs.is_rate:
        return None
    if not ours.figure or not theirs.figure or min(ours.figure, theirs.figure) <= 0:
        return None
    return ours.figure / theirs.figure if ours.is_rate else theirs.figure / ours.figure


class Rows:
    """All rows of a run. Of several rows of one engine for one line the last counts."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.limits: list[Row] = []
        self.settings: list[Row] = []
        self.machine: dict[str, Any] = {}
        self._measured: dict[Line, dict[tuple[str, str], Row]] = {}
        for row in rows:
            if row.engine == "machine":
                self.machine.update(row.extra)
            elif row.engine == "limit":
                self.limits.append(row)
            elif row.workload == "settings":
                self.settings.append(row)
            else:
                self._measured.setdefault(row.line, {})[row.series] = row

    def __iter__(self) -> Iterator[Row]:
        for line in sorted(self._measured, key=lambda line: line.sort_key()):
            yield from self._measured[line].values()

    def __len__(self) -> int:
        return sum(len(series) for series in self._measured.values())

    def value_sizes(self) -> list[int | None]:
        """The sizes of values for which something but sync was measured."""
        sizes = {line.value_bytes for line in self._measured if not line.is_sync}
        return sorted(sizes, key=optional)

    def lines(self, value_bytes: int | None) -> list[Line]:
        """The lines of one size of values in the report's order, without sync."""
        chosen = [
            line for line in self._measured
            if line.value_bytes == value_bytes and not line.is_sync
        ]
        return sorted(chosen, key=lambda line: line.sort_key())

    def sync_lines(self) -> list[Line]:
        """The lines of exchange between replicas, of all sizes."""
        chosen = [line for line in self._measured if line.is_sync]
        return sorted(chosen, key=lambda line: (line.sort_key(), optional(line.value_bytes)))

    def lines_of(self, workload: str) -> list[Line]:
        """The lines of one workload, small values first."""
        chosen = [line for line in self._measured if line.workload == workload]
        return sorted(
            chosen,
            key=lambda line: (optional(line.value_bytes), optional(line.n), line.sort_key()))

    def of(self, line: Line) -> list[Row]:
        """All engines' rows of a line, in the order of the engines."""
        return sorted(
            self._measured.get(line, {}).values(),
            key=lambda row: (rank(row.engine, ENGINES), rank(row.config, CONFIGS)))

    def find(self, line: Line, series: tuple[str, str]) -> Row | None:
        """One engine's row of a line."""
        return self._measured.get(line, {}).get(series)

    def series(self, lines: Iterable[Line]) -> list[tuple[str, str]]:
        """The engines with their configurations that have a row in any of the lines."""
        found = {series for line in lines for series in self._measured.get(line, {})}
        return sorted(
            found, key=lambda each: (rank(each[0], ENGINES), rank(each[1], CONFIGS)))

    def best(self, line: Line, engines: Iterable[str]) -> Row | None:
        """The best row of the engines in a line: their best configuration there."""
        chosen = [row for row in self.of(line) if row.engine in engines and row.figure is not None]
        if not chosen:
            return None
        if chosen[0].is_rate:
            return max(chosen, key=lambda row: row.figure or 0)
        return min(chosen, key=lambda row: row.figure or 0)

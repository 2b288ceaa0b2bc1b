"""Tests of the report: `python3 -m unittest discover` in this folder."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import front_table
import plots_curves
import wording
from report import main
from rows import Line, Rows, parse_row, ratio


def item(engine: str, config: str, workload: str, **others: Any) -> dict[str, Any]:
    """A row as the drivers write it."""
    return {
        "engine": engine, "config": config, "workload": workload, "durability": "kill",
        "value_bytes": 100, "n": 1000, "threads": 1, "ops_per_s": None, "p50_us": None,
        "p99_us": None, "p999_us": None, "max_us": None, "extra": {}, **others}


def cost(engine: str, config: str, workload: str, value: float, unit: str) -> dict[str, Any]:
    """A row that is no rate."""
    return item(engine, config, workload, extra={"value": value, "unit": unit})


LATENCY = [[0, 0.1], [50, 0.2], [99, 1.5], [99.99, 20], [100, 900]]
TIMELINE = [[1, 9000], [2, 0], [3, 11000]]

FIXTURE = [
    item("tidemark", "lz4", "fillrandom", ops_per_s=2000.0, extra={
        "spread": 0.05, "timeline": TIMELINE,
        "limit": {"name": "append-mapping", "size": 124, "ratio": 0.4}}),
    item("rocksdb", "lz4", "fillrandom", ops_per_s=500.0, extra={"timeline": TIMELINE[:1]}),
    item("rocksdb", "none", "fillrandom", ops_per_s=1000.0, extra={
        "capped": True, "rounds": [1000.0]}),
    item("tidemark", "lz4", "readrandom", ops_per_s=100.0, p50_us=0.2, extra={"latency": LATENCY}),
    item("lmdb", "default", "readrandom", ops_per_s=400.0, extra={"latency": LATENCY}),
    cost("tidemark", "lz4", "open-clean", 0.5, "s"),
    cost("sqlite", "default", "open-clean", 0.25, "s"),
    cost("tidemark", "lz4", "disk-ratio", 0.7, "ratio"),
    cost("tidemark", "lz4", "memory-anonymous-rest", 1 << 20, "bytes"),
    cost("tidemark", "lz4", "memory-anonymous-peak", 1 << 24, "bytes"),
    item("tidemark", "lz4", "sync-bootstrap", durability=None, ops_per_s=1e6, value_bytes=None,
         extra={"limit": {"name": "loopback-tcp-throughput", "size": 262144, "ratio": 1.2}}),
    item("redis", "default", "sync-bootstrap", durability=None, ops_per_s=2e6, value_bytes=None),
    {"engine": "limit", "config": "-", "workload": "memcpy", "value_bytes": 124,
     "ops_per_s": 1e8, "extra": {"bytes_per_s": 1.24e10, "what": "Copies."}},
    {"engine": "machine", "config": "-", "workload": "environment",
     "extra": {"cpu": "A & B", "cores": 2, "memory_bytes": 1 << 34, "date": "2026-01-02"}},
    {"engine": "rocksdb", "config": "lz4", "workload": "settings", "durability": "kill",
     "extra": {"version": "7.8.3", "settings": "a=<b>, c=d"}},
]


class ReportTests(unittest.TestCase):
    """Whole reports."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def report(self, items: Any) -> tuple[int, str, set[str]]:
        """The status, the page, and the names of the plots."""
        source = self.folder / "rows.json"
        source.write_text(items if isinstance(items, str) else json.dumps(items))
        page, plots = self.folder / "report.html", self.folder / "plots"
        status = main([str(source), "--html", str(page), "--plots", str(plots)])
        names = {path.name for path in plots.iterdir()} if plots.exists() else set()
        return status, page.read_text() if page.exists() else "", names

    def test_all_kinds_of_rows_are_shown(self) -> None:
        status, page, plots = self.report(FIXTURE)
        self.assertEqual(status, 0)
        for name in (
            "ratios-100b-rocksdb", "ratios-100b-lmdb", "ratios-100b-sqlite",
            "latency-readrandom-100b", "timeline-fillrandom-100b", "disk-ratio-100b",
            "memory-anonymous-100b", "limits-100b", "limits-anysize", "sync-bootstrap-anysize",
        ):
            self.assertLessEqual({f"{name}.svg", f"{name}.png"}, plots)
        for text in (
            "7.8.3", "a=&lt;b&gt;", "A &amp; B", "spread 5%", "1 round †", "color-scheme: dark",
        ):
            self.assertIn(text, page)
        # The best peer is RocksDB without compression, half as fast.
        self.assertIn("lz4 2.00×", page)
        self.assertIn("ahead of the best peer in 1 of 3 lines", page)

    def test_the_page_needs_no_other_host(self) -> None:
        page = self.report(FIXTURE)[1]
        for host in ("src=", "<link", "@import", 'href="http', "url(http"):
            self.assertNotIn(host, page)

    def test_no_rows_are_a_page_that_says_so(self) -> None:
        status, page, plots = self.report([])
        self.assertEqual((status, plots), (0, set()))
        self.assertIn("There are no rows to show.", page)

    def test_each_row_alone_makes_a_report(self) -> None:
        for each in FIXTURE:
            with self.subTest(each["workload"]):
                self.assertEqual(self.report([each])[0], 0)

    def test_rows_without_their_parts_make_a_report(self) -> None:
        odd = [
            {}, {"engine": "tidemark"}, item("tidemark", "lz4", "fillrandom", extra=None),
            item("tidemark", "lz4", "unheard-of", ops_per_s=0, value_bytes=None, n=None),
            item("stranger", "-", "unheard-of", ops_per_s=5.0, value_bytes=None, n=None),
            item("lmdb", "default", "unheard-of", ops_per_s=5.0, value_bytes=None, n=None),
            item("tidemark", "lz4", "readrandom", ops_per_s=1.0, extra={
                "latency": [[50, None], "x", [100, 0]], "timeline": 3, "limit": {"name": None}}),
            item("tidemark", "lz4", "overwrite", ops_per_s=1.0, extra={"timeline": [[0, 5]]}),
            cost("tidemark", "lz4", "memory-resident-rest", 0, "bytes"),
            cost("tidemark", "lz4", "disk-ratio", 0, "ratio"),
            cost("tidemark", "lz4", "sync-idle", 0, "s"),
            {"engine": "limit", "workload": "memcpy", "ops_per_s": 0},
            {"engine": "machine", "extra": {"cores": None}},
        ]
        self.assertEqual(self.report(odd)[0], 0)

    def test_a_file_of_something_else_is_an_error(self) -> None:
        for text in ("", "{", '{"engine": 1}', "[1]"):
            with self.subTest(text), contextlib.redirect_stderr(io.StringIO()) as complaint:
                self.assertEqual(self.report(text)[0], 1)
                self.assertIn("rows.json", complaint.getvalue())


class RowTests(unittest.TestCase):
    """Questions to the rows, and wording."""

    def test_more_than_one_is_better_for_rates_and_costs(self) -> None:
        fast, slow = (parse_row(item("a", "-", "get", ops_per_s=rate)) for rate in (300.0, 100.0))
        self.assertEqual(ratio(fast, slow), 3)
        quick, late = (parse_row(cost("a", "-", "open", time, "s")) for time in (1, 4))
        self.assertEqual(ratio(quick, late), 4)
        self.assertIsNone(ratio(quick, fast))
        self.assertIsNone(ratio(quick, None))
        self.assertIsNone(ratio(quick, parse_row(cost("a", "-", "open", 0, "s"))))

    def test_peers_are_compared_at_the_same_durability_and_number(self) -> None:
        rows = Rows(map(parse_row, [
            item("lmdb", "default", "fillsync", ops_per_s=1.0, durability="power"),
            item("lmdb", "writemap", "fillsync", ops_per_s=2.0, durability="power"),
            item("lmdb", "writemap", "fillsync", ops_per_s=9.0, durability="kill"),
            item("lmdb", "writemap", "fillsync", ops_per_s=9.0, durability="power", n=5),
        ]))
        best = rows.best(Line("fillsync", "power", 100, 1000), ("lmdb",))
        self.assertEqual(best.figure if best else None, 2)

    def test_lines_are_in_the_reports_order(self) -> None:
        names = ["unheard-of", "compact", "readrandom", "fillseq"]
        rows = Rows(parse_row(item("lmdb", "default", name, ops_per_s=1.0)) for name in names)
        self.assertEqual([line.workload for line in rows.lines(100)], names[::-1])

    def test_each_nine_is_a_step(self) -> None:
        for place, percentile in enumerate((90, 99, 99.9, 99.99), start=1):
            self.assertAlmostEqual(plots_curves.nines(percentile), place)
        self.assertGreater(plots_curves.nines(100), plots_curves.nines(99.99))

    def test_numbers_read_well(self) -> None:
        texts = [wording.count_text(value) for value in (0, 0.0123, 1.5, 999.96, 12345, 2.5e6)]
        self.assertEqual(texts, ["0", "0.012", "1.50", "1,000", "12.3 k", "2.50 M"])
        self.assertEqual(wording.seconds_text(0.00025), "250 µs")
        self.assertEqual(wording.bytes_text(3 << 19), "1.50 MiB")
        self.assertEqual(wording.shortened("1.20 M"), "1.2 M")
        self.assertEqual(wording.size_text(1 << 20), "1 MiB")

    def test_ratios_read_well(self) -> None:
        ratios = (3.3e-6, 0.0021, 0.5, 1, 12.34, 1e4)
        texts = [wording.ratio_text(value) for value in ratios]
        self.assertEqual(texts, ["1/303 k", "0.0021×", "0.50×", "1.00×", "12.3×", "10,000×"])
        ticks = [wording.shortened(wording.ratio_text(10.0**power)) for power in range(-6, 3, 2)]
        self.assertEqual(ticks, ["1/1 M", "1/10 k", "0.01×", "1×", "100×"])


class FrontTableTests(unittest.TestCase):
    """The table in README.md."""

    def test_each_engine_stands_by_one_configuration(self) -> None:
        """What was not measured is a dash, and figures are worded as in the report."""
        lines = front_table.table(Rows(map(parse_row, FIXTURE))).splitlines()
        self.assertEqual(lines[2], "| puts a second, in no order | 2.00 k | 500 | – | – | – |")
        self.assertEqual(lines[-1], "| disk for a byte of data | 0.70× | – | – | – | – |")


if __name__ == "__main__":
    unittest.main()

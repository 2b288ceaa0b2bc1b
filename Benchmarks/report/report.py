"""Makes the report of a benchmark run: a page that needs nothing but itself, and its plots.

    python3 report.py rows.json --html report.html --plots plots

Rows may be missing: what was not measured is a gap in the report.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from page import build_page
from rows import Rows, parse_row, read_items, write_items


def main(arguments: list[str] | None = None) -> int:
    """Reads the command line, writes the files, and returns the status of the process."""
    parser = argparse.ArgumentParser(
        description="Makes an HTML report and plots of the rows of a benchmark run.")
    parser.add_argument("rows", type=Path, nargs="+", help="the JSON files of the run")
    parser.add_argument("--json", type=Path, help="one file with the rows of all")
    parser.add_argument("--html", type=Path, required=True, help="the page to write")
    parser.add_argument("--plots", type=Path, help="a directory for the plots as SVG and PNG")
    options = parser.parse_args(arguments)
    items = []
    for path in options.rows:
        try:
            items += read_items(path)
        except (OSError, ValueError) as error:
            print(f"report: {path}: {error}", file=sys.stderr)
            return 1
    if options.json:
        write_items(items, options.json)
    page = build_page(Rows(map(parse_row, items)), options.plots)
    options.html.parent.mkdir(parents=True, exist_ok=True)
    options.html.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs all scenarios against a hub, and before that against a server that answers `{}` to all,
where each of them must fail.

    python3 proof.py .build/debug/tidemark [NAME...]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import checks
from hub import Hub
from nothing import Nothing
from scenarios import Scenario, all_scenarios

# Those that end the hub for all, and so run alone.
ALONE = "zz_"
AT_ONCE = 4


def passes(name: str, scenario: Scenario, hub: Any, *, is_quiet: bool = False) -> bool:
    """Runs one; says how it went."""
    started = time.monotonic()
    try:
        scenario(hub)
    except Exception:
        if not is_quiet:
            print(f"not ok  {name}\n{traceback.format_exc()}", flush=True)
        return False
    if not is_quiet:
        print(f"ok      {name} ({time.monotonic() - started:.1f} s)", flush=True)
    return True


def blind(scenarios: dict[str, Scenario], nothing: Nothing) -> list[str]:
    """Those that pass where nothing is."""
    checks.patience = 0
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            passed = pool.map(
                lambda item: passes(*item, nothing, is_quiet=True), scenarios.items())
            return [name for name, is_passed in zip(scenarios, passed) if is_passed]
    finally:
        checks.patience = 1.0


def run(scenarios: dict[str, Scenario], hub: Hub) -> list[str]:
    """Those that fail."""
    apart = {name: one for name, one in scenarios.items() if name.startswith(ALONE)}
    together = {name: one for name, one in scenarios.items() if name not in apart}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        passed = list(pool.map(lambda item: passes(*item, hub), together.items()))
    failed = [name for name, is_passed in zip(together, passed) if not is_passed]
    return failed + [name for name, one in apart.items() if not passes(name, one, hub)]


def main(arguments: list[str] | None = None) -> int:
    """Reads the command line; the status is 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description="Scenarios of boto3 against a hub.")
    parser.add_argument("binary", type=Path, help="the command tidemark")
    parser.add_argument("names", nargs="*", help="only scenarios whose names hold one of these")
    options = parser.parse_args(arguments)
    scenarios = {
        name: one for name, one in all_scenarios().items()
        if not options.names or any(part in name for part in options.names)}
    if not scenarios:
        parser.error("no scenario has such a name")
    with tempfile.TemporaryDirectory() as directory:
        nothing = Nothing(options.binary, Path(directory))
        seeing_nothing = blind(scenarios, nothing)
        nothing.stop()
        for name in seeing_nothing:
            print(f"not ok  {name}: it passes against a server that answers {{}} to all")
        hub = Hub(options.binary, Path(directory) / "hub").start()
        try:
            failed = run(scenarios, hub)
            hub.stop()
        except BaseException:
            print(hub.log_end(), file=sys.stderr)
            raise
        finally:
            hub.kill()
        if failed:
            print(f"the hub's log ends so:\n{hub.log_end()}")
    count = len(scenarios)
    bad = sorted({*failed, *seeing_nothing})
    print(f"{count - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

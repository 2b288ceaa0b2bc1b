"""What clients do, each a function that takes a hub and fails unless all of it came true.

A scenario makes an identity of its own, so that any number of them share a hub in any order.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

Scenario = Callable[[Any], None]

_all: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Notes a function as a scenario, by its module's and its own name."""
    name = f"{function.__module__.split('.')[-1]}.{function.__name__}"
    _all[name] = function
    return function


def all_scenarios() -> dict[str, Scenario]:
    """Every one of them, in the order of the files."""
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return dict(_all)

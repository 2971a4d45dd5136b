"""`tir.schedule`: the package `schedule.blocks`, with the modules that programs of the TE era import from it."""

import importlib
import sys

sys.modules[__name__] = _package = importlib.import_module("tensorexpr.schedule.blocks")
for _name in ("analysis", "instruction", "schedule", "state", "testing", "trace"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"{_package.__name__}.{_name}")

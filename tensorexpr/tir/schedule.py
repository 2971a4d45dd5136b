"""`tir.schedule`: the package `schedule.blocks`, with the modules that programs of the TE era import from it."""

import importlib
import sys

sys.modules[__name__] = _package = importlib.import_module("tensorexpr.schedule.blocks")
for _name in ("analysis", "instruction", "schedule", "state", "testing", "trace", "transform"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"{_package.__name__}.{_name}")
for _name in ("AutoTensorizeMappingInfo", "get_auto_tensorize_mapping_info"):  # a module of their own there
    setattr(sys.modules[f"{__name__}.analysis"], _name, getattr(importlib.import_module(f"{_package.__name__}.tensorize_mapping"), _name))

"""Measuring configurations: a façade on `tune.measure`.

measure           what is measured and what comes of it; the protocols of builders and runners
measure_methods   LocalBuilder and LocalRunner
"""

from ...rpc.tracker import request_remote
from .executor import Executor
from .measure import (
    Builder,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    Runner,
    create_measure_batch,
    measure_option,
)
from .measure_methods import LocalBuilder, LocalRunner, RPCRunner, check_remote, default_module_loader

__all__ = [
    "Builder",
    "Executor",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "Runner",
    "check_remote",
    "create_measure_batch",
    "default_module_loader",
    "measure_option",
    "request_remote",
]

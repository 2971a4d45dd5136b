"""AutoTVM: templates with knobs, tuned (Chen et al., Learning to Optimize Tensor Programs, 2018).

task/           template, create, ConfigSpace, contexts that say which configuration a template gets, operators as tasks
measure/        measure_option, LocalBuilder, LocalRunner
tuner/          RandomTuner, GridSearchTuner, GATuner, XGBTuner, DropletTuner; callbacks
logs            lines of TVM's version 0.2;  record: the same by TVM's name, and its command line;  database: results in memory
template_space  a task's configurations as a space of the search loop;  space_generator: beside other spaces in one search
errors, env, utils; graph_tuner: names that are refused

All of it is a façade: a configuration is a trace with its decisions, and the loop, the models, the workers and the verification are
`tune`'s.
"""

import importlib
from typing import Any

from . import database, env, errors, measure, task, tuner, utils
from .env import GLOBAL_SCOPE
from .measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    measure_option,
)
from .task import (
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackContext,
    create,
    get_config,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from .tuner import callback

apply_history_best = ApplyHistoryBest
apply_graph_best = ApplyGraphBest
apply_fixed_config = ApplyFixedConfig

__all__ = [
    "GLOBAL_SCOPE",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackContext",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "apply_fixed_config",
    "apply_graph_best",
    "apply_history_best",
    "callback",
    "create",
    "database",
    "env",
    "errors",
    "get_config",
    "measure",
    "measure_option",
    "register_topi_compute",
    "register_topi_schedule",
    "task",
    "template",
    "tuner",
    "utils",
]


def __getattr__(name: str) -> Any:
    """The module `record`, a command too that must not be loaded before it runs, and others that few use, when they are asked for."""
    if name in ("feature", "graph_tuner", "record", "space_generator", "tophub"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

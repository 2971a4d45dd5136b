"""Tasks: templates and operators with their arguments, the spaces of their configurations, and who gets which.

task          template, create, Task;  args: arguments as values;  code_hash: the version of a template
space         ConfigSpace, ConfigEntity, FallbackConfigEntity;  knobs: the candidates of one decision
dispatcher    ApplyHistoryBest and the other contexts
topi_integration   operators as tasks
"""

from . import code_hash, dispatcher, space, task, topi_integration
from .args import args_to_workload, deserialize_args, serialize_args
from .code_hash import attach_code_hash, attach_code_hash_to_arg
from .dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    clear_fallback_cache,
)
from .relay_integration import extract_from_multiple_program, extract_from_program
from .space import ConfigEntity, ConfigSpace
from .task import Task, create, get_config, template
from .topi_integration import TaskExtractEnv, get_workload, register_topi_compute, register_topi_schedule

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyGraphBest",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackContext",
    "Task",
    "TaskExtractEnv",
    "args_to_workload",
    "attach_code_hash",
    "attach_code_hash_to_arg",
    "clear_fallback_cache",
    "code_hash",
    "create",
    "deserialize_args",
    "dispatcher",
    "extract_from_multiple_program",
    "extract_from_program",
    "get_config",
    "get_workload",
    "register_topi_compute",
    "register_topi_schedule",
    "serialize_args",
    "space",
    "task",
    "template",
    "topi_integration",
]

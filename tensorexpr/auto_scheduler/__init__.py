"""The auto-scheduler: from a computation to a fast program, without a schedule by hand (Zheng et al., Ansor, OSDI 2020).

workload      functions that declare computations, by name;  workload_registry: the same by TVM's name, and for other processes
search_task   one computation on one target: tune, apply_best, print_best;  compute_dag: the computation
loop_state    a program to look at and to change by hand;  state_views: how it looks
options       TuningOptions, HardwareParams;  workers: LocalBuilder, LocalRunner and what they build and run
measure       what is measured and what comes of it;  measure_input: a program of a task
policy        SketchPolicy: sketches, then the tuner;  search_policy: the same by TVM's name, and EmptyPolicy
sketch/       the rules that make sketches
custom_rule   rules of your own, on the State of loop_state
default       default_schedule: the analytic model's choice, without measuring
callbacks     RecordToFile and your own
records       logs: load_records, load_best_record, save_records, distill;  loaded: records as they come back
measure_record   the same by TVM's name, and its command
layout_rewrite   LayoutRewriteOption: inputs that the caller packs, and computations that read them
preload       going on where an old log ended;  task_input: arrays to measure with
cost_model/   XGBModel, RandomModel and PythonBasedModel;  model_quality: evaluate_cost_model
feature       what programs look like to models, by TVM's names
task_scheduler   many tasks, one budget;  final_phase: how it ends;  task_callbacks: its table and its log of latencies
limits        what no program of a task takes less than
task_policies    a policy for each task;  task_similarity: tasks of one kind;  known_trials: what a log holds of them
relay_integration   extract_tasks: the tasks of a network
dispatcher    ApplyHistoryBest: schedules looked up in logs;  explain_miss: why a log has none;  explain_failures: what went wrong
session       one search under way
console, progress   what tuning prints;  summary, failures: what it says in the end
"""

from __future__ import annotations

import importlib
from typing import Any

from ..spaces.explain import explain_default
from . import _ffi_api, compute_dag, feature, loop_state, measure, search_policy, search_task, task_scheduler, utils, workload_registry
from .callbacks import MeasureCallback, PythonBasedMeasureCallback, RecordToFile
from .compute_dag import ComputeDAG, get_shape_from_rewritten_layout
from .cost_model import PythonBasedModel, RandomModel, XGBModel
from .custom_rule import PreloadCustomSketchRule
from .default import default_schedule
from .dispatcher import ApplyHistoryBest, ApplyHistoryBestOrSample, DispatchContext, best_schedule, is_auto_scheduler_enabled
from .explain_failures import explain_failures
from .explain_miss import explain_miss
from .layout_rewrite import LayoutRewriteOption
from .loop_state import State
from .measure import BuildResult, MeasureErrorNo, MeasureInput, MeasureResult
from .model_quality import evaluate_cost_model
from .options import HardwareParams, LocalBuilder, LocalRPCMeasureContext, LocalRunner, RPCRunner, TuningOptions
from .policy import SketchPolicy
from .preload import PreloadMeasuredStates
from .records import RecordReader, load_best_record, load_records, save_records
from .relay_integration import extract_tasks
from .search_policy import EmptyPolicy
from .search_task import SearchTask, auto_schedule, create_task
from .task_callbacks import LogEstimatedLatency, PrintTableInfo, TaskSchedulerCallback
from .task_input import register_task_input_check_func
from .task_scheduler import TaskScheduler
from .workload import make_workload_key, register_workload, workload_key_to_tensors

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "BuildResult",
    "ComputeDAG",
    "DispatchContext",
    "EmptyPolicy",
    "HardwareParams",
    "LayoutRewriteOption",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "LogEstimatedLatency",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "PreloadCustomSketchRule",
    "PreloadMeasuredStates",
    "PrintTableInfo",
    "PythonBasedMeasureCallback",
    "PythonBasedModel",
    "RPCRunner",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "SketchPolicy",
    "State",
    "TaskScheduler",
    "TaskSchedulerCallback",
    "TuningOptions",
    "XGBModel",
    "_ffi_api",
    "auto_schedule",
    "best_schedule",
    "compute_dag",
    "create_task",
    "default_schedule",
    "evaluate_cost_model",
    "explain_default",
    "explain_failures",
    "explain_miss",
    "extract_tasks",
    "feature",
    "get_shape_from_rewritten_layout",
    "is_auto_scheduler_enabled",
    "load_best_record",
    "load_records",
    "loop_state",
    "make_workload_key",
    "measure",
    "register_task_input_check_func",
    "register_workload",
    "save_records",
    "search_policy",
    "search_task",
    "task_scheduler",
    "utils",
    "workload_key_to_tensors",
    "workload_registry",
]


def __getattr__(name: str) -> Any:
    """The module `measure_record`, when it is asked for: it is a command too, and must not be loaded before it runs."""
    if name == "load_best":  # the name of release 0.7
        return load_best_record
    if name == "measure_record":
        return importlib.import_module(f"{__name__}.measure_record")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

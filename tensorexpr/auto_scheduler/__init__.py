"""The auto-scheduler: from a computation to a fast program, without a schedule by hand (Zheng et al., Ansor, OSDI 2020).

workload      functions that declare computations, by name
search_task   one computation on one target: tune, apply_best, print_best;  compute_dag: the computation
options       TuningOptions, LocalBuilder, LocalRunner, HardwareParams
policy        SketchPolicy: sketches, then the tuner
sketch/       the rules that make sketches
custom_rule   rules of your own, on the State of loop_state
default       default_schedule: the analytic model's choice, without measuring
callbacks     RecordToFile and your own
records       logs: load_records, load_best_record, save_records, distill;  loaded: records as they come back
measure_record   the same by TVM's name, and its command
layout_rewrite   LayoutRewriteOption: inputs that the caller packs;  packed_inputs: computations that read them
preload       going on where an old log ended;  task_input: arrays to measure with
cost_model    XGBModel and PythonBasedModel;  model_quality: evaluate_cost_model
feature       what programs look like to models, by TVM's names
task_scheduler   many tasks, one budget;  final_phase: how it ends;  task_callbacks: its table and its log of latencies
task_policies    a policy for each task;  task_similarity: tasks of one kind;  known_trials: what a log holds of them
dispatcher    ApplyHistoryBest: schedules looked up in logs;  explain_miss: why a log has none;  explain_failures: what went wrong
session       one search under way;  state_text: a program as loops with their ranges
console, progress   what tuning prints;  summary, failures: what it says in the end
"""

from __future__ import annotations

import importlib
from typing import Any

from ..tune.cost_model import RandomModel
from . import feature
from .callbacks import MeasureCallback, PythonBasedMeasureCallback, RecordToFile
from .compute_dag import ComputeDAG
from .cost_model import PythonBasedModel, XGBModel
from .custom_rule import PreloadCustomSketchRule
from .default import default_schedule
from .dispatcher import ApplyHistoryBest, ApplyHistoryBestOrSample, DispatchContext, best_schedule
from .explain_failures import explain_failures
from .explain_miss import explain_miss
from .layout_rewrite import LayoutRewriteOption
from .loop_state import State
from .measure import MeasureErrorNo, MeasureInput, MeasureResult
from .model_quality import evaluate_cost_model
from .options import HardwareParams, LocalBuilder, LocalRPCMeasureContext, LocalRunner, TuningOptions
from .policy import SketchPolicy
from .preload import PreloadMeasuredStates
from .records import RecordReader, load_best_record, load_records, save_records
from .search_task import SearchTask
from .task_callbacks import LogEstimatedLatency, PrintTableInfo, TaskSchedulerCallback
from .task_input import register_task_input_check_func
from .task_scheduler import TaskScheduler
from .workload import make_workload_key, register_workload, workload_key_to_tensors

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "ComputeDAG",
    "DispatchContext",
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
    "best_schedule",
    "default_schedule",
    "evaluate_cost_model",
    "explain_failures",
    "explain_miss",
    "feature",
    "load_best_record",
    "load_records",
    "make_workload_key",
    "register_task_input_check_func",
    "register_workload",
    "save_records",
    "workload_key_to_tensors",
]


def __getattr__(name: str) -> Any:
    """The module `measure_record`, when it is asked for: it is a command too, and must not be loaded before it runs."""
    if name == "measure_record":
        return importlib.import_module(f"{__name__}.measure_record")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

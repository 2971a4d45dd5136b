"""Searching schedules of functions of blocks: from a program and a design space to the fastest schedule (Shao et al., MetaSchedule, 2022).

tir_integration    tune_tir, compile_tir;  relax_integration, relay_integration: networks;  policy: tasks of the auto-scheduler
tune               tune_tasks;  tune_config: TuneConfig;  tune_context: a task
space_generator/   the design spaces of a program
schedule_rule/     what may be done with a block;  postproc/: with every program;  mutator/: how programs are varied
search_strategy/   which programs to measure next
cost_model/        which of many programs are fast;  feature_extractor/: programs as numbers
builder/           programs to files;  runner/: files to seconds
database/          what is known of programs
measure_callback/  what is done with every round's results
task_scheduler/    which task to work on next
integration        ApplyHistoryBest, and other names of releases of 2022
arg_info           what the arguments of a function are
default_config     the parts that are taken where nothing else is said
profiler           where the time goes
origin             which design space a program is of
proposal           names of the MetaSchedule proposal
utils              derived_object, and what all parts share
"""

from __future__ import annotations

from ..later import later, stand_for
from . import (
    arg_info,
    builder,
    cost_model,
    database,
    default_config,
    feature_extractor,
    integration,
    measure_callback,
    mutator,
    postproc,
    relax_integration,
    relay_integration,
    runner,
    schedule_rule,
    search_strategy,
    space_generator,
    task_scheduler,
    tir_integration,
)
from .arg_info import ArgInfo, TensorInfo
from .builder import Builder
from .cost_model import CostModel
from .database import Database
from .feature_extractor import FeatureExtractor
from .measure_callback import MeasureCallback
from .mutator import Mutator
from .postproc import Postproc
from .profiler import Profiler
from .proposal import PyCompositeSchedule, PySearchPolicy, as_composite_schedule
from .relax_integration import ExtractedTask
from .runner import Runner
from .schedule_rule import ScheduleRule
from .search_strategy import SearchStrategy
from .space_generator import SpaceGenerator
from .task_scheduler import TaskScheduler
from .tir_integration import compile_tir, tune_tir
from .tune import tune_tasks
from .tune_config import TuneConfig
from .tune_context import MeasureCandidate, TuneContext
from .utils import derived_object

__all__ = [
    "ArgInfo",
    "Builder",
    "CostModel",
    "Database",
    "ExtractedTask",
    "FeatureExtractor",
    "MeasureCallback",
    "MeasureCandidate",
    "Mutator",
    "Postproc",
    "Profiler",
    "PyCompositeSchedule",
    "PySearchPolicy",
    "Runner",
    "ScheduleRule",
    "SearchStrategy",
    "SpaceGenerator",
    "TaskScheduler",
    "TensorInfo",
    "TuneConfig",
    "TuneContext",
    "arg_info",
    "as_composite_schedule",
    "builder",
    "compile_tir",
    "cost_model",
    "database",
    "default_config",
    "derived_object",
    "feature_extractor",
    "integration",
    "measure_callback",
    "mutator",
    "postproc",
    "relax_integration",
    "relay_integration",
    "runner",
    "schedule_rule",
    "search_strategy",
    "space_generator",
    "task_scheduler",
    "tir_integration",
    "tune_tasks",
    "tune_tir",
]

# What the proposal and the releases of 2022 have at the top.
_ELSEWHERE = {
    ".space_generator": "PostOrderApply",
    ".search_strategy": "EvolutionarySearch ReplayTrace",
    ".tune_config": "EvolutionarySearchConfig ReplayFuncConfig ReplayTraceConfig",
    ".tir_integration": "tune_te",
    ".relax_integration": "compile_relax tune_extracted_tasks tune_relax",
    ".relay_integration": "compile_relay extract_task_from_relay=extract_tasks tune_relay",
    ".integration": "ApplyHistoryBest is_meta_schedule_enabled",
}
__getattr__, __dir__ = later(__name__, _ELSEWHERE)
stand_for(__name__, "apply_history_best=.integration extracted_task=.relax_integration")

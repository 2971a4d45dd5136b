"""The auto-scheduler: from a computation to a fast program, without a schedule by hand (Zheng et al., Ansor, OSDI 2020).

workload      functions that declare computations, by name
search_task   one computation on one target: tune, apply_best, print_best
options       TuningOptions, LocalBuilder, LocalRunner, HardwareParams
policy        SketchPolicy: sketches, then the tuner
sketch/       the rules that make sketches
callbacks     RecordToFile and your own
records       load_records, load_best_record
console       what tuning prints
"""

from __future__ import annotations

from ..tune.cost_model import RandomModel
from .callbacks import MeasureCallback, PythonBasedMeasureCallback, RecordToFile
from .compute_dag import ComputeDAG
from .measure import MeasureErrorNo, MeasureInput, MeasureResult
from .options import HardwareParams, LocalBuilder, LocalRunner, TuningOptions
from .policy import SketchPolicy
from .measure_record import RecordReader, load_best_record, load_records, save_records
from .search_task import SearchTask
from .workload import make_workload_key, register_workload, workload_key_to_tensors

__all__ = [
    "ComputeDAG",
    "HardwareParams",
    "LocalBuilder",
    "LocalRunner",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "PythonBasedMeasureCallback",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "SketchPolicy",
    "TuningOptions",
    "load_best_record",
    "load_records",
    "make_workload_key",
    "register_workload",
    "save_records",
    "workload_key_to_tensors",
]

"""Tools for testing tensor programs, the library's own and yours.

tolerance     how far results may differ, by dtype, reduction length and magnitude; `assert_close`
data          random arrays, with the values at which programs break if asked
check         `assert_schedule_correct`: reference, every phase and the machine code agree
check_func    `assert_func_correct`: the same for a function, such as `te.create_prim_func` makes
fuzz          random computations under random schedules;  case: one of them as JSON;  program: as Python that checks it
compare       comparing arrays, under the name that programs use;  utils: all of these names again, as some programs import them
marks         what tests need of a machine, and the targets that they run on, likewise
machine_code  what hot loops are made of, for any CPU
parameters    values that tests run over, as fixtures;  plugin: of pytest, for these;  before_after: what a transform should make
strategies    Hypothesis strategies for shapes, dtypes, expressions and computations; needs the `testing` extra

What a computation should give is `tensorexpr.te.reference.evaluate`.
"""

from ..te.reference import evaluate, evaluate_points
from . import utils
from .before_after import CompareBeforeAfter
from .check import ScheduleMismatch, assert_schedule_correct
from .check_func import FuncMismatch, assert_func_correct
from .compare import assert_allclose
from .data import random_array, random_inputs, special_values
from .marks import (
    Feature,
    device_enabled,
    disable_span_filling,
    enable_span_filling,
    enabled_targets,
    main,
    parametrize_targets,
    requires_arm,
    requires_cuda,
    requires_gpu,
    requires_hexagon,
    requires_llvm,
    requires_metal,
    requires_opencl,
    requires_package,
    requires_rocm,
    requires_rpc,
    requires_tensorcore,
    requires_vulkan,
    requires_x86,
    requires_x86_amx,
    requires_x86_avx512,
    requires_x86_vnni,
    slow,
    uses_gpu,
)
from .parameters import exclude_targets, fixture, known_failing_targets, parameter, parameters
from .tolerance import Tolerance, assert_close, reduction_length, tolerance, tolerance_of

__all__ = [
    "CompareBeforeAfter",
    "Feature",
    "FuncMismatch",
    "ScheduleMismatch",
    "Tolerance",
    "assert_allclose",
    "assert_close",
    "assert_func_correct",
    "assert_schedule_correct",
    "device_enabled",
    "disable_span_filling",
    "enable_span_filling",
    "enabled_targets",
    "evaluate",
    "evaluate_points",
    "exclude_targets",
    "fixture",
    "known_failing_targets",
    "main",
    "parameter",
    "parameters",
    "parametrize_targets",
    "random_array",
    "random_inputs",
    "reduction_length",
    "requires_arm",
    "requires_cuda",
    "requires_gpu",
    "requires_hexagon",
    "requires_llvm",
    "requires_metal",
    "requires_opencl",
    "requires_package",
    "requires_rocm",
    "requires_rpc",
    "requires_tensorcore",
    "requires_vulkan",
    "requires_x86",
    "requires_x86_amx",
    "requires_x86_avx512",
    "requires_x86_vnni",
    "slow",
    "special_values",
    "tolerance",
    "tolerance_of",
    "uses_gpu",
    "utils",
]

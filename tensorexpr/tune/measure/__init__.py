"""Measuring programs: compiled and run in worker processes, so that nothing they do touches the tuner.

measurer     the door: `Measurer(task, options).measure(programs)`
results, task, errors     what goes in and comes out
places, running     where programs are compiled and run: here, or what a fleet plugs in
builder      compile workers;  runner: the measuring process;  reference: the process that makes inputs and expected results
workers      those that one task after another uses
pool, process, protocol     workers as their parent sees them;  child: the worker's side;  folder, arrays: what they share
compile_worker, run_worker, reference_worker     what the workers run; module_reference_worker, outputs: of programs of blocks
compiling, object_code, spills     from a trace to object code;  module_compiling: of programs of blocks, whose arguments arg_info
             tells;  kernel_compiling: of kernels of networks
bench, timing, memory, native     from object code to costs

Workers begin with a module of this package and need few of the others, so that names are loaded when they are asked for.
"""

from typing import TYPE_CHECKING

from ...later import later

if TYPE_CHECKING:
    from .errors import MeasureErrorNo
    from .measurer import Measurer
    from .memory import OFFSETS
    from .results import FAILED_COST, MeasureObserver, MeasureOptions, MeasureResult, Program
    from .task import MeasureTask
    from .timing import TimingPolicy
    from .workers import Workers

__all__ = [
    "FAILED_COST",
    "OFFSETS",
    "MeasureErrorNo",
    "MeasureObserver",
    "MeasureOptions",
    "MeasureResult",
    "MeasureTask",
    "Measurer",
    "Program",
    "TimingPolicy",
    "Workers",
]

__getattr__, __dir__ = later(
    __name__,
    {
        ".errors": "MeasureErrorNo",
        ".measurer": "Measurer",
        ".memory": "OFFSETS",
        ".results": "FAILED_COST MeasureObserver MeasureOptions MeasureResult Program",
        ".task": "MeasureTask",
        ".timing": "TimingPolicy",
        ".workers": "Workers",
    },
)

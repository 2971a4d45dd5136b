"""The reference semantics: runs a function of any lowering phase on NumPy arrays, and trusts nothing.

Every access is checked against its buffer and its storage, reading what was never written is an error, and so are
races between the iterations of a parallel loop. Integers wrap, and floats are rounded after every operation, as in
compiled code. `machine` is the state; `statements`, `blocks` and `binds` run, `expressions`, `access` and `calls` compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis import undefined_vars
from ..dtype import to_numpy
from ..function import IRModule, PrimFunc
from ..returned import returned_dtype, with_result
from ..scopes import buffer_vars
from .arguments import Argument, bind_arguments
from .expressions import BUILDERS
from .machine import Machine, ParallelOrder
from .statements import STATEMENTS
from .storage import InterpreterError, IterationLimitError

_DEEPEST = 10_000  # frames: nested statements and operands, with room to spare on Python 3.10's C stack


def interpret(
    func: PrimFunc,
    args: Sequence[Argument],
    parallel_order: ParallelOrder = "forward",
    externs: Mapping[str, Callable[..., Any]] | None = None,
    max_iterations: int | None = None,
    seconds: float | None = None,
) -> Any:
    """Run `func` in place on `args`; the number that it returns, or None.

    Args:
        func: a function of any phase; all its variables must be defined.
        args: one for each parameter: an array for a buffer, a number for a scalar.
        parallel_order: in which order the iterations of parallel loops run; "shuffled" is the same in every run.
        externs: Python functions that stand in for C functions, by name.
        max_iterations: of all loops together; None for as many as it takes.
        seconds: that it may take; None for as many as it takes.

    Raises:
        IterationLimitError: at the loop that would exceed `max_iterations`, or begins behind `seconds`.
        InterpreterError: for arguments that do not fit and for everything that compiled code must not do.
    """
    if not isinstance(func, PrimFunc):
        hint = '; take one of its functions, such as mod["main"]' if isinstance(func, IRModule) else ""
        raise InterpreterError(f"interpret takes a PrimFunc, not {type(func).__name__}{hint}")
    returned = returned_dtype(func)
    if returned is not None:
        result = np.zeros(1, to_numpy(returned))
        interpret(with_result(func, returned), [*args, result], parallel_order, externs, max_iterations, seconds)
        return result[0].item()
    machine = Machine(BUILDERS, STATEMENTS, parallel_order, externs or {}, max_iterations, seconds)
    limit = sys.getrecursionlimit()
    # Raised, never lowered: the program around may be deeper already.
    sys.setrecursionlimit(max(limit, _DEEPEST))
    try:
        # Infinities and NaN are results as any other here.
        with np.errstate(all="ignore"):
            bind_arguments(machine, func, args)
            _check_defined(func)
            machine.run(func.body)()
    except RecursionError as error:
        raise InterpreterError(f"the function nests deeper than {_DEEPEST} statements and operands") from error
    finally:
        sys.setrecursionlimit(limit)


def _check_defined(func: PrimFunc) -> None:
    """Refuse a function with variables that nothing defines: a stale cell would stand in for their value."""
    buffers = func.buffer_map.values()
    given = (*func.params, *(b.data for b in buffers), *(v for b in buffers for v in buffer_vars(b)))
    missing = undefined_vars(func.body, given)
    if missing:
        raise InterpreterError(f"used where nothing defines them: {', '.join(var.name for var in missing)}")


__all__ = ["InterpreterError", "IterationLimitError", "interpret"]

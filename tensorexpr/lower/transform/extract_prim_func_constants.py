"""Arrays of constants out of functions, into the attribute "constants" of their module.

T.allocate_const([1, 2], "int32", [2])     ->     T.allocate_const of number 0;  constants: [[1, 2]]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...tir.constant_array import ConstantArray
from ...tir.function import IRModule, PrimFunc
from ...tir.stmt import AllocateConst, Stmt
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import map_stmt
from .decorators import unused

_CONSTANTS = "constants"


def ExtractPrimFuncConstants() -> Pass:
    """Constants by their number in the module's attribute "constants", equal ones once; those that were there keep theirs."""
    return ModulePass("tir.ExtractPrimFuncConstants", unused, module_func=_extracted, by_user=False)


def _extracted(mod: IRModule, ctx: PassContext) -> IRModule:
    pool: list[ConstantArray] = list(mod.attrs.get(_CONSTANTS, ()))  # of functions that went through this before, too

    def number(array: ConstantArray) -> int:
        for place, other in enumerate(pool):
            if other.dtype == array.dtype and np.array_equal(other.numpy(), array.numpy()):
                return place
        pool.append(array)
        return len(pool) - 1

    def moved(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, moved)
        if not isinstance(result, AllocateConst) or result.data is None:
            return result
        return replace(result, data_or_idx=number(result.data))

    return IRModule(
        {var: func.with_body(moved(func.body)) if isinstance(func, PrimFunc) else func for var, func in mod.functions_items()},
        {**mod.attrs, _CONSTANTS: pool},
    )

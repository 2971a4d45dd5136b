"""Relations between struct infos: whether one fits where another is expected, what two have in common, what a call returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from ..errors import DeclarationError
from ..tir.expr import PrimExpr, Var
from ..tir.rewriting import variables
from .extents import same_extents as same_extents
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    with_symbols,
)


class BaseCheckResult(IntEnum):
    """How a value of one struct info fits where another is expected.

    FAIL_L0: never, as the kinds differ. FAIL_L1: shapes or dtypes contradict. FAIL_L2: nothing contradicts, but it has to be checked
    when it runs. PASS: always.
    """

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


def _shapes(base: Sequence[PrimExpr] | None, derived: Sequence[PrimExpr] | None, ndims: tuple[int, int]) -> BaseCheckResult:
    if ndims[0] != -1 and ndims[1] != -1 and ndims[0] != ndims[1]:
        return BaseCheckResult.FAIL_L1
    if base is None:
        return BaseCheckResult.PASS if ndims[0] in (-1, ndims[1]) else BaseCheckResult.FAIL_L2
    if derived is None:
        return BaseCheckResult.FAIL_L2
    verdicts = [same_extents(a, b) for a, b in zip(base, derived, strict=True)]
    return BaseCheckResult.FAIL_L1 if False in verdicts else BaseCheckResult.FAIL_L2 if None in verdicts else BaseCheckResult.PASS


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """How a value of `derived` fits where `base` is expected."""
    checks = BaseCheckResult
    match base, derived:
        case ObjectStructInfo(), _:
            return checks.PASS
        case _, ObjectStructInfo():
            return checks.FAIL_L2
        case PrimStructInfo(), PrimStructInfo():
            if base.dtype and derived.dtype and base.dtype != derived.dtype:
                return checks.FAIL_L0
            if base.value is None:
                return checks.PASS
            same = None if derived.value is None else same_extents(base.value, derived.value)
            return checks.PASS if same else checks.FAIL_L2 if same is None else checks.FAIL_L1
        case TensorStructInfo(), TensorStructInfo():
            dtype = checks.PASS if base.dtype in ("", derived.dtype) else checks.FAIL_L2 if not derived.dtype else checks.FAIL_L1
            place = checks.PASS if base.vdevice in (None, derived.vdevice) else checks.FAIL_L1 if derived.vdevice else checks.FAIL_L2
            return min(dtype, place, _shapes(base.extents, derived.extents, (base.ndim, derived.ndim)))
        case ShapeStructInfo(), ShapeStructInfo():
            return _shapes(base.values, derived.values, (base.ndim, derived.ndim))
        case TupleStructInfo(), TupleStructInfo():
            if len(base.fields) != len(derived.fields):
                return checks.FAIL_L1
            pairs = zip(base.fields, derived.fields, strict=True)
            return min((struct_info_base_check(a, b) for a, b in pairs), default=checks.PASS)
        case FuncStructInfo(), FuncStructInfo():
            if base.params is None or derived.params is None:
                return checks.PASS if base.params is None else checks.FAIL_L2
            if len(base.params) != len(derived.params):
                return checks.FAIL_L1
            # The other way round: what is passed to a function of `base` has to fit where `derived` takes it.
            pairs = zip(derived.params, base.params, strict=True)
            return min([struct_info_base_check(base.ret, derived.ret), *(struct_info_base_check(a, b) for a, b in pairs)])
    return checks.FAIL_L0


def is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether every value of `derived` is one of `base`."""
    return struct_info_base_check(base, derived) == BaseCheckResult.PASS


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """What is known of a value that is one of two."""
    match lhs, rhs:
        case PrimStructInfo(), PrimStructInfo() if lhs.dtype == rhs.dtype:
            return lhs if lhs == rhs else PrimStructInfo(lhs.dtype)
        case TensorStructInfo(), TensorStructInfo():
            dtype = lhs.dtype if lhs.dtype == rhs.dtype else ""
            device = lhs.vdevice if lhs.vdevice == rhs.vdevice else None
            if lhs.shape is not None and _agree(lhs.extents, rhs.extents):
                return TensorStructInfo(lhs.shape, dtype, device)
            return TensorStructInfo(None, dtype, device, lhs.ndim if lhs.ndim == rhs.ndim else -1)
        case ShapeStructInfo(), ShapeStructInfo():
            if _agree(lhs.values, rhs.values):
                return lhs
            return ShapeStructInfo(None, lhs.ndim if lhs.ndim == rhs.ndim else -1)
        case TupleStructInfo(), TupleStructInfo() if len(lhs.fields) == len(rhs.fields):
            return TupleStructInfo(tuple(struct_info_lca(a, b) for a, b in zip(lhs.fields, rhs.fields, strict=True)))
        case FuncStructInfo(), FuncStructInfo() if lhs == rhs:
            return lhs
    return ObjectStructInfo()


def _agree(a: Sequence[PrimExpr] | None, b: Sequence[PrimExpr] | None) -> bool:
    return a is not None and b is not None and len(a) == len(b) and all(same_extents(x, y) for x, y in zip(a, b, strict=True))


def bind_symbols(stated: StructInfo, given: StructInfo, values: dict[Var, PrimExpr]) -> None:
    """Give the symbols that extents of `stated` are alone their values in `given`; those that have one keep it."""
    match stated, given:
        case TensorStructInfo(), TensorStructInfo():
            _bind_extents(stated.extents, given.extents, values)
        case ShapeStructInfo(), ShapeStructInfo():
            _bind_extents(stated.values, given.values, values)
        case PrimStructInfo(), PrimStructInfo() if isinstance(stated.value, Var) and given.value is not None:
            values.setdefault(stated.value, given.value)
        case TupleStructInfo(), TupleStructInfo():
            for a, b in zip(stated.fields, given.fields, strict=False):
                bind_symbols(a, b, values)


def _bind_extents(stated: Sequence[PrimExpr] | None, given: Sequence[PrimExpr] | None, values: dict[Var, PrimExpr]) -> None:
    for one, other in zip(stated or (), given or (), strict=False):
        if isinstance(one, Var):
            values.setdefault(one, other)


def without_symbols(info: StructInfo, known: Mapping[Var, PrimExpr] | set[Var]) -> StructInfo:
    """What is left of a struct info where only the symbols in `known` mean anything."""
    if all(symbol in known for symbol in symbols_of(info)):
        return info
    match info:
        case TensorStructInfo():
            return TensorStructInfo(None, info.dtype, info.vdevice, info.ndim)
        case ShapeStructInfo():
            return ShapeStructInfo(None, info.ndim)
        case PrimStructInfo():
            return PrimStructInfo(info.dtype)
        case TupleStructInfo():
            return TupleStructInfo(tuple(without_symbols(one, known) for one in info.fields))
    return info


def returned(func: FuncStructInfo, args: Sequence[StructInfo], name: str) -> StructInfo:
    """What a call returns: the function's result at the shapes of the arguments.

    Raises:
        DeclarationError: for another number of arguments, or one that can't fit its parameter.
    """
    if func.params is None:
        return func.ret
    if len(func.params) != len(args):
        raise DeclarationError(f"{name} takes {len(func.params)} arguments, not {len(args)}")
    values: dict[Var, PrimExpr] = {}
    # First all symbols: a parameter (n * 2,) may stand in front of the one that says what n is.
    for stated, given in zip(func.params, args, strict=True):
        bind_symbols(stated, given, values)
    for number, (stated, given) in enumerate(zip(func.params, args, strict=True)):
        expected = with_symbols(stated, values)
        if struct_info_base_check(expected, given) <= BaseCheckResult.FAIL_L1:
            raise DeclarationError(f"argument {number} of {name} is {given}, where the parameter is {expected}")
    # The callee's own symbols mean nothing where it is called.
    return without_symbols(with_symbols(func.ret, values), set(values) | _outer(values))


def _outer(values: Mapping[Var, PrimExpr]) -> set[Var]:
    """The symbols that the arguments bring along."""
    return {var for value in values.values() for var in variables(value)}


StructInfo.is_base_of = is_base_of  # type: ignore[attr-defined]

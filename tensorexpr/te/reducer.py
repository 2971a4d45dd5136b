"""Reductions: `comm_reducer` makes functions such as `te.sum`, which build `Reduce` nodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, overload

from ..errors import DeclarationError
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const, convert, to_bool
from ..tir.dtype import parse_dtype
from ..tir.expr import CommReducer, IterVar, PrimExpr, Reduce, Var
from ..tir.operators import ExprOp
from ..tir.reduction_laws import GREATEST, LEAST, Law


class Reducer(Protocol):
    """A function such as `te.sum`: the reduction of one value, or of several that are combined together."""

    __name__: str
    __qualname__: str

    @overload
    def __call__(self, expr: tuple[Any, ...] | list[Any], *args: Any, axis: Any = ..., where: Any = ..., init: Any = ...) -> Any: ...

    @overload
    def __call__(self, expr: ExprOp | complex, *, axis: Any, where: Any = ..., init: Any = ...) -> Reduce: ...

    @overload
    def __call__(self, expr: ExprOp | complex, *args: Any, where: Any = ..., init: Any = ...) -> PrimExpr: ...


def comm_reducer(fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce") -> Reducer:
    """A reducer from a combiner that is associative and commutative.

    Args:
        fcombine: of two values (two tuples of values, to reduce several at once) to their combination.
        fidentity: from the dtype (one for each value) to the identity element(s) of the combiner.
        name: of the function that is returned.

    Returns:
        `reducer(expr, axis, where=None, init=None)`, the reduction of `expr` over one or several reduce axes where
        `where` holds, starting at `init` in place of the identity; or `reducer(a, b, ...)`, the combination of values.
    """
    made: dict[tuple[str, ...], CommReducer] = {}  # one combiner object for each use with the same dtypes

    def combiner(dtypes: tuple[str, ...], single: bool) -> CommReducer:
        if dtypes not in made:
            made[dtypes] = _make_combiner(fcombine, fidentity, dtypes, single)
        return made[dtypes]

    def reducer(expr: Any, *args: Any, axis: Any = None, where: Any = None, init: Any = None) -> Any:
        by_name = axis is not None
        if not by_name:
            axis, where, init, args = _by_position(args, where, init, name)
        is_axis = isinstance(axis, IterVar) or (isinstance(axis, (list, tuple)) and all(isinstance(a, IterVar) for a in axis))
        if not is_axis and by_name:
            raise DeclarationError(f"{name} over {axis!s}, which is no reduction axis; make it with te.reduce_axis")
        if not is_axis:
            # te.max(a, b, c, d): by position the third and fourth value came as `where` and `init`
            values = [expr, axis, *(value for value in (where, init) if value is not None), *args]
            result = values[0]
            for value in values[1:]:
                result = fcombine(result, value)
            return result
        single = not isinstance(expr, (tuple, list))
        source = tuple(convert(item) for item in ((expr,) if single else expr))
        starts = _starts(init, source, name)
        condition = to_bool(where) if where is not None else const(True)
        axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
        _check_axes(axes, name)
        found = combiner(tuple(item.dtype for item in source), single)
        reductions = tuple(Reduce(found, source, axes, condition, i, starts) for i in range(len(source)))
        return reductions[0] if single else reductions

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"{name}(expr, axis, where=None, init=None): reduce over axes; {name}(a, b, ...): combine values."
    return reducer


def _make_combiner(fcombine: Callable[..., Any], fidentity: Callable[..., Any], dtypes: tuple[str, ...], single: bool) -> CommReducer:
    names = [*inspect.signature(fcombine).parameters][:2]
    lhs, rhs = (tuple(Var(side if single else f"{side}_{i}", dtype) for i, dtype in enumerate(dtypes)) for side in names)
    result = fcombine(lhs[0], rhs[0]) if single else fcombine(lhs, rhs)
    identity = fidentity(*dtypes)
    if not single and not (isinstance(result, (tuple, list)) and isinstance(identity, (tuple, list))):
        raise DeclarationError(
            f"a reducer of {len(dtypes)} values: fcombine and fidentity return a tuple of as many, not {result!s} and {identity!s}"
        )
    results, identities = ((result,), (identity,)) if single else (tuple(result), tuple(identity))
    if len(results) != len(dtypes) or len(identities) != len(dtypes):
        raise DeclarationError(
            f"a reducer of {len(dtypes)} values needs as many results and identity elements, not {len(results)} and {len(identities)}"
        )
    for value, dtype in zip(results, dtypes, strict=True):
        if convert(value).dtype != dtype:
            raise DeclarationError(f"the combiner makes {convert(value).dtype} out of {dtype}; both must be the same")
    return CommReducer(lhs, rhs, tuple(map(convert, results)), tuple(cast(e, dtype) for e, dtype in zip(identities, dtypes, strict=True)))


def _by_position(args: tuple[Any, ...], where: Any, init: Any, name: str) -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """axis, where, init and what follows them, of a call that gives them by position."""
    if not args:
        raise DeclarationError(f"{name} takes an axis to reduce over, or another value to combine with")
    axis, *rest = args
    where = rest.pop(0) if rest and where is None else where
    init = rest.pop(0) if rest and init is None else init
    return axis, where, init, tuple(rest)


def _starts(init: Any, source: tuple[PrimExpr, ...], name: str) -> tuple[PrimExpr, ...]:
    if init is None:
        return ()
    items = init if isinstance(init, (tuple, list)) else (init,)
    if len(items) != len(source):
        raise DeclarationError(f"{name} of {len(source)} values has {len(items)} init values; give one for each")
    return tuple(const(i, s.dtype) if isinstance(i, (int, float)) else cast(i, s.dtype) for i, s in zip(items, source, strict=True))


def _check_axes(axes: tuple[IterVar, ...], name: str) -> None:
    if not axes:
        raise DeclarationError(f"{name} over no axis; give a te.reduce_axis or a list of them")
    for axis in axes:
        if axis.iter_type != IterVar.COMM_REDUCE:
            raise DeclarationError(f"{name} over {axis.name}, which is no reduction axis; make it with te.reduce_axis")


sum = comm_reducer(lambda x, y: x + y, lambda dtype: const(0, dtype), name="sum")
# Of NaN these two say what `a > b` does, so the order of the terms decides; `greatest` and `least` don't depend on it.
max = comm_reducer(arithmetic.maximum, intrin.min_value, name="max")
min = comm_reducer(arithmetic.minimum, intrin.max_value, name="min")


def _of_law(law: Law, of_integers: Reducer, worst: Callable[[str], PrimExpr]) -> Reducer:
    def combine(a: Any, b: Any) -> Any:
        return law.combine((a,), (b,))[0] if parse_dtype(a.dtype).is_float else of_integers(a, b)

    def identity(dtype: str) -> PrimExpr:
        return law.neutral[0](dtype) if parse_dtype(dtype).is_float and law.neutral[0] is not None else worst(dtype)

    return comm_reducer(combine, identity, name=law.name)


greatest = _of_law(GREATEST, max, intrin.min_value)
least = _of_law(LEAST, min, intrin.max_value)

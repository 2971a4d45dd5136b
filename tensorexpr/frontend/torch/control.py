"""Operators of PyTorch that take functions: branches, loops, and regions in which gradients are off.

A function is a graph inside of the program's; `Context.inlined` makes its nodes where the builder is. The body of a loop is a function of
the module, as `relax.op.loop` takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ... import relax
from ...errors import DeclarationError, TypeMismatchError
from .table import Context, aten

_RELATIONS = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def _sequence(c: Context, make: Callable[[], Sequence[Any]]) -> Any:
    """Bindings of their own, and a tuple of values."""
    outer = c.builder.begin_scope()
    try:
        fields = tuple(make())
    finally:
        blocks = c.builder.end_scope(outer)
    return relax.SeqExpr(blocks, relax.Tuple(fields))


def _fields(c: Context, whole: Any, wanted: Sequence[Any]) -> list[Any]:
    """The values of a tuple, with the extents that PyTorch knows of them."""
    found = []
    for n, (info, described) in enumerate(zip(whole.struct_info.fields, wanted, strict=True)):
        value = c.builder.emit(relax.TupleGetItem(whole, n))
        # What branches or turns have in common may be less than that.
        is_open = isinstance(info, relax.TensorStructInfo) and info.extents is None
        found.append(c.builder.match_cast(value, relax.TensorStructInfo(c.sizes_of(described), info.dtype)) if is_open else value)
    return found


@aten("cond")
def _cond(c: Context, condition: Any, yes: Any, no: Any, operands: Sequence[Any] = ()) -> Any:
    wanted = c.result
    if isinstance(condition, bool):
        return c.inlined(yes if condition else no, operands)
    if condition is None:
        raise DeclarationError("a branch by sizes is taken by one comparison of two of them; export with fixed sizes, or compare tensors")
    if c.rank(condition):
        condition = c.reshape(condition, [])
    branches = [_sequence(c, partial(c.inlined, one, operands)) for one in (yes, no)]
    return _fields(c, c.builder.emit(relax.If(condition, *branches)), wanted)


def of_relation(c: Context, expr: Any, size: Callable[[Any], Any]) -> Any:
    """A relation of sizes, of sympy, as a tensor; None for what is no single one."""
    name = _RELATIONS.get(getattr(expr, "rel_op", ""))
    if name is None:
        return None
    both = c.op("shape_to_tensor", relax.ShapeExpr((size(expr.lhs), size(expr.rhs))))
    left, right = (c.op("take", both, relax.const(n, "int64"), axis=0) for n in range(2))
    return c.op(name, left, right)


class Turns:
    """The body of a loop.

    Args:
        states, others: what goes from turn to turn, and what stays.

    Raises:
        TypeMismatchError: for a state that is a number, whose value only a run would know.
    """

    def __init__(self, c: Context, states: Sequence[Any], others: Sequence[Any]) -> None:
        for one in states:
            if not isinstance(one, relax.Expr):
                raise TypeMismatchError(f"a loop goes from turn to turn with tensors, not with the number {one}; use torch.tensor({one})")
        self._c, self._others = c, others
        self.number = relax.Var("turn", relax.TensorStructInfo((), "int64"))
        self.states = [relax.Var(c.builder.get_unique_name("state"), one.struct_info) for one in states]
        # Constants stand in the body as they are, and numbers aren't values of graphs.
        self.captured = [one for one in others if isinstance(one, relax.Expr) and not isinstance(one, relax.Constant)]
        # What random numbers depend on: each turn draws others.
        self._outer = [] if c.seed is None else [c.seed, *c.turns]
        self.captured += self._outer
        self._inside = [relax.Var(c.builder.get_unique_name("captured"), one.struct_info) for one in self.captured]

    @property
    def others(self) -> list[Any]:
        """What stays, as the body sees it."""
        inside = iter(self._inside)
        return [next(inside) if isinstance(one, relax.Expr) and not isinstance(one, relax.Constant) else one for one in self._others]

    def taken(self, initial: Sequence[Any], make: Callable[[], Sequence[Any]], wanted: Sequence[Any], **limits: Any) -> list[Any]:
        """The values of the loop: the last states, and results of all turns stacked.

        Raises:
            TypeMismatchError: for a state that is something else after a turn.
        """
        c = self._c
        around = c.seed, c.turns
        if self._outer:
            c.seed, *turns = self._inside[-len(self._outer) :]
            c.turns = [*turns, self.number]
        body = relax.Function((self.number, *self.states, *self._inside), _sequence(c, make))
        c.seed, c.turns = around
        returned: Any = body.ret_struct_info
        after = returned.fields[1:]
        for state, info in zip(self.states, after, strict=False):
            if info != state.struct_info:
                raise TypeMismatchError(f"a state of the loop is {state.struct_info}, and after a turn {info}")
        rows = [relax.TensorStructInfo(None, one.dtype, ndim=one.ndim + 1) for one in after[len(initial) :]]
        stated = relax.TupleStructInfo((*after[: len(initial)], *rows))
        name = c.builder.add_func(body, "turn")
        whole = c.builder.emit(relax.op.loop(name, tuple(initial), tuple(self.captured), sinfo_args=stated, **limits))
        return _fields(c, whole, wanted)


@aten("while_loop")
def _while_loop(c: Context, condition: Any, body: Any, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    wanted, turns = c.result, Turns(c, carried, additional)

    def asked(states: Sequence[Any], others: Sequence[Any]) -> Any:
        (found,) = c.inlined(condition, [*states, *others])
        return c.reshape(found, []) if c.rank(found) else found

    def turn() -> Sequence[Any]:
        states = c.inlined(body, [*turns.states, *turns.others])
        return asked(states, turns.others), *states

    return turns.taken(carried, turn, wanted, condition=asked(carried, additional))


@aten("scan")
def _scan(c: Context, combine: Any, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    wanted, turns = c.result, Turns(c, init, [*xs, *additional])
    length = c.cast(c.shape_of(xs[0])[0], "int64")

    def turn() -> Sequence[Any]:
        rows = [c.op("take", one, turns.number, axis=0) for one in turns.others[: len(xs)]]
        return relax.const(True, "bool"), *c.inlined(combine, [*turns.states, *rows, *turns.others[len(xs) :]])

    return turns.taken(init, turn, wanted, trip_count=length)


@aten("map_impl")
def _map(c: Context, body: Any, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    return _scan(c, body, [], xs, additional)


@aten("wrap_with_set_grad_enabled")
def _with_gradients(c: Context, is_enabled: bool, body: Any, *operands: Any) -> Any:
    return c.inlined(body, operands)


@aten("with_effects")
def _with_effects(c: Context, token: Any, effect: Any, *operands: Any) -> Any:
    if "check_errors" not in str(effect):
        raise DeclarationError(f"{effect} has an effect beside its value, which graphs have no order for")
    return [token]  # what LAPACK would report is an error when it runs


@aten("wrap_with_autocast")
def _with_autocast(c: Context, device: Any, dtype: Any, is_enabled: Any, caches: Any, body: Any, *operands: Any) -> Any:
    # Casts are nodes of the body already.
    return c.inlined(body, operands)

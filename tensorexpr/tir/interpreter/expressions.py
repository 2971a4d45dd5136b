"""Expressions as nested Python closures: built once, run as often as the loops say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import expr as ir
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..foreign import LIBM_FUNCTIONS
from ..intrin import INTRINSICS
from .access import load
from .arithmetic import (
    FLOAT_DIVISIONS,
    LANE_INT_DIVISIONS,
    LANE_OPS,
    SCALAR_INT_DIVISIONS,
    SCALAR_OPS,
    Linear,
    Thunk,
    converted,
    linear,
    wrapped,
)
from .calls import access_ptr, address_of, llvm_call, type_annotation
from .kernels import shuffle
from .launches import SHUFFLES
from .machine import Machine
from .memory_calls import assume, atomic_add, isnullptr, undef
from .packed import call_packed, call_trace, make_array, make_shape
from .storage import InterpreterError

# Terms of a linear form: a sum of thousands is a chain of closures, as the forms of all its parts would take time by the square.
_MOST_TERMS = 8


def _constant(machine: Machine, node: ir.IntImm | ir.StringImm) -> Thunk:
    value = node.value
    return lambda: value


def _float(machine: Machine, node: ir.FloatImm) -> Thunk:
    value = to_numpy(node.dtype).type(node.value)
    return lambda: value


def _var(machine: Machine, node: ir.Var) -> Thunk:
    slot, cells = machine.slot(node), machine.cells
    return lambda: cells[slot]


def _arithmetic(machine: Machine, node: ir.BinaryExpr) -> Thunk:
    a, b, dtype = machine.compile(node.a), machine.compile(node.b), parse_dtype(node.dtype)
    if dtype.lanes > 1:
        lane_op = LANE_OPS[type(node)]
        return lambda: lane_op(a(), b())
    op = SCALAR_OPS[type(node)]
    if not dtype.is_int:
        return lambda: op(a(), b())
    form = _linear_of(machine, node)
    if form is None:
        return wrapped(op, a, b, node.dtype)
    machine.linear[node] = form
    return linear(form, machine.cells, node.dtype)


def _linear_of(machine: Machine, node: ir.BinaryExpr) -> Linear | None:
    """A sum, a difference or a multiple as one form of all the variables in it; None for what isn't linear."""
    a, b = _term(machine, node.a), _term(machine, node.b)
    if len(a.cells) + len(a.thunks) + len(b.cells) + len(b.thunks) > _MOST_TERMS:
        return None
    match node:
        case ir.Add():
            return a.plus(b)
        case ir.Sub():
            return a.plus(b.scaled(-1))
        case ir.Mul() if isinstance(node.b, ir.IntImm):
            return a.scaled(node.b.value)
        case ir.Mul() if isinstance(node.a, ir.IntImm):
            return b.scaled(node.a.value)
    return None


def _term(machine: Machine, node: ir.PrimExpr) -> Linear:
    if isinstance(node, ir.IntImm):
        return Linear(node.value)
    if isinstance(node, ir.Var):
        return Linear(0, ((machine.slot(node), 1),))
    return machine.linear.get(node) or Linear(0, (), ((machine.compile(node), 1),))


def _compare(machine: Machine, node: ir.CmpExpr) -> Thunk:
    a, b, op = machine.compile(node.a), machine.compile(node.b), SCALAR_OPS[type(node)]
    return lambda: op(a(), b())


def _division(machine: Machine, node: ir.BinaryExpr) -> Thunk:
    a, b, dtype = machine.compile(node.a), machine.compile(node.b), parse_dtype(node.dtype)
    if dtype.is_float:
        op = FLOAT_DIVISIONS[type(node)]
        return lambda: op(a(), b())
    if dtype.lanes > 1:
        lane_op = LANE_INT_DIVISIONS[type(node)]
        return lambda: lane_op(a(), _nonzero_lanes(machine, b(), node))
    scalar_op = SCALAR_INT_DIVISIONS[type(node)]

    def divide(dividend: int, divisor: int) -> int:
        if divisor == 0:
            raise InterpreterError(f"division of {dividend} by zero in {node}")
        return scalar_op(dividend, divisor)

    return wrapped(divide, a, b, node.dtype)


def _nonzero_lanes(machine: Machine, divisor: Any, node: ir.PrimExpr) -> Any:
    """The divisor, with zeros replaced where the lane is switched off."""
    zero = divisor == 0
    if not zero.any():
        return divisor
    if zero[machine.active(None, len(divisor))].any():
        raise InterpreterError(f"division by zero in a lane of {node}")
    return np.where(zero, divisor.dtype.type(1), divisor)


def _and(machine: Machine, node: ir.And) -> Thunk:
    a, b = machine.compile(node.a), machine.compile(node.b)
    # Scalars stop at the first operand: in `i < n and A[i] > 0` the load may be out of bounds. Lanes compute both.
    return (lambda: a() and b()) if node.dtype == "bool" else (lambda: a() & b())


def _or(machine: Machine, node: ir.Or) -> Thunk:
    a, b = machine.compile(node.a), machine.compile(node.b)
    return (lambda: a() or b()) if node.dtype == "bool" else (lambda: a() | b())


def _not(machine: Machine, node: ir.Not) -> Thunk:
    a = machine.compile(node.a)
    return (lambda: not a()) if node.dtype == "bool" else (lambda: ~a())


def _select(machine: Machine, node: ir.Select) -> Thunk:
    condition, yes, no = machine.compile(node.condition), machine.compile(node.true_value), machine.compile(node.false_value)
    if parse_dtype(node.dtype).lanes > 1:
        return lambda: np.where(condition(), yes(), no())

    def run() -> Any:
        first, second = yes(), no()  # both arms are evaluated, as in compiled code
        return first if condition() else second

    return run


def _cast(machine: Machine, node: ir.Cast) -> Thunk:
    return converted(machine.compile(node.value), node.value.dtype, node.dtype)


def _ramp(machine: Machine, node: ir.Ramp) -> Thunk:
    base, stride = machine.compile(node.base), machine.compile(node.stride)
    dtype, steps = to_numpy(node.dtype), np.arange(node.lanes).astype(to_numpy(node.dtype))
    # in the ramp's own dtype, so that int8 lanes wrap as the machine's do
    return lambda: dtype.type(base()) + dtype.type(stride()) * steps


def _broadcast(machine: Machine, node: ir.Broadcast) -> Thunk:
    value, lanes, dtype = machine.compile(node.value), node.lanes, to_numpy(node.dtype)
    return lambda: np.full(lanes, value(), dtype)


def _shuffle(machine: Machine, node: ir.Shuffle) -> Thunk:
    vectors, picks, dtype = [machine.compile(v) for v in node.vectors], list(node.indices), to_numpy(node.dtype)

    def run() -> Any:
        lanes = np.concatenate([np.atleast_1d(np.asarray(v(), dtype)) for v in vectors])[picks]
        if len(picks) > 1:
            return lanes
        return lanes.item(0) if dtype.kind in "iub" else lanes[0]

    return run


def _let(machine: Machine, node: ir.Let) -> Thunk:
    slot, cells, value, body = machine.slot(node.var), machine.cells, machine.compile(node.value), machine.compile(node.body)

    def run() -> Any:
        # Expressions are shared: the variable may be bound around this, too, and its value is needed again behind the body.
        worth, outer = value(), cells[slot]
        cells[slot] = worth
        result = body()
        cells[slot] = outer
        return result

    return run


def _load(machine: Machine, node: ir.BufferLoad) -> Thunk:
    return load(machine, node)


def _not_lowered(machine: Machine, node: ir.ProducerLoad | ir.Reduce) -> Thunk:
    raise InterpreterError(f"{type(node).__name__} belongs to a tensor computation; lower it before it is interpreted: {node}")


def _call(machine: Machine, node: ir.Call) -> Thunk:
    special = _SPECIAL_CALLS.get(node.op)
    if special is not None:
        return special(machine, node)
    row = INTRINSICS.get(node.op)
    if row is None or row.evaluate is None:
        raise InterpreterError(f"the interpreter does not know the intrinsic {node.op}")
    args, evaluate = [machine.compile(arg) for arg in node.args], row.evaluate
    result, taken = to_numpy(node.dtype), [_computed_in(arg.dtype) for arg in node.args]

    def lanes() -> Any:
        return np.asarray(evaluate(*(t(a()) for t, a in zip(taken, args, strict=True)))).astype(result)

    if parse_dtype(node.dtype).lanes > 1:
        # lanes are arrays of their dtype already; bfloat16 alone goes to float32
        taken = [_keep if t is not np.float32 else np.float32 for t in taken]
        return lanes
    return (lambda: lanes().item()) if result.kind in "iub" else (lambda: lanes()[()])


def _keep(value: Any) -> Any:
    return value


def _computed_in(dtype: str) -> Callable[[Any], Any]:
    """Scalars take part as NumPy scalars; bfloat16, for which NumPy lacks functions, as float32."""
    return np.float32 if scalar_dtype(dtype) == "bfloat16" else to_numpy(dtype).type


def _if_then_else(machine: Machine, node: ir.Call) -> Thunk:
    condition, yes, no = (machine.compile(arg) for arg in node.args)
    if parse_dtype(node.args[0].dtype).lanes == 1:
        return lambda: yes() if condition() else no()
    blank = np.zeros(parse_dtype(node.dtype).lanes, to_numpy(node.dtype))

    def run() -> Any:
        chosen = condition()
        outer = machine.mask
        try:
            arms = []
            for arm, lanes in ((yes, chosen), (no, ~chosen)):
                machine.mask = lanes if outer is None else lanes & outer
                # What no lane takes isn't computed: its divisions and accesses may be illegal.
                arms.append(arm() if machine.mask.any() else blank)
        finally:
            machine.mask = outer
        return np.where(chosen, *arms)

    return run


def _likely(machine: Machine, node: ir.Call) -> Thunk:
    return machine.compile(node.args[0])


def _reinterpret(machine: Machine, node: ir.Call) -> Thunk:
    value, source, target = machine.compile(node.args[0]), to_numpy(node.args[0].dtype), to_numpy(node.dtype)

    def run() -> Any:
        bits = np.atleast_1d(np.asarray(value(), source)).view(target)
        if parse_dtype(node.dtype).lanes > 1:
            return bits
        return bits.item(0) if target.kind in "iub" else bits[0]

    return run


def _extern(machine: Machine, node: ir.Call) -> Thunk:
    name, *args = [machine.compile(arg) for arg in node.args]
    function = machine.externs.get(name()) or LIBM_FUNCTIONS.get(name())
    if function is None:
        known = ", ".join(machine.externs) or "none"
        raise InterpreterError(f"the C function {name()!r} can't be interpreted; pass a Python one in `externs` (given: {known})")
    return lambda: function(*(arg() for arg in args))


def _hint(machine: Machine, node: ir.Call) -> Thunk:
    return lambda: 0


_SPECIAL_CALLS: dict[str, Callable[[Machine, ir.Call], Thunk]] = {
    **dict.fromkeys(SHUFFLES, shuffle),
    "tir.tvm_warp_activemask": lambda machine, node: lambda: 0xFFFFFFFF,  # threads that don't take part have nothing that is read
    "tir.if_then_else": _if_then_else,
    "tir.likely": _likely,
    "tir.reinterpret": _reinterpret,
    "tir.call_extern": _extern,
    "tir.call_pure_extern": _extern,
    "tir.prefetch": _hint,
    "tir.no_load_merge": _hint,
    "tir.assume": assume,
    "tir.isnullptr": isnullptr,
    "tir.undef": undef,
    "tir.atomic_add": atomic_add,
    "tir.tvm_call_packed": call_packed,
    "tir.tvm_call_trace_packed": call_trace,
    "tir.tvm_stack_make_array": make_array,
    "tir.tvm_stack_make_shape": make_shape,
    "tir.type_annotation": type_annotation,
    "tir.tvm_access_ptr": access_ptr,
    "tir.address_of": address_of,
    "tir.call_llvm_intrin": llvm_call,
    "tir.call_llvm_pure_intrin": llvm_call,
}
BUILDERS: dict[type[ir.PrimExpr], Callable[[Machine, Any], Thunk]] = {
    ir.IntImm: _constant,
    ir.StringImm: _constant,
    ir.FloatImm: _float,
    ir.Var: _var,
    ir.SizeVar: _var,
    **dict.fromkeys((ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max), _arithmetic),
    **dict.fromkeys((ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE), _compare),
    **dict.fromkeys((ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod), _division),
    ir.And: _and,
    ir.Or: _or,
    ir.Not: _not,
    ir.Select: _select,
    ir.Cast: _cast,
    ir.BufferLoad: _load,
    ir.ProducerLoad: _not_lowered,
    ir.Reduce: _not_lowered,
    ir.Ramp: _ramp,
    ir.Broadcast: _broadcast,
    ir.Shuffle: _shuffle,
    ir.Let: _let,
    ir.Call: _call,
}

"""The functions of expressions: name -> builder. A call makes the node that it names, with nothing folded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...tir import arithmetic, bitwise, builtin, device_intrin, foreign, intrin, llvm_intrin, pointers, unknown
from ...tir import expr as ir
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype, scalar_dtype, with_lanes
from .old_forms import stating_dtype
from .operators import comparison, connective, node
from .values import Number, as_condition, as_expr, is_scalable, matched


def _raw(row: intrin.Intrinsic) -> Callable[..., ir.PrimExpr]:
    """The call of a function of numbers; what takes floats gets integers as float32."""

    def build(*args: Any) -> ir.PrimExpr:
        if len(args) != row.arity:
            raise DeclarationError(f"T.{row.name} takes {row.arity} operand{'s' * (row.arity != 1)}, not {len(args)}")
        operands = matched(*args)
        if row.kind in ("float", "predicate") and not parse_dtype(operands[0].dtype).is_float:
            wanted = with_lanes("float32", parse_dtype(operands[0].dtype).lanes)
            operands = tuple(arithmetic.cast(operand, wanted) for operand in operands)
        first = operands[0].dtype
        dtype = with_lanes("bool", parse_dtype(first).lanes) if row.kind == "predicate" else first
        return ir.Call(dtype, f"tir.{row.name}", operands)

    return build


def _typed(dtype: str, name: str) -> Callable[..., ir.PrimExpr]:
    """The call of something whose value is always of one dtype."""
    return lambda *args: ir.Call(dtype, f"tir.{name}", tuple(map(_pointer_or_value, args)))


def _pointer_or_value(arg: Any) -> ir.PrimExpr:
    """A buffer given to a call is its pointer."""
    return arg.data if isinstance(arg, Buffer) else as_expr(arg)


def _if_then_else(cond: Any, t: Any, f: Any) -> ir.PrimExpr:
    true_value, false_value = matched(t, f)
    return ir.Call(true_value.dtype, "tir.if_then_else", (as_condition(cond), true_value, false_value))


def _likely(cond: Any) -> ir.PrimExpr:
    condition = as_condition(cond)
    return ir.Call(condition.dtype, "tir.likely", (condition,))


def _select(condition: Any, true_value: Any, false_value: Any) -> ir.PrimExpr:
    left, right = matched(true_value, false_value)
    return ir.Select(as_condition(condition), left, right)


def _cast(dtype: str, value: Any) -> ir.PrimExpr:
    expr = as_expr(value)
    wanted = parse_dtype(dtype)
    if "handle" in (wanted.code, parse_dtype(expr.dtype).code) or wanted.lanes != parse_dtype(expr.dtype).lanes:
        return arithmetic.cast(expr, dtype)  # which says what is wrong, or broadcasts
    return ir.Cast(dtype, expr)


def _lanes(lanes: Any) -> Any:
    if is_scalable(lanes):
        return lanes
    count = arithmetic.as_int(lanes)
    if count is None or count < 1:
        raise DeclarationError(f"the number of lanes is a positive constant, or one times T.vscale(), not {lanes}")
    return count


def _ramp(base: Any, stride: Any, lanes: Any) -> ir.PrimExpr:
    first, step = matched(base, stride)
    return ir.Ramp(first, step, _lanes(lanes))


def _broadcast(value: Any, lanes: Any) -> ir.PrimExpr:
    return ir.Broadcast(as_expr(value), _lanes(lanes))


def _shuffle(vectors: Any, indices: Any) -> ir.PrimExpr:
    chosen = [arithmetic.as_int(index) for index in indices]
    if not vectors or any(index is None for index in chosen):
        raise DeclarationError("T.Shuffle takes a list of vectors and a list of constants, the numbers of the lanes")
    return ir.Shuffle(tuple(map(as_expr, vectors)), tuple(int(index) for index in indices))


def _reinterpret(dtype: str, value: Any) -> ir.PrimExpr:
    return intrin.reinterpret(dtype, as_expr(value))


def _call_extern(op: str) -> Callable[..., ir.PrimExpr]:
    def build(dtype: str, func_name: str, *args: Any) -> ir.PrimExpr:
        parse_dtype(dtype)
        return ir.Call(dtype, op, (as_expr(func_name), *map(_pointer_or_value, args)))

    return build


def _call_llvm(build: Callable[..., ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    return lambda dtype, name, *args: build(dtype, name, *map(_pointer_or_value, args))


def _call_intrin(dtype: str, func_name: str, *args: Any) -> ir.PrimExpr:
    name = func_name if func_name.startswith("tir.") else f"tir.{func_name}"
    return intrin.call_intrin(dtype, name, *map(_pointer_or_value, args))


def _call_packed(*args: Any) -> ir.PrimExpr:
    return foreign.call_packed(*(arg if isinstance(arg, (str, Buffer)) else as_expr(arg) for arg in args))


def _trace_packed(*args: Any) -> ir.PrimExpr:
    listed = tuple(map(as_expr, args))
    if len(listed) < 2:
        raise DeclarationError("T.tvm_call_trace_packed takes the name of a function and at least one value")
    return ir.Call(listed[-1].dtype, foreign.TRACE, listed)


def _atomic_add(pointer: Any, value: Any) -> ir.PrimExpr:
    address = as_expr(pointer)
    if isinstance(address, ir.BufferLoad):
        return builtin.atomic_add(address, as_expr(value))
    # The first argument tells: a type_annotation in tvm_access_ptr, the load itself in address_of.
    element = address.args[0].dtype if isinstance(address, ir.Call) and address.args else "float32"
    worth = arithmetic.convert(value, scalar_dtype(element)) if isinstance(value, Number) else as_expr(value)
    return ir.Call(worth.dtype, "tir.atomic_add", (address, worth))


def _constant(build: Callable[[str], ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    return lambda dtype: build(dtype)


def _over_all(build: Callable[..., ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    return lambda *args: build(*map(as_condition, args))


def _on_values(build: Callable[..., ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    """A builder of tir on values of the script; strings stay."""
    return lambda *args: build(*(arg if isinstance(arg, (str, *Number)) else as_expr(arg) for arg in args))


# Nodes by their own names, which the printer takes where an operator would calculate.
_NODES: dict[str, Callable[..., ir.PrimExpr]] = {
    **{kind.__name__: node(kind) for kind in (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)},
    **{kind.__name__: comparison(kind) for kind in (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)},
    "And": connective(ir.And),
    "Or": connective(ir.Or),
    "Not": lambda a: ir.Not(as_condition(a)),
    "Select": _select,
    "Cast": _cast,
    "cast": lambda value, dtype: _cast(dtype, value),
    "Ramp": _ramp,
    "ramp": _ramp,
    "Broadcast": _broadcast,
    "broadcast": _broadcast,
    "Shuffle": _shuffle,
}
_ARITHMETIC: dict[str, Callable[..., ir.PrimExpr]] = {
    "min": node(ir.Min),
    "max": node(ir.Max),
    "truncdiv": node(ir.Div),
    "truncmod": node(ir.Mod),
    "floordiv": node(ir.FloorDiv),
    "floormod": node(ir.FloorMod),
    "indexdiv": node(ir.FloorDiv),
    "indexmod": node(ir.FloorMod),
    "ceildiv": _on_values(arithmetic.ceildiv),
    "abs": lambda x: intrin.abs(as_expr(x)),
    "all": _over_all(arithmetic.all),
    "any": _over_all(arithmetic.any),
    "max_value": _constant(intrin.max_value),
    "min_value": _constant(intrin.min_value),
    "infinity": _constant(intrin.infinity),
    "undef": builtin.undef,
    "q_multiply_shift": _on_values(builtin.q_multiply_shift),
    "q_multiply_shift_per_axis": _on_values(builtin.q_multiply_shift_per_axis),
    "vectorlow": _on_values(builtin.vectorlow),
    "vectorhigh": _on_values(builtin.vectorhigh),
    "vectorcombine": _on_values(builtin.vectorcombine),
    "large_uint_imm": builtin.large_uint_imm,
}
_SPECIAL: dict[str, Callable[..., ir.PrimExpr]] = {
    "if_then_else": _if_then_else,
    "likely": _likely,
    "reinterpret": _reinterpret,
    "call_extern": _call_extern("tir.call_extern"),
    "call_pure_extern": _call_extern("tir.call_pure_extern"),
    "call_llvm_intrin": _call_llvm(llvm_intrin.call_llvm_intrin),
    "call_llvm_pure_intrin": _call_llvm(llvm_intrin.call_llvm_pure_intrin),
    "llvm_lookup_intrinsic_id": lambda name: name,  # calls take names here
    "call_intrin": _call_intrin,
    "call_packed": _call_packed,
    "tvm_call_packed": _call_packed,
    "tvm_call_trace_packed": _trace_packed,
    "type_annotation": pointers.type_annotation,
    "tvm_stack_make_array": _typed("handle", "tvm_stack_make_array"),
    "tvm_stack_make_shape": _typed("handle", "tvm_stack_make_shape"),
    "tvm_access_ptr": _typed("handle", "tvm_access_ptr"),
    "address_of": lambda element: pointers.address_of(as_expr(element)),
    "no_load_merge": _typed("int32", "no_load_merge"),
    "assume": lambda cond: ir.Call("bool", "tir.assume", (as_condition(cond),)),
    "isnullptr": _typed("bool", "isnullptr"),
    "atomic_add": _atomic_add,
}
_ALIASES = {"power": "pow", "ctpop": "popcount"}


def _bitwise(name: str, build: Callable[..., ir.PrimExpr]) -> Callable[..., ir.PrimExpr]:
    """Bit operations on bools are connectives."""
    raw = _raw(intrin.INTRINSICS[f"tir.{name}"])

    def choose(*args: Any) -> ir.PrimExpr:
        bools = all(not isinstance(arg, Number) and parse_dtype(as_expr(arg).dtype).code == "bool" for arg in args)
        return build(*map(as_expr, args)) if bools else raw(*args)

    return choose


def _functions() -> dict[str, Callable[..., ir.PrimExpr]]:
    rows = [row for row in intrin.INTRINSICS.values() if row.kind in ("float", "same", "predicate", "int") or row.name == "ldexp"]
    table = {row.name: _raw(row) for row in rows if row.name != "ldexp"}
    table["ldexp"] = lambda x, n: intrin.ldexp(as_expr(x), as_expr(n))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"):
        table[name] = _bitwise(name, getattr(bitwise, name))
    return {**table, **{alias: table[name] for alias, name in _ALIASES.items()}}


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> ir.CommReducer:
    """A combiner as a value: ``T.comm_reducer(lambda x, y: x + y, [T.float32(0)])``.

    Args:
        combiner: of as many accumulators and then as many new values as there are identity elements; one value, or a
            tuple of them.

    Raises:
        DeclarationError: if the numbers don't fit.
    """
    start = tuple(map(as_expr, identity))
    names = list(inspect.signature(combiner).parameters)
    if len(names) != 2 * len(start):
        raise DeclarationError(f"a combiner of {len(start)} values takes {2 * len(start)} parameters, not {len(names)}")
    variables = [ir.Var(name, value.dtype) for name, value in zip(names, (*start, *start), strict=True)]
    made = combiner(*variables)
    result = tuple(map(as_expr, made if isinstance(made, (tuple, list)) else (made,)))
    if len(result) != len(start):
        raise DeclarationError(f"the combiner gives {len(result)} values for {len(start)} identity elements")
    return ir.CommReducer(tuple(variables[: len(start)]), tuple(variables[len(start) :]), result, start)


_DEVICE = {name: device_intrin.builder(name) for name in device_intrin.DEVICE_INTRINSICS}
EXPRESSIONS: Mapping[str, Callable[..., ir.PrimExpr]] = {
    **_DEVICE,
    "Any": unknown.Any,
    "call_cpacked": _DEVICE["tvm_call_cpacked"],
    "call_cpacked_lowered": _DEVICE["tvm_call_cpacked_lowered"],
    "call_packed_lowered": _DEVICE["tvm_call_packed_lowered"],
    **{name: stating_dtype(name, build) for name, build in {**_functions(), **_NODES, **_ARITHMETIC, **_SPECIAL}.items()},
}

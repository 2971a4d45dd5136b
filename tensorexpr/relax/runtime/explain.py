"""What became of a graph: its kernels with their schedules, what wasn't fused and why, weights' layouts, and the memory plan, as text.

fused_matmul_add_gelu, once: (16, 64), (64, 32), (32) -> (16, 32)
    schedule by rule: T_matmul: a contraction: rows i, columns j, summed over k
    argument 1 is packed: [i, j] -> [j // 16, i, j % 16]
    not with layer_norm, which reads its result: both sum
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...errors import TensorExprError
from ...target import Target
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.function import GlobalVar, PrimFunc
from ..expr import Call, Function, SeqExpr, Tuple, TupleGetItem, Var
from ..ops.row import ROWS, Pattern
from ..regions import regions_of
from ..struct_info import TensorStructInfo, TupleStructInfo
from ..tensor_function import plain_arguments
from ..transform.annotate_pattern import pattern_of_function
from ..visitor import walk
from .stretch import VIEWS, Stretch

_SUMS = (Pattern.REDUCTION, Pattern.OUT_FUSABLE)
_RULE = "rule"
_TOGETHER = ": computed together"  # of stages, each of which has its own line before


@dataclass
class _Kernel:
    """What is said of a kernel."""

    shapes: dict[str, int] = field(default_factory=dict)  # of its calls, with how many there are
    reasons: dict[str, None] = field(default_factory=dict)


def explained(
    functions: Mapping[str, Function],
    kernels: Mapping[str, PrimFunc],
    origins: Mapping[str, str],
    layouts: Mapping[str, Mapping[int, Any]],
    target: Target,
) -> str:
    """Lines on each kernel, in the order of calls.

    Args:
        functions: of graphs, by name.
        kernels: the tensor functions, where they are known: not those of a library.
        origins: where each kernel's schedule comes from.
        layouts: arguments that are passed packed.
        target: of the kernels.
    """
    found: dict[str, _Kernel] = {}
    for func in functions.values():
        for node in walk(func.body):
            if isinstance(node, SeqExpr):
                _look_at(node, kernels, origins.keys(), found)
    lines: list[str] = []
    for name in dict.fromkeys([*found, *origins]):  # those that nothing calls last
        one = found.get(name, _Kernel())
        lines += [f"{name}, {_times(count)}: {shapes}" for shapes, count in one.shapes.items()] or [f"{name}: no graph calls it"]
        lines += [f"    schedule: {line}" for line in _schedule_lines(kernels.get(name), origins[name], target)]
        lines += [f"    argument {n} is packed: {_readable(layout)}" for n, layout in layouts.get(name, {}).items()]
        lines += [f"    {line}" for line in _region_lines(kernels.get(name))]
        lines += [f"    {reason}" for reason in one.reasons]
    return "\n".join(lines)


def schedule_of(func: PrimFunc | None, origin: str, target: Target) -> str:
    """Where a kernel's schedule comes from, and which rule took it, as one line."""
    return "; ".join(_schedule_lines(func, origin, target))


def _schedule_lines(func: PrimFunc | None, origin: str, target: Target) -> Sequence[str]:
    if func is None or origin != _RULE:
        return [origin]
    try:
        from ...spaces.explain import explain_default  # which makes schedules, and is asked for seldom

        said = explain_default([one for one in plain_arguments(func) if isinstance(one, Tensor)], target).splitlines()
    except TensorExprError:
        return [origin]
    together = said[-1].split(": ")[0].split(", ") if _TOGETHER in said[-1] else []
    return [f"by rule, {line}" for line in said if _TOGETHER in line or line.split(":")[0] not in together]


def _region_lines(func: PrimFunc | None) -> Iterator[str]:
    """Which arguments are parts of larger tensors, one line each."""
    for n, (whole, begins) in sorted(regions_of(func).items()) if func is not None else ():
        yield f"argument {n} is the part of {whole} that begins at {begins}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _readable(layout: Any) -> str:
    places = ", ".join(re.sub(r"T\.int\d+\((\d+)\)", r"\1", str(index)) for index in layout.final_indices)
    return f"[{', '.join(var.name for var in layout.initial_indices)}] -> [{places}]"


def _shape(info: Any) -> str:
    if isinstance(info, TupleStructInfo):
        return ", ".join(map(_shape, info.fields))
    if not isinstance(info, TensorStructInfo) or info.extents is None:
        return str(info)
    extents = (str(one if as_int(one) is None else as_int(one)) for one in info.extents)
    return f"({', '.join(extents)})" + ("" if info.dtype == "float32" else f" {info.dtype}")


def _look_at(sequence: SeqExpr, kernels: Mapping[str, PrimFunc], names: Collection[str], found: dict[str, _Kernel]) -> None:
    """Note the calls of kernels of a sequence, and why each isn't one with what reads its result."""
    same: dict[Var, tuple[Var, bool]] = {}  # names of one value, and whether in another shape
    readers: dict[Var, dict[int, tuple[Any, bool]]] = {}
    bindings = list(sequence.bindings())
    for n, binding in enumerate(bindings):
        value = binding.value
        viewed = isinstance(value, Call) and value.op in VIEWS
        # Views and elements are other names of a value: what reads them reads it.
        if (viewed and isinstance(value.args[0], Var)) or isinstance(value, (Var, TupleGetItem)):
            source = value.args[0] if viewed else value.tuple_value if isinstance(value, TupleGetItem) else value
            if isinstance(source, Var):
                first, reshaped = same.get(source, (source, False))
                same[binding.var] = first, reshaped or viewed
            continue
        for node in walk(value):
            if isinstance(node, Var):
                first, reshaped = same.get(node, (node, False))
                # By binding: a call that reads a value twice is one reader.
                readers.setdefault(first, {})[n] = value, reshaped
    returned = {same.get(node, (node, False))[0] for node in walk(sequence.body) if isinstance(node, Var)}
    for binding in bindings:
        call = binding.value
        name = _callee(call)
        if name in names and isinstance(call.args[1], Tuple):
            one = found.setdefault(name, _Kernel())
            shapes = f"{', '.join(_shape(arg.struct_info) for arg in call.args[1].fields)} -> {_shape(call.sinfo_args[0])}"
            one.shapes[shapes] = one.shapes.get(shapes, 0) + 1
            reason = _reason(name, list(readers.get(binding.var, {}).values()), binding.var in returned, kernels)
            if reason:
                one.reasons.setdefault(reason)


def _callee(call: Any) -> str:
    """The kernel that a call calls; "" for other values."""
    known = isinstance(call, Call) and call.op in ("relax.call_tir", "relax.call_tir_inplace") and isinstance(call.args[0], GlobalVar)
    return call.args[0].name_hint if known else ""


def _reason(name: str, readers: Sequence[tuple[Any, bool]], is_returned: bool, kernels: Mapping[str, PrimFunc]) -> str:
    """Why a kernel isn't one with what reads its result; "" if nothing else does, or it isn't known."""
    names = [_callee(call) or str(getattr(call, "op", "a function")).removeprefix("relax.") for call, _ in readers]
    if not readers:
        return ""
    if is_returned:
        return f"not with {names[0]}: its result is returned, too"
    if len(readers) > 1:
        listed = ", ".join(dict.fromkeys(names))
        return f"not with what reads its result, which are {len(readers)} calls, of {listed}: each would compute it again"
    (call, reshaped), reader = readers[0], names[0]
    behind = kernels.get(_callee(call))
    own = kernels.get(name)
    if own is None:
        return ""
    if behind is None:
        return f"not with {reader}, which reads its result: that is no kernel"
    why = "they are read in another shape" if reshaped else _patterns_reason(pattern_of_function(own), pattern_of_function(behind), reader)
    return f"not with {reader}, which reads its result: {why}"


def _patterns_reason(own: Pattern, behind: Pattern, reader: str) -> str:
    if Pattern.OPAQUE in (own, behind):
        return "one of them has several results, or isn't computed by tensors' definitions"
    if own in _SUMS and behind in _SUMS:
        return "both sum, take maxima or look at windows, and together they do not work row by row"
    if behind == Pattern.OUT_FUSABLE:
        return f"{reader} reads each element more than once, and would compute it as often"
    if own == Pattern.REDUCTION:
        return "a reduction of one tensor takes nothing behind it"
    if own == Pattern.OUT_FUSABLE:
        return f"{reader} reads it in another order, or repeats elements"
    return "something between them can't be in one kernel with both"


def memory_lines(stretches: Sequence[Stretch]) -> Iterator[str]:
    """A line for each native function: what it calls, and what memory it takes."""
    for one in stretches:
        inner = sum(buffer.size for buffer in one.buffers if buffer.kind == "arena")
        constants = sum(array._array.nbytes for array in one.constants)
        arena = f"intermediate results of {_bytes(inner)} take {_bytes(one.arena.size)}" if inner else "no intermediate results"
        calls = "a call of a kernel" if len(one.calls) == 1 else f"{len(one.calls)} calls of kernels"
        yield f"native function {one.number}: {calls}; {arena}; constants of {_bytes(constants)}"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def host_line(function: str, operator: str) -> str:
    """Why a call runs on NumPy's arrays."""
    row = ROWS[f"relax.{operator}"]
    reason = "it has no tensor computation" if row.te is None else "shapes or dtypes aren't known when it is built"
    return f"{operator} in {function}: on NumPy's arrays, as {reason}"

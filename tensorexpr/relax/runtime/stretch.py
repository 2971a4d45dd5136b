"""Stretches of a function's bindings that need no Python between them: calls of kernels on tensors whose shapes are constants.

    lv = R.call_tir(cls.matmul, (x, w), R.Tensor((2, 4)))     kernel 0: x, constant 0 -> arena 0
    lv1 = R.reshape(lv, (8,))                                 a view of it
    gv = R.call_tir(cls.exp, (lv1,), R.Tensor((8,)))          kernel 1: arena 0 -> output 0

A stretch takes tensors that are there before, and makes those that are used after it; what lives in between lies in an arena.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...codegen.signature import BufferParam, ScalarParam, Signature
from ...dataclass import dataclass, field
from ...runtime.ndarray import NDArray
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar
from ..expr import Binding, Call, Constant, PrimValue, Tuple, TupleGetItem, Var, VarBinding
from ..struct_info import ShapeExpr, StructInfo, TensorStructInfo, TupleStructInfo
from ..visitor import walk
from .memory import Arena, Lifetime, place

VIEWS = ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims")
_STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage")
_KILLS = ("relax.memory.kill_storage", "relax.memory.kill_tensor", "relax.vm.kill_object")
_IN_STORAGES = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
_MEMORY = (*_STORAGES, *_KILLS, "relax.builtin.alloc_tensor", *_IN_STORAGES)
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a buffer: the whole of it, in this shape."""

    buffer: int
    shape: Shape
    dtype: str


@dataclass(slots=True)
class Buffer:
    """Memory of a stretch: of an "input", a "constant", an "output", or in the "arena".

    `place` counts those of a kind; in the arena it is an offset.
    """

    kind: str
    size: int
    place: int = -1
    first: int = -1
    last: int = -1
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a kernel: its arguments are buffers, or integers. Without a name it copies the first buffer into the second."""

    name: str
    args: tuple[Buffer | int, ...]


@dataclass
class Stretch:
    """Bindings that run as one native function.

    Args:
        number: among those of the executable.
        bindings: how many there are.
        calls: what runs, in order.
        inputs: tensors from before: variables, with the way to an element of a tuple, and what they are.
        outputs: shape and dtype of the tensors that it makes.
        results: variables that are used after it, with their values in terms of inputs, outputs and constants.
        constants: arrays.
        arena: offsets of what lives inside.
    """

    number: int
    bindings: int
    calls: list[KernelCall]
    inputs: list[tuple[Var, tuple[int, ...], Tensor]]
    outputs: list[Tensor]
    results: list[tuple[Var, Any]]
    constants: list[NDArray]
    arena: Arena
    buffers: list[Buffer] = field(repr=False)


def static_tensor(info: StructInfo) -> tuple[Shape, str] | None:
    """Shape and dtype of a tensor, if they are constants."""
    if not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
        return None
    shape = [as_int(one) for one in info.extents]
    return None if None in shape else (tuple(int(one) for one in shape if one is not None), info.dtype)


class _Refused(Exception):
    """A binding that can't be part of a stretch."""


class _Builder:
    """One stretch while it grows."""

    def __init__(self, signature_of: Callable[[str], Signature | None]) -> None:
        self._signature_of = signature_of
        self.calls: list[KernelCall] = []
        self.buffers: list[Buffer] = []
        self.inputs: list[tuple[Var, tuple[int, ...], Tensor]] = []
        self.constants: list[NDArray] = []
        self._values: dict[Var, Any] = {}
        self._known: dict[Any, Tensor] = {}

    def add(self, binding: Binding) -> None:
        """Take a binding in.

        Raises:
            _Refused: if it can't be; then nothing has changed but inputs that nobody reads.
        """
        if not isinstance(binding, VarBinding):
            raise _Refused
        self._values[binding.var] = self._value(binding.value)

    def _value(self, expr: Any) -> Any:
        match expr:
            case Var():
                return self._values[expr] if expr in self._values else self._input(expr, (), expr.struct_info)
            case Constant():
                return self._constant(expr)
            case PrimValue(value) if as_int(value) is not None:
                return as_int(value)
            case Tuple(fields):
                return tuple(self._value(one) for one in fields)
            case TupleGetItem(value, index):
                whole = self._value(value)
                if not isinstance(whole, tuple):
                    raise _Refused
                return whole[index]
            case Call():
                return self._call(expr)
        raise _Refused

    def _tensor(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            raise _Refused
        return value

    def _input(self, var: Var, way: tuple[int, ...], info: StructInfo) -> Any:
        """A value from before the stretch."""
        if isinstance(info, TupleStructInfo):
            return tuple(self._input(var, (*way, n), one) for n, one in enumerate(info.fields))
        known = self._known.get((var, way))
        if known is None:
            known = self._new("input", info, len(self.inputs))
            self._known[var, way] = known
            self.inputs.append((var, way, known))
        return known

    def _new(self, kind: str, info: StructInfo, place: int = -1) -> Tensor:
        found = static_tensor(info)
        if found is None:
            raise _Refused
        shape, dtype = found
        self.buffers.append(Buffer(kind, math.prod(shape) * parse_dtype(dtype).itemsize, place))
        return Tensor(len(self.buffers) - 1, shape, dtype)

    def _constant(self, constant: Constant) -> Tensor:
        data = constant.data
        # Native code gets an address alone, without strides.
        if not isinstance(data, NDArray) or not data._array.flags.c_contiguous:
            raise _Refused
        # By identity: arrays of equal content are one already (`constants`).
        known = self._known.get(id(data))
        if known is None:
            known = self._new("constant", TensorStructInfo(data.shape, data.dtype), len(self.constants))
            self._known[id(data)] = known
            self.constants.append(data)
        return known

    def _memory(self, call: Call) -> Any:
        """Memory as a value: a tensor gets a place of its own, wherever the storage is."""
        if call.op in _STORAGES:
            found = [as_int(one) for one in getattr(call.args[0], "values", [None])]
            if None in found:
                raise _Refused
            stated = call.args[2].value if call.op == "relax.vm.alloc_storage" else "uint8"
            return self._new("arena", TensorStructInfo((math.prod(int(one or 0) for one in found),), stated))
        # Lifetimes follow from the calls of kernels, so the program needn't say them.
        if call.op in _KILLS:
            return ()
        if call.op in _IN_STORAGES:
            self._tensor(self._values.get(call.args[0]))
        return self._new("arena", call.struct_info)

    def _writing(self, name: str, args: Sequence[Any]) -> Any:
        """A call of a kernel with its results among the arguments."""
        values = [self._value(arg) for arg in args]
        tensors = [one for one in values if isinstance(one, Tensor)]
        scalars = [one for one in values if isinstance(one, int)]
        signature = self._signature_of(name)
        # A packed entry takes tensors, then numbers: a call in any other order isn't one.
        if signature is None or [*tensors, *scalars] != values:
            raise _Refused
        more = _symbols(signature, [one.shape for one in tensors], scalars)
        self._run(name, tensors, (*scalars, *more))
        for param, tensor in zip(signature.params, tensors, strict=False):
            self.buffers[tensor.buffer].is_written |= isinstance(param, BufferParam) and param.is_written
        return ()

    def _call(self, call: Call) -> Any:
        if call.op in _MEMORY:
            return self._memory(call)
        if isinstance(call.op, GlobalVar):
            return self._writing(call.op.name_hint, call.args)
        if call.op in VIEWS:
            # The same buffer: elements of a compact tensor lie where they lay.
            whole, found = self._tensor(self._value(call.args[0])), static_tensor(call.struct_info)
            if found is None:
                raise _Refused
            return Tensor(whole.buffer, *found)
        if call.op not in ("relax.call_tir", "relax.call_tir_inplace") or not isinstance(call.args[0], GlobalVar):
            raise _Refused
        name = call.args[0].name_hint
        signature = self._signature_of(name)
        if signature is None:
            raise _Refused
        given = self._value(call.args[1])
        tensors = [self._tensor(one) for one in (given if isinstance(given, tuple) else (given,))]
        scalars = _integers(call.args[2]) if len(call.args) > 2 else []
        info = call.sinfo_args[0]
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        places = call.attrs.get("inplace_indices") or [-1] * len(infos)
        # All that may refuse stands before the first `_run`: `add` promises that nothing has changed then.
        if any(static_tensor(one) is None for one in infos):
            raise _Refused
        copies = [n for n in places if n >= 0 and self.buffers[tensors[n].buffer].kind == "constant"]
        own = [found for one, n in zip(infos, places, strict=True) if n < 0 and (found := static_tensor(one))]
        shapes = [one.shape for one in tensors] + [shape for shape, _ in own]
        values = _symbols(signature, shapes, scalars)
        for n in copies:  # a constant stays what it is
            copy = self._new("arena", TensorStructInfo(tensors[n].shape, tensors[n].dtype))
            self._run("", (tensors[n], copy))
            tensors[n] = copy
        results = [tensors[n] if n >= 0 else self._new("arena", one) for one, n in zip(infos, places, strict=True)]
        made = [one for one, n in zip(results, places, strict=True) if n < 0]
        self._run(name, (*tensors, *made), (*scalars, *values))
        for one in results:
            self.buffers[one.buffer].is_written = True
        return tuple(results) if isinstance(info, TupleStructInfo) else results[0]

    def _run(self, name: str, tensors: Sequence[Tensor], numbers: Sequence[int] = ()) -> None:
        # Time is counted in calls of kernels: views take no step, so memory lives from its first kernel to its last.
        step = len(self.calls)
        for tensor in tensors:
            buffer = self.buffers[tensor.buffer]
            buffer.first = step if buffer.first < 0 else buffer.first
            buffer.last = step
        self.calls.append(KernelCall(name, (*(self.buffers[tensor.buffer] for tensor in tensors), *numbers)))

    def begin(self, params: Sequence[Var]) -> None:
        """Let the first inputs be parameters, if all are tensors."""
        # All or none: a call passes its arguments as they are, by place.
        if all(static_tensor(param.struct_info) for param in params):
            for param in params:
                self._input(param, (), param.struct_info)

    def finish(self, number: int, bindings: Sequence[Binding], used_after: Callable[[Var], bool], is_whole: bool) -> Stretch:
        """The stretch: what is used after it becomes outputs, the rest lies in the arena. A whole function keeps all its inputs."""
        outputs: list[Tensor] = []

        def outside(value: Any) -> Any:
            """A value as what is known outside: inputs, outputs and constants."""
            if isinstance(value, tuple):
                return tuple(map(outside, value))
            if isinstance(value, int):
                return value
            buffer = self.buffers[value.buffer]
            if buffer.kind == "arena":
                buffer.kind, buffer.place = "output", len(outputs)
                outputs.append(value)
            return value

        # First the results: `outside` takes their buffers out of the arena, which is laid out for what is left.
        results = [(b.var, outside(self._values[b.var])) for b in bindings if used_after(b.var)]
        inner = [buffer for buffer in self.buffers if buffer.kind == "arena"]
        arena = place([Lifetime(one.size, one.first, one.last) for one in inner])
        for buffer, offset in zip(inner, arena.offsets, strict=True):
            buffer.place = offset
        # A refused binding may have left inputs that no kernel reads; places are numbered anew without them.
        used = [one for one in self.inputs if is_whole or self.buffers[one[2].buffer].first >= 0 or _is_result(one[2], results)]
        for n, (_, _, tensor) in enumerate(used):
            self.buffers[tensor.buffer].place = n
        return Stretch(number, len(bindings), self.calls, used, outputs, results, self.constants, arena, self.buffers)


def _is_result(tensor: Tensor, results: Sequence[tuple[Var, Any]]) -> bool:
    def inside(value: Any) -> bool:
        return any(map(inside, value)) if isinstance(value, tuple) else isinstance(value, Tensor) and value.buffer == tensor.buffer

    return any(inside(value) for _, value in results)


def _integers(expr: Any) -> list[int]:
    values = expr.values if isinstance(expr, ShapeExpr) else [one.value for one in expr.fields if isinstance(one, PrimValue)]
    found = [as_int(one) for one in values]
    if None in found:
        raise _Refused
    return [int(one) for one in found if one is not None]


def _symbols(signature: Signature, shapes: Sequence[Shape], scalars: Sequence[int]) -> list[int]:
    """The values of a kernel's shape variables, which stand behind its arguments.

    Raises:
        _Refused: if the arguments aren't those of the signature, or a variable stands in no shape by itself.
    """
    # Shapes are constants here, so what the kernel would check at each call is checked once, and symbols become numbers.
    arrays = [one for one in signature.params if isinstance(one, BufferParam)]
    numbers = [one for one in signature.params if isinstance(one, ScalarParam)]
    if len(arrays) != len(shapes) or len(numbers) != len(scalars) or signature.returns or list(signature.params) != [*arrays, *numbers]:
        raise _Refused
    values: dict[Symbol, int] = {param.var: value for param, value in zip(numbers, scalars, strict=True)}
    for param, shape in zip(arrays, shapes, strict=True):
        if param.strides or as_int(param.elem_offset) != 0:
            raise _Refused
        if len(param.shape) != len(shape) or parse_dtype(param.dtype).lanes > 1:
            raise _Refused
        for extent, actual in zip(param.shape, shape, strict=True):
            if isinstance(extent, Symbol):
                if values.setdefault(extent, actual) != actual:
                    raise _Refused
            elif as_int(extent) != actual:
                raise _Refused
    if any(var not in values for var in signature.symbols) or any(not parse_dtype(one.dtype).is_int for one in numbers):
        raise _Refused
    return [values[var] for var in signature.symbols]


def stretches(
    bindings: Sequence[Binding], body: Any, signature_of: Callable[[str], Signature | None], first_number: int, params: Sequence[Var]
) -> Mapping[int, Stretch]:
    """The stretches of a sequence by the place of their first binding; each has a kernel.

    Args:
        bindings: the sequence.
        body: its value.
        signature_of: how a kernel is called; None if there is none of that name.
        first_number: of the first stretch.
        params: of the function whose body it is.
    """
    # In the order of bindings, so that the last use stays.
    uses: dict[Var, int] = {}
    for n, binding in enumerate(bindings):
        uses.update((node, n) for node in walk(binding.value) if isinstance(node, Var))
    uses.update((node, len(bindings)) for node in walk(body) if isinstance(node, Var))
    found: dict[int, Stretch] = {}
    start, builder = 0, _Builder(signature_of)
    # A function that is one stretch is called with its parameters as they are, read or not: see `native.whole_function`.
    builder.begin(params)

    def close(end: int) -> None:
        # Views and copies alone aren't worth a call of native code.
        if any(call.name for call in builder.calls):
            run = bindings[start:end]
            found[start] = builder.finish(first_number + len(found), run, lambda var: uses.get(var, -1) >= end, len(run) == len(bindings))

    for n, binding in enumerate(bindings):
        try:
            builder.add(binding)
        except _Refused:
            close(n)
            start, builder = n + 1, _Builder(signature_of)
    close(len(bindings))
    return found

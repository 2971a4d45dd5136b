"""Calls as steps: of kernels, registered functions, functions of the module, and of what operators mean on NumPy's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import DeclarationError, GraphAssertionError, LoweringError
from ...runtime.ndarray import NDArray, wrapped
from ...tir.dtype import to_numpy
from ...tir.function import GlobalVar
from ...tir.op_registry import Op
from ..evaluator import meaning, said
from ..expr import (
    Call,
    Constant,
    ExternFunc,
    SeqExpr,
    Tuple,
    Var,
)
from ..ops.loop import iterate
from ..ops.row import row_of
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .frame import Frame, Read, Slots
from .host import array_of, converted, host_name, is_host, is_view, value_of
from .native import SMALL, NativeStretch
from .placement import Placement


class Machine:
    """What functions need from around: kernels, functions of the module, registered functions, and who watches.

    `call(name, function, args)` calls what has a name, so that a profiler or an instrument may stand between; `is_watched` says that one
    does, and then every binding is a step of its own.
    """

    kernels: Mapping[str, Callable[..., Any]]
    kernel_names: Collection[str]
    plans: dict[str, Any]
    call: Callable[[str, Callable[..., Any], Sequence[Any]], Any]
    place: Placement
    is_watched = False

    def given(self, value: Any) -> Any:
        """An argument of the user as functions take it."""
        return self.place(converted(value))

    def stretches(self, sequence: SeqExpr) -> Mapping[int, NativeStretch]:
        """The native stretches of a sequence by the places of their first bindings."""
        raise NotImplementedError

    def registered(self, name: str) -> Callable[..., Any]:
        """A registered function."""
        raise NotImplementedError


class Calls:
    """The calls of a function that becomes a plan."""

    name: str
    _frame: Frame
    _machine: Machine

    def _read(self, expr: Any) -> Read:
        """What finds the value of an expression."""
        raise NotImplementedError

    def _call(self, call: Call) -> Read:
        if not isinstance(call.op, Op):
            return self._plain_call(call)
        name = call.op.removeprefix("relax.")
        # Most calls are call_tir, whose operands are read by `_destination_passing`.
        args = [self._read(arg) for arg in call.args] if name != "call_tir" else []
        match name:
            case "call_tir" | "call_tir_with_grad" | "call_dps_packed":
                return self._destination_passing(call)
            case "call_tir_inplace":
                return self._inplace(call)
            case "call_pure_packed" | "call_inplace_packed":
                return self._packed(call.args[0], call.args[1:])
            case "make_closure":
                return lambda slots: partial(args[0](slots), *args[1](slots))
            case "invoke_closure" | "invoke_pure_closure":
                return lambda slots: args[0](slots)(*args[1](slots))
            # The value of an effect is the empty tuple, which Python's None becomes.
            case "print":
                text = call.attrs["format"]
                return lambda slots: print(said(args[0](slots), text, " ")) or ()
            case "assert_op":
                return self._assertion(args, call.attrs["format"])
            case "vm.call_tir_dyn":
                return self._with_shape(call.args[0].name_hint, args[1])
            case "shape_of":
                return lambda slots: tuple(args[0](slots).shape)
            case "loop":
                return self._loop(call.args[0].name_hint, args[1:])
        if is_host(call):
            return self._host(call)
        shown = ", ".join(f"{arg} is {arg.struct_info}" for arg in call.args if isinstance(arg, Var))
        raise LoweringError(
            f"{self.name}: {name} has become no tensor function, and has no meaning on NumPy's arrays ({shown}); "
            "give LegalizeOps a function for it"
        )

    def _host(self, call: Call) -> Read:
        """What the call's operator means on NumPy's arrays."""
        row = row_of(call)
        assert row is not None
        known = row.bound(call)
        reads = {name: self._read(value) for name, value in known.items() if name in row.arguments and value is not None}
        info, name, machine = call.struct_info, host_name(call), self._machine

        def run(*values: Any) -> Any:
            given = {**known, **dict(zip(reads, map(array_of, values), strict=True))}
            return machine.place(value_of(meaning(row, given, info)))

        parts = list(reads.values())
        if is_view(call) and machine.place.device is not None and isinstance(info, TensorStructInfo) and info.extents is not None:
            shape, whole = self._frame.numbers(info.extents), parts[0]
            return lambda slots: whole(slots).viewed(shape(slots))
        return lambda slots: machine.call(name, run, [part(slots) for part in parts])

    def _loop(self, body: str, args: Sequence[Read]) -> Read:
        plans, place = self._machine.plans, self._machine.place

        def run(slots: Slots) -> Any:
            plan = plans[body]
            given = [arg(slots) for arg in args]
            return iterate(plan, plan.func.ret_struct_info, given, array_of, lambda found: place(value_of(found)))

        return run

    @staticmethod
    def _assertion(args: Sequence[Read], text: str) -> Read:
        def check(slots: Slots) -> tuple[()]:
            value = args[0](slots)
            if not (bool(value.numpy()) if isinstance(value, NDArray) else bool(value)):
                raise GraphAssertionError(f"assert_op: {said(args[1](slots), text) or 'the condition does not hold'}")
            return ()

        return check

    def _plain_call(self, call: Call) -> Read:
        """A call of a function of the module, of a registered one or of a closure."""
        if isinstance(call.op, ExternFunc):
            return self._packed(call.op, call.args)
        args = [self._read(arg) for arg in call.args]
        if isinstance(call.op, GlobalVar):
            name, machine = call.op.name_hint, self._machine
            if name in machine.kernel_names:  # which writes its last arguments
                return lambda slots: _returned(machine.call(name, machine.kernels[name], [arg(slots) for arg in args]))
            return lambda slots: machine.plans[name]([arg(slots) for arg in args])
        callee = self._read(call.op)
        return lambda slots: callee(slots)(*[arg(slots) for arg in args])

    def _with_shape(self, name: str, args: Read) -> Read:
        """A call of a tensor function; of a shape at the end it gets the extents."""
        machine = self._machine

        def run(slots: Slots) -> tuple[()]:
            *given, last = args(slots)
            machine.call(name, machine.kernels[name], [*given, *(last if isinstance(last, tuple) else (last,))])
            return ()

        return run

    def _packed(self, func: Any, args: Sequence[Any]) -> Read:
        if not isinstance(func, ExternFunc):
            raise LoweringError(f"{self.name}: {func} is called as a registered function, which is named by a string")
        parts, name, machine = [self._read(arg) for arg in args], func.global_symbol, self._machine
        return lambda slots: machine.place(machine.call(name, machine.registered(name), [part(slots) for part in parts]))

    def _results(self, info: StructInfo) -> tuple[list[Read], bool]:
        """What makes the tensors that a destination-passing function fills, and whether there are several."""
        several = isinstance(info, TupleStructInfo)
        made: list[Read] = []
        for one in info.fields if isinstance(info, TupleStructInfo) else (info,):
            if not isinstance(one, TensorStructInfo) or one.extents is None or not one.dtype:
                raise LoweringError(f"{self.name}: a result is {one}: its shape and dtype have to be stated")
            made.append(_maker(self._frame.numbers(one.extents), one.dtype, self._machine.place))
        return made, several

    def _destination_passing(self, call: Call) -> Read:
        makers, several = self._results(call.sinfo_args[0])
        inputs = self._operands(call.args[1])
        extra = self._read(call.args[2]) if len(call.args) > 2 else None
        machine = self._machine
        callee = call.args[0]
        if not isinstance(callee, (GlobalVar, ExternFunc)):
            raise LoweringError(f"{self.name}: call_tir of {callee}, which is no function of the module")
        is_kernel = isinstance(callee, GlobalVar)
        name = callee.name_hint if isinstance(callee, GlobalVar) else callee.global_symbol

        def run(slots: Slots) -> Any:
            results = [make(slots) for make in makers]
            given = [one(slots) for one in inputs]
            more = () if extra is None else extra(slots)
            function = machine.kernels[name] if is_kernel else machine.registered(name)
            machine.call(name, function, [*given, *results, *more])
            return tuple(results) if several else results[0]

        return run

    def _inplace(self, call: Call) -> Read:
        """Results that are arguments are these; others are made."""
        makers, several = self._results(call.sinfo_args[0])
        inputs, places = self._operands(call.args[1]), call.attrs["inplace_indices"]
        extra = self._read(call.args[2]) if len(call.args) > 2 else lambda slots: ()
        fields = call.args[1].fields if isinstance(call.args[1], Tuple) else ()
        copied = [n for n, one in enumerate(fields) if n in places and isinstance(one, Constant)]  # a constant stays what it is
        machine, name = self._machine, call.args[0].name_hint

        def run(slots: Slots) -> Any:
            given = [one(slots) for one in inputs]
            for n in copied:
                given[n] = machine.place.copied(given[n])
            results = [make(slots) if place < 0 else given[place] for make, place in zip(makers, places, strict=True)]
            own = [one for one, place in zip(results, places, strict=True) if place < 0]
            machine.call(name, machine.kernels[name], [*given, *own, *extra(slots)])
            return tuple(results) if several else results[0]

        return run

    def _operands(self, args: Any) -> list[Read]:
        if isinstance(args, Tuple):
            return [self._read(one) for one in args.fields]
        info = args.struct_info
        if not isinstance(info, TupleStructInfo):
            raise DeclarationError(f"{self.name}: arguments of a tensor function are a tuple, not {args}")
        whole = self._read(args)
        return [lambda slots, n=n: whole(slots)[n] for n in range(len(info.fields))]  # type: ignore[misc]


def _returned(value: Any) -> Any:
    return () if value is None else value  # a number, which may be 0


def _maker(shape: Read, dtype: str, place: Placement) -> Read:
    if place.device is not None:
        return lambda slots: place.empty(shape(slots), dtype)
    element = to_numpy(dtype)
    most, new = SMALL // element.itemsize, np.empty

    def make(slots: Slots) -> NDArray:
        extents = shape(slots)
        # The product alone doesn't tell: that of (-2, -3) is 6. `empty` says what is wrong.
        if 0 <= math.prod(extents) <= most and min(extents, default=0) >= 0:
            return wrapped(new(extents, element), dtype)
        return place.empty(extents, dtype)

    return make

"""A function of a graph as a list of steps on numbered slots: what the virtual machine runs.

    slots      parameters, then a slot for each variable and each symbol
    steps      closures that read slots and write one: call a kernel, a registered function, take an element, choose a branch

All that can be decided before a call is: which kernel, which slots, extents that are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError, DeclarationError, LoweringError
from ...runtime.ndarray import NDArray, array, empty
from ...tir.arithmetic import as_int
from ...tir.expr import Add, Div, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, PrimExpr, Sub
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar
from ...tir.op_registry import Op
from ..evaluator import matched, meaning
from ..expr import (
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from ..ops.loop import iterate
from ..ops.row import row_of
from ..struct_info import ShapeExpr, StructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from .host import array_of, host_name, is_host, value_of

Slots = list[Any]
Read = Callable[[Slots], Any]
_ARITHMETIC: Mapping[type, Callable[[int, int], int]] = {
    Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b, FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b, Min: min, Max: max, Div: lambda a, b: int(a / b), Mod: lambda a, b: a - b * int(a / b),
}  # fmt: skip


class Machine:
    """What functions need from around: kernels, functions of the module, registered functions, and who watches.

    `call(name, function, args)` calls what has a name, so that a profiler or an instrument may stand between.
    """

    kernels: Mapping[str, Callable[..., Any]]
    plans: dict[str, Plan]
    call: Callable[[str, Callable[..., Any], Sequence[Any]], Any]

    def registered(self, name: str) -> Callable[..., Any]:
        """A registered function."""
        raise NotImplementedError


class Plan:
    """A function that can be called.

    Raises:
        LoweringError: for a call of an operator that has become no tensor function and has no meaning on NumPy's arrays.
    """

    def __init__(self, func: Function, name: str, machine: Machine, around: Plan | None = None) -> None:
        self.func, self.name, self._machine = func, name, machine
        self._slots: dict[Any, int] = dict(around._slots) if around is not None else {}
        self._outer = len(self._slots)
        self._count = self._outer
        self._params = [self._slot(param) for param in func.params]
        self._checks = [
            self._check(param.struct_info, f"argument {n} ({param.name_hint}) of {name}") for n, param in enumerate(func.params)
        ]
        self._steps, self._result = self._sequence(func.body)

    def __call__(self, args: Sequence[Any], around: Slots | None = None) -> Any:
        """The result for arguments.

        Raises:
            ArgumentError: for arguments that don't fit the signature.
        """
        if len(args) != len(self._params):
            names = ", ".join(param.name_hint for param in self.func.params)
            raise ArgumentError(f"{self.name} takes {len(self._params)} arguments ({names}), not {len(args)}")
        slots: Slots = [None] * self._count
        if around is not None:
            slots[: self._outer] = around[: self._outer]
        for slot, check, arg in zip(self._params, self._checks, args, strict=True):
            check(slots, arg)
            slots[slot] = arg
        for step in self._steps:
            step(slots)
        return self._result(slots)

    def _slot(self, thing: Any) -> int:
        if thing not in self._slots:
            self._slots[thing] = self._count
            self._count += 1
        return self._slots[thing]

    def _check(self, info: StructInfo, what: str) -> Callable[[Slots, Any], None]:
        """What looks whether a value is what it is stated to be, and gives symbols their values."""
        if isinstance(info, TensorStructInfo) and info.extents is not None and info.dtype:
            return self._tensor_check(info, info.extents, what)
        own = [(symbol, self._slot(symbol)) for symbol in symbols_of(info)]

        def match(slots: Slots, value: Any) -> None:
            known = {symbol: slots[slot] for symbol, slot in own if slots[slot] is not None}
            matched(value, info, known, what)
            for symbol, slot in own:
                slots[slot] = known.get(symbol)

        return match

    def _tensor_check(self, info: StructInfo, extents: Sequence[PrimExpr], what: str) -> Callable[[Slots, Any], None]:
        """The same for a tensor of known dtype and rank, in as few steps as can be."""
        dtype, ndim = info.dtype, len(extents)  # type: ignore[attr-defined]
        shape = tuple(as_int(one) for one in extents)
        if None not in shape:

            def same(slots: Slots, value: Any) -> None:
                if getattr(value, "shape", None) != shape or value.dtype != dtype:
                    matched(value, info, {}, what)

            return same
        fixed = [(n, one) for n, one in enumerate(shape) if one is not None]
        symbols = [(n, one, self._slot(one)) for n, one in enumerate(extents) if isinstance(one, Symbol)]
        computed = [(n, one) for n, one in enumerate(extents) if as_int(one) is None and not isinstance(one, Symbol)]
        numbers = [(n, self._number(one)) for n, one in computed]

        def check(slots: Slots, value: Any) -> None:
            found = getattr(value, "shape", ())
            fits = len(found) == ndim and value.dtype == dtype and all([found[n] == one for n, one in fixed])
            if fits:
                for n, _, slot in symbols:
                    if slots[slot] is None:
                        slots[slot] = found[n]
                    fits = fits and slots[slot] == found[n]
            if not fits or not all([number(slots) == found[n] for n, number in numbers]):
                matched(value, info, {symbol: slots[slot] for _, symbol, slot in symbols if slots[slot] is not None}, what)

        return check

    def _sequence(self, sequence: SeqExpr) -> tuple[list[Callable[[Slots], None]], Read]:
        steps = [self._step(binding) for binding in sequence.bindings()]
        return steps, self._read(sequence.body)

    def _step(self, binding: Any) -> Callable[[Slots], None]:
        if isinstance(binding.value, Function):
            return self._closure(binding)
        value = self._read(binding.value)
        slot = self._slot(binding.var)
        if isinstance(binding, MatchCast):
            check = self._check(binding.struct_info, binding.var.name_hint)

            def cast(slots: Slots) -> None:
                found = value(slots)
                check(slots, found)
                slots[slot] = found

            return cast

        def assign(slots: Slots) -> None:
            slots[slot] = value(slots)

        return assign

    def _closure(self, binding: Any) -> Callable[[Slots], None]:
        slot = self._slot(binding.var)
        plan = Plan(binding.value, binding.var.name_hint, self._machine, self)

        def define(slots: Slots) -> None:
            slots[slot] = lambda *args: plan(args, slots)

        return define

    def _number(self, value: PrimExpr) -> Callable[[Slots], int]:
        """What computes an integer expression of symbols."""
        constant = as_int(value)
        if constant is not None:
            return lambda slots: constant
        if isinstance(value, Symbol):
            slot, name = self._slot(value), value.name
            return lambda slots: slots[slot] if slots[slot] is not None else _unknown(name)
        work = _ARITHMETIC.get(type(value))
        if work is None:
            if type(value).__name__ == "Cast":
                return self._number(value.value)  # type: ignore[attr-defined]
            raise LoweringError(f"{self.name}: the extent {value} has a {type(value).__name__}, which the virtual machine can't compute")
        left, right = self._number(value.a), self._number(value.b)  # type: ignore[attr-defined]
        return lambda slots: work(left(slots), right(slots))

    def _numbers(self, values: Sequence[PrimExpr]) -> Read:
        if all(as_int(value) is not None for value in values):
            constant = tuple(as_int(value) for value in values)
            return lambda slots: constant
        parts = [self._number(value) for value in values]
        return lambda slots: tuple(part(slots) for part in parts)

    def _read(self, expr: Any) -> Read:
        """What finds the value of an expression."""
        match expr:
            case Var():
                slot = self._slot(expr)
                return lambda slots: slots[slot]
            case Constant():
                data = expr.data if isinstance(expr.data, NDArray) else array(expr.data)
                return lambda slots: data
            case ShapeExpr(values):
                return self._numbers(values)
            case PrimValue(value):
                if as_int(value) is None and not isinstance(value, (Symbol, *_ARITHMETIC)):
                    number = getattr(value, "value", None)
                    return lambda slots: number
                return self._number(value)
            case StringImm(text) | DataTypeImm(text):
                return lambda slots: text
            case Tuple(fields):
                parts = [self._read(one) for one in fields]
                return lambda slots: tuple([part(slots) for part in parts])
            case TupleGetItem(value, index):
                whole = self._read(value)
                return lambda slots: whole(slots)[index]
            case If(cond, yes, no):
                return self._choice(self._read(cond), self._sequence(_as_sequence(yes)), self._sequence(_as_sequence(no)))
            case GlobalVar():
                return self._function(expr)
            case ExternFunc(name):
                return lambda slots: self._machine.registered(name)
            case Call():
                return self._call(expr)
        raise LoweringError(f"{self.name}: {type(expr).__name__} has no place in a function that runs")

    def _function(self, var: GlobalVar) -> Read:
        name, machine = var.name_hint, self._machine
        return lambda slots: lambda *args: machine.plans[name](args)

    @staticmethod
    def _choice(cond: Read, yes: tuple[list[Callable[[Slots], None]], Read], no: tuple[list[Callable[[Slots], None]], Read]) -> Read:
        def choose(slots: Slots) -> Any:
            value = cond(slots)
            steps, result = yes if (bool(value.numpy()) if isinstance(value, NDArray) else bool(value)) else no
            for step in steps:
                step(slots)
            return result(slots)

        return choose

    def _call(self, call: Call) -> Read:
        if not isinstance(call.op, Op):
            return self._plain_call(call)
        name = call.op.removeprefix("relax.")
        args = [self._read(arg) for arg in call.args] if name != "call_tir" else []
        match name:
            case "call_tir" | "call_dps_packed":
                return self._destination_passing(call)
            case "call_tir_inplace":
                return self._inplace(call)
            case "call_pure_packed":
                return self._packed(call.args[0], call.args[1:])
            case "invoke_closure":
                return lambda slots: args[0](slots)(*args[1](slots))
            case "print":
                text = call.attrs["format"]
                return lambda slots: print(text.format(*args[0](slots)) if text else " ".join(map(str, args[0](slots)))) or ()
            case "assert_op":
                return self._assertion(args, call.attrs["format"])
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
            return value_of(meaning(row, given, info))

        parts = list(reads.values())
        return lambda slots: machine.call(name, run, [part(slots) for part in parts])

    def _loop(self, body: str, args: Sequence[Read]) -> Read:
        plans = self._machine.plans

        def run(slots: Slots) -> Any:
            plan = plans[body]
            return iterate(plan, plan.func.ret_struct_info, [arg(slots) for arg in args], array_of, value_of)

        return run

    @staticmethod
    def _assertion(args: Sequence[Read], text: str) -> Read:
        def check(slots: Slots) -> tuple[()]:
            value = args[0](slots)
            if not (bool(value.numpy()) if isinstance(value, NDArray) else bool(value)):
                raise ArgumentError(f"assert_op: {text.format(*args[1](slots)) or 'the condition does not hold'}")
            return ()

        return check

    def _plain_call(self, call: Call) -> Read:
        """A call of a function of the module, of a registered one or of a closure."""
        if isinstance(call.op, ExternFunc):
            return self._packed(call.op, call.args)
        args = [self._read(arg) for arg in call.args]
        if isinstance(call.op, GlobalVar):
            name, machine = call.op.name_hint, self._machine
            return lambda slots: machine.plans[name]([arg(slots) for arg in args])
        callee = self._read(call.op)
        return lambda slots: callee(slots)(*[arg(slots) for arg in args])

    def _packed(self, func: Any, args: Sequence[Any]) -> Read:
        if not isinstance(func, ExternFunc):
            raise LoweringError(f"{self.name}: {func} is called as a registered function, which is named by a string")
        parts, name, machine = [self._read(arg) for arg in args], func.global_symbol, self._machine
        return lambda slots: machine.call(name, machine.registered(name), [part(slots) for part in parts])

    def _results(self, info: StructInfo) -> tuple[list[Read], bool]:
        """What makes the tensors that a destination-passing function fills, and whether there are several."""
        several = isinstance(info, TupleStructInfo)
        made: list[Read] = []
        for one in info.fields if isinstance(info, TupleStructInfo) else (info,):
            if not isinstance(one, TensorStructInfo) or one.extents is None or not one.dtype:
                raise LoweringError(f"{self.name}: a result is {one}: its shape and dtype have to be stated")
            made.append(_maker(self._numbers(one.extents), one.dtype))
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
        machine, name = self._machine, call.args[0].name_hint

        def run(slots: Slots) -> Any:
            given = [one(slots) for one in inputs]
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


def _maker(shape: Read, dtype: str) -> Read:
    return lambda slots: empty(shape(slots), dtype)


def _unknown(name: str) -> int:
    raise ArgumentError(f"the symbol {name} has no value: no argument or match_cast has an extent that is {name} alone")


def _as_sequence(expr: Any) -> SeqExpr:
    return expr if isinstance(expr, SeqExpr) else SeqExpr((), expr)


__all__ = ["IntImm", "Machine", "Plan"]

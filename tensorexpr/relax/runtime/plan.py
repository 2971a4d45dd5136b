"""A function of a graph as a list of steps on numbered slots: what the virtual machine runs.

    slots      parameters, then a slot for each variable and each symbol
    steps      closures that read slots and write one: call a kernel, a registered function, take an element, choose a branch

All that can be decided before a call is: which kernel, which slots, extents that are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import ArgumentError, LoweringError
from ...runtime.fastcall import REFUSED
from ...runtime.ndarray import NDArray, array
from ...tir.function import GlobalVar
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
    VarBinding,
)
from ..relations import BaseCheckResult, struct_info_base_check
from ..struct_info import ShapeExpr
from ..visitor import walk
from .calls import Calls, Machine
from .frame import Frame, Read, Slots
from .native import NativeStretch, Result, element, fail, reader, whole_function

Step = tuple[Callable[[Slots], None], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Steps:
    """A sequence: each step with the slots that nobody reads after it.

    Args:
        single: a step for each binding.
        quick: the same with native stretches.
        result: reads its value.
        whole: the stretch that is all of it, with what makes its value.
    """

    single: list[Step]
    quick: list[Step]
    result: Read
    whole: tuple[NativeStretch, Result | None] | None

    def run(self, slots: Slots, is_watched: bool) -> Any:
        """Its value."""
        for step, dead in self.single if is_watched else self.quick:
            step(slots)
            for slot in dead:
                slots[slot] = None
        return self.result(slots)


@dataclass(frozen=True, slots=True)
class _Tail:
    """The call that a function's value is, made when the function has ended: recursion as the last thing takes no depth."""

    plan: Plan
    args: Sequence[Any]
    around: Slots | None = None


class _Closure:
    """A function that is defined inside of another one, with the slots of that."""

    def __init__(self, plan: Plan, slots: Slots) -> None:
        self.plan, self.slots = plan, slots

    def __call__(self, *args: Any) -> Any:
        return self.plan(args, self.slots)


class Plan(Calls):
    """A function that can be called.

    Raises:
        LoweringError: for a call of an operator that has become no tensor function and has no meaning on NumPy's arrays.
    """

    def __init__(self, func: Function, name: str, machine: Machine, around: Plan | None = None) -> None:
        self.func, self.name, self._machine = func, name, machine
        self._frame: Frame = Frame(name, None if around is None else around._frame)
        self._params = [self._frame.slot(param) for param in func.params]
        self._checks = [
            self._frame.check(param.struct_info, f"argument {n} ({param.name_hint}) of {name}") for n, param in enumerate(func.params)
        ]
        # Only where the result isn't known to be what the signature says: a tensor out of an object, an extent out of a packed function.
        known = struct_info_base_check(func.ret_struct_info, func.body.body.struct_info) is BaseCheckResult.PASS
        self._body = self._sequence(func.body, is_last=known)
        self._returned = None if known else self._frame.check(func.ret_struct_info, f"the return value of {name}")

    def __call__(self, args: Sequence[Any], around: Slots | None = None) -> Any:
        """The result for arguments.

        Raises:
            ArgumentError: for arguments that don't fit the signature.
        """
        made = self._run(args, around)
        while type(made) is _Tail:
            made = made.plan._run(made.args, made.around)
        return made

    def _run(self, args: Sequence[Any], around: Slots | None) -> Any:
        """The result, or the call that it is."""
        if len(args) != len(self._params):
            names = ", ".join(param.name_hint for param in self.func.params)
            raise ArgumentError(f"{self.name} takes {len(self._params)} arguments ({names}), not {len(args)}")
        frame = self._frame
        slots: Slots = [None] * frame.count
        if around is not None:
            # A closure's first slots are those of the function around, by the same numbers.
            slots[: frame.outer] = around[: frame.outer]
        for n, (slot, check) in enumerate(zip(self._params, self._checks, strict=True)):
            try:
                check(slots, args[n])
            except ArgumentError as error:
                raise ArgumentError(f"{error}; {self._context(n)}") from None
            slots[slot] = args[n]
        made = self._body.run(slots, self._machine.is_watched)
        if self._returned is not None:
            self._returned(slots, made)
        return made

    def _context(self, number: int) -> str:
        """Which parameter an error is about, as TVM's messages say it."""
        param = self.func.params[number]
        return f"ErrorContext(fn={self.name}, loc=param[{number}], param={param.name_hint}, annotation={param.struct_info})"

    def caller(self) -> Callable[..., Any]:
        """What calls the function with any arguments that stand for its own."""
        machine = self._machine

        def call(*args: Any) -> Any:
            try:
                return self([machine.given(arg) for arg in args])
            except RecursionError as error:
                if _calls_within(error) < 10:  # it is a registered function's own
                    raise
                raise ArgumentError(
                    f"{self.name}: functions of the graph call each other too deep for Python's stack. A call that is the value of its "
                    "function takes no depth: hand on what is computed so far as an argument; or raise sys.setrecursionlimit"
                ) from error

        whole = self._body.whole
        return call if whole is None or self._returned is not None else self._native_caller(*whole, call)

    def _native_caller(self, native: NativeStretch, result: Result | None, slow: Callable[..., Any]) -> Callable[..., Any]:
        """The same for a function that is one stretch: arguments are checked natively, and refused ones go the slow way."""
        machine, run, makers = self._machine, native.call, native.makers

        def again(code: int, args: Sequence[Any]) -> Any:
            # Refused is no error yet: the slow way converts the arguments, or says which is wrong.
            if code != REFUSED:
                fail(native.stretch, code, machine.kernels)
            return slow(*args)

        if result is None and len(makers) == 1:
            make = makers[0]

            def single(*args: Any) -> Any:
                if machine.is_watched:
                    return slow(*args)
                out = make()
                code = run(*args, out)
                return again(code, args) if code else out

            return single

        def call(*args: Any) -> Any:
            if machine.is_watched:
                return slow(*args)
            outs = [make() for make in makers]
            code = run(*args, *outs)
            return again(code, args) if code else result(args, outs) if result is not None else outs[0]

        return call

    def _sequence(self, sequence: SeqExpr, is_last: bool) -> Steps:
        """Its steps; `is_last` where its value is the function's."""
        bindings = list(sequence.bindings())
        found = self._machine.stretches(sequence)
        dead = self._deaths(bindings, sequence.body)
        single = [(self._step(binding, is_last and binding.var is sequence.body), dead[n]) for n, binding in enumerate(bindings)]
        quick: list[Step] = []
        n = 0
        while n < len(bindings):
            native = found.get(n)
            length = 1 if native is None else native.stretch.bindings
            if native is None:
                quick.append(single[n])
            else:
                ended = tuple(slot for one in dead[n : n + length] for slot in one)
                quick.append((self._stretch(native, single[n : n + length]), ended))
            n += length
        # Native code checks arguments itself, so a function that is one stretch needs no slots at all.
        whole = None
        if len(quick) == 1 and 0 in found and found[0].stretch.bindings == len(bindings):
            whole = whole_function(found[0], self.func.params, sequence.body)
        return Steps(single, quick, self._read(sequence.body), whole)

    def _deaths(self, bindings: Sequence[Any], body: Any) -> list[tuple[int, ...]]:
        """The slots that nobody reads after each binding, so that memory is free as early as it can be."""
        last = {binding.var: n for n, binding in enumerate(bindings)}
        for n, binding in enumerate(bindings):
            nodes = list(walk(binding.value))
            # A closure, that of a branch too, reads what is around it whenever it is called.
            at = len(bindings) if any(isinstance(node, Function) for node in nodes) else n
            last.update((node, max(at, last[node])) for node in nodes if isinstance(node, Var) and node in last)
        last.update((node, len(bindings)) for node in walk(body) if isinstance(node, Var) and node in last)
        dead: list[tuple[int, ...]] = [()] * len(bindings)
        for var, n in last.items():
            if n < len(bindings):
                dead[n] = (*dead[n], self._frame.slot(var))
        return dead

    def _stretch(self, native: NativeStretch, single: Sequence[Step]) -> Callable[[Slots], None]:
        """A step that runs a stretch, and its bindings one by one where native code refuses an argument."""
        stretch, machine = native.stretch, self._machine
        inputs = [(self._frame.slot(var), way) for var, way, _ in stretch.inputs]
        results = [(self._frame.slot(var), reader(value, stretch)) for var, value in stretch.results]
        run, makers = native.call, native.makers

        def step(slots: Slots) -> None:
            given = [element(slots[slot], way) if way else slots[slot] for slot, way in inputs]
            outs = [make() for make in makers]
            code = run(*given, *outs)
            # Before the first kernel ran: nothing is computed twice.
            if code == REFUSED:
                for one, _ in single:
                    one(slots)
                return
            if code:
                fail(stretch, code, machine.kernels)
            for slot, read in results:
                slots[slot] = read(given, outs)

        return step

    def _step(self, binding: Any, is_last: bool) -> Callable[[Slots], None]:
        if isinstance(binding.value, Function):
            return self._closure(binding)
        value = self._last(binding.value) if is_last and isinstance(binding, VarBinding) else self._read(binding.value)
        slot = self._frame.slot(binding.var)
        if isinstance(binding, MatchCast):
            check = self._frame.check(binding.struct_info, binding.var.name_hint)

            def cast(slots: Slots) -> None:
                found = value(slots)
                check(slots, found)
                slots[slot] = found

            return cast

        def assign(slots: Slots) -> None:
            slots[slot] = value(slots)

        return assign

    def _closure(self, binding: Any) -> Callable[[Slots], None]:
        # Before the plan, which copies the frame's slots: a closure may call itself.
        slot = self._frame.slot(binding.var)
        plan = Plan(binding.value, binding.var.name_hint, self._machine, self)

        def define(slots: Slots) -> None:
            slots[slot] = _Closure(plan, slots)

        return define

    def _last(self, expr: Any) -> Read:
        """The same as `_read` of what is the value of the function, whose calls are left to `__call__`."""
        if isinstance(expr, If):
            return self._choice(expr, is_last=True)
        plain = isinstance(expr, Call) and isinstance(expr.op, (GlobalVar, Var))
        if not plain or (isinstance(expr.op, GlobalVar) and expr.op.name_hint in self._machine.kernel_names):
            return self._read(expr)
        callee, args = self._read(expr.op), [self._read(arg) for arg in expr.args]
        if isinstance(expr.op, GlobalVar):
            name, plans = expr.op.name_hint, self._machine.plans
            return lambda slots: _Tail(plans[name], [arg(slots) for arg in args])

        def tail(slots: Slots) -> Any:
            function, given = callee(slots), [arg(slots) for arg in args]
            return _Tail(function.plan, given, function.slots) if type(function) is _Closure else function(*given)

        return tail

    def _read(self, expr: Any) -> Read:
        """What finds the value of an expression."""
        match expr:
            case Var():
                slot = self._frame.slot(expr)
                return lambda slots: slots[slot]
            case Constant():
                data = self._machine.place.constant(expr.data if isinstance(expr.data, NDArray) else array(expr.data))
                return lambda slots: data
            case ShapeExpr(values):
                return self._frame.numbers(values)
            case PrimValue(value):
                number = self._frame.number(value)
                return number if value.dtype != "bool" else lambda slots: bool(number(slots))
            case StringImm(text) | DataTypeImm(text):
                return lambda slots: text
            case Tuple(fields):
                parts = [self._read(one) for one in fields]
                return lambda slots: tuple([part(slots) for part in parts])
            case TupleGetItem(value, index):
                whole = self._read(value)
                return lambda slots: whole(slots)[index]
            case If():
                return self._choice(expr, is_last=False)
            case GlobalVar():
                return self._function(expr)
            case ExternFunc(name):
                return lambda slots: self._machine.registered(name)
            case Call():
                return self._call(expr)
        raise LoweringError(f"{self.name}: {type(expr).__name__} has no place in a function that runs")

    def _function(self, var: GlobalVar) -> Read:
        # The plan is looked up when it is called: functions may call each other, and not all have plans yet.
        name, machine = var.name_hint, self._machine
        return lambda slots: lambda *args: machine.plans[name](args)

    def _choice(self, choice: If, is_last: bool) -> Read:
        cond, machine = self._read(choice.cond), self._machine
        yes, no = (self._sequence(_as_sequence(one), is_last) for one in (choice.true_branch, choice.false_branch))

        def choose(slots: Slots) -> Any:
            value = cond(slots)
            chosen = yes if (bool(value.numpy()) if isinstance(value, NDArray) else bool(value)) else no
            return chosen.run(slots, machine.is_watched)

        return choose


def _calls_within(error: BaseException) -> int:
    """How many functions of graphs were running when it was raised."""
    count, trace = 0, error.__traceback__
    while trace is not None:
        count += trace.tb_frame.f_code is Plan._run.__code__
        trace = trace.tb_next
    return count


def _as_sequence(expr: Any) -> SeqExpr:
    return expr if isinstance(expr, SeqExpr) else SeqExpr((), expr)


__all__ = ["Machine", "Plan"]

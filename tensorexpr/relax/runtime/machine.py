"""The virtual machine: calls the functions of an executable."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from time import perf_counter
from typing import Any

from ...errors import ArgumentError, MissingFunctionError
from ...runtime.device import Device
from ...runtime.ndarray import NDArray
from ...runtime.registry import get_global_func
from ..expr import Function, SeqExpr
from ..external import external_functions
from .builtins import BUILTINS
from .executable import Executable
from .host import VIEWED
from .native import NativePlans, NativeStretch
from .placement import Placement
from .plan import Machine, Plan


class VMInstrumentReturnKind(IntEnum):
    """What an instrument asks for: that the call goes on, or is left out."""

    NO_OP = 0
    SKIP_RUN = 1


GRAPH_EXECUTOR = "relay.graph_executor"  # registered by it: makes one of a machine


class VirtualMachine(Machine):
    """Runs an executable: `vm["main"](x)`.

    Args:
        rt_mod: the executable, or what a session loaded elsewhere, which a `remote.RemoteMachine` runs there.
        device: where it runs: `cpu()`, of an executable for "cuda" `cuda(0)` or `testing.ptx.emulator()`, or a list of these. Arrays
            that live elsewhere are copied there; results stay there.
        memory_cfg: accepted; there is one allocator.
        profile: whether `profile` may be called.

    Raises:
        ArgumentError: for what is no executable, or another device; where a function is asked for, if constants are missing.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __new__(cls, rt_mod: Any, *_: Any, **__: Any) -> Any:
        """The machine that fits: one of a session for what is elsewhere."""
        if hasattr(rt_mod, "machine"):
            from .remote import RemoteMachine  # which few programs need

            return RemoteMachine(rt_mod)
        return super().__new__(cls)

    def __init__(
        self, rt_mod: Executable, device: Device | Sequence[Device] | None = None, memory_cfg: Any = None, profile: bool = False
    ) -> None:
        if not isinstance(rt_mod, Executable):
            raise ArgumentError(f"VirtualMachine takes what relax.build returns, not {type(rt_mod).__name__}")
        self.place = Placement.of(rt_mod.target, [device] if isinstance(device, Device) else device)
        self.module = rt_mod
        self.kernels = _Kernels(rt_mod)
        self._external = external_functions(rt_mod.external)
        self.kernel_names = () if rt_mod.kernels is None else rt_mod.kernels.function_names
        # Before the plans, which ask for stretches as they are made.
        self._native: NativePlans | None = rt_mod.native(self.kernels) if self.place.device is None else None
        self.plans = {}
        # In place: a plan finds others in this very dictionary when it runs.
        for name, func in rt_mod.functions.items():
            self.plans[name] = Plan(func, name, self)
        self._callers: dict[str, Callable[..., Any]] = {}
        self._executor: Any = None
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}
        self._saved: dict[str, Callable[[], Any]] = {}
        self._instrument: Callable[..., Any] | None = None
        self._profile = profile
        self._watch: list[tuple[str, float, str]] | None = None
        self.call = _call_plainly

    def stretches(self, sequence: SeqExpr) -> Mapping[int, NativeStretch]:
        """The native stretches of a sequence of the executable."""
        if self._native is None:
            return {}
        return {place: self._native.calls[one.number] for place, one in self.module.stretches.get(id(sequence), {}).items()}

    def registered(self, name: str) -> Callable[..., Any]:
        """A function of a code generator, a registered one, or one that every machine has.

        Raises:
            MissingFunctionError: if there is none of that name.
        """
        if name in self._external:
            return self._external[name]
        found = get_global_func(name, allow_missing=True) or BUILTINS.get(name)
        if found is None:
            raise MissingFunctionError(
                f"the graph calls {name!r}, and no function of that name is registered; register_func({name!r}, f) does it"
            )
        called: Callable[..., Any] = found
        return called

    def __getitem__(self, name: str) -> Callable[..., Any]:
        # Calls that were saved have names of their own: `save_function` refuses those of functions.
        if name in self._saved:
            return self._saved[name]
        caller = self._callers.get(name)
        if caller is None and name not in self.plans and "main" in self.plans:
            # "run", "set_input": who asks for them wants a graph executor, though it didn't say so by a GraphModule.
            executor = get_global_func(GRAPH_EXECUTOR, allow_missing=True)
            if executor is not None:
                self._executor = executor(self)  # offers its functions while it lives
            caller = self._callers.get(name)
        if caller is None:
            caller = self._callers[name] = self._plan(name).caller()
        return caller

    def offer(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Show functions under names that the executable has none for: those of a graph executor that runs it."""
        self._callers.update({name: function for name, function in functions.items() if name not in self.plans})

    def _plan(self, name: str) -> Plan:
        if name not in self.plans:
            raise MissingFunctionError(f"the executable has no function {name!r}; it has {', '.join(self.plans) or 'none'}")
        self.module.check_complete()
        found: Plan = self.plans[name]
        return found

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call a function that another one returned."""
        return closure(*map(self.given, args))

    def save_function(self, func_name: str, saved_name: str, *args: Any, include_return: bool = True, **kwargs: Any) -> None:
        """Keep a call with its arguments under a name, to be called without any.

        Raises:
            ArgumentError: if the name is taken.
        """
        if saved_name in self._saved or saved_name in self.plans:
            raise ArgumentError(f"save_function: {saved_name!r} is a function already")
        plan, given = self._plan(func_name), self._arguments(func_name, args, kwargs)

        def run() -> Any:
            found = plan(given)
            return found if include_return else None

        self._saved[saved_name] = run

    def _arguments(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments in the order of the parameters, those by name in their places."""
        names = [param.name_hint for param in self._plan(name).func.params]
        unknown = [key for key in kwargs if key not in names]
        if unknown:
            warnings.warn(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(names)}", stacklevel=3)
        rest = iter(args)
        try:
            given = [kwargs[one] if one in kwargs else next(rest) for one in names]
        except StopIteration:
            raise ArgumentError(f"{name} takes {len(names)} arguments ({', '.join(names)}), not {len(args) + len(kwargs)}") from None
        if list(rest):
            raise ArgumentError(f"{name} takes {len(names)} arguments ({', '.join(names)}), not {len(args) + len(kwargs)}")
        return tuple(map(self.given, given))

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set the arguments of `invoke_stateful`, by place or by name."""
        self._inputs[func_name] = self._arguments(func_name, args, kwargs)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function with arguments, or, without any, with those that were set; its result is the value of `get_outputs`, too."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        elif func_name not in self._inputs and not self._plan(func_name).func.params:
            self._inputs[func_name] = ()
        self.invoke_stateful(func_name)
        return self._outputs[func_name]

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As `invoke("main", ...)`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any) -> None:
        """Call a function with the arguments that were set, or with these; `get_outputs` has the result.

        Raises:
            ArgumentError: if none were set.
        """
        if args:
            self.set_input(func_name, *args)
        if func_name not in self._inputs:
            raise ArgumentError(f"invoke_stateful: {func_name!r} has no arguments; set_input({func_name!r}, ...) sets them")
        self._outputs[func_name] = self._plan(func_name)(self._inputs[func_name])

    def get_outputs(self, func_name: str = "main") -> Any:
        """The result of the last `invoke_stateful`.

        Raises:
            ArgumentError: if there was none.
        """
        if func_name not in self._outputs:
            raise ArgumentError(f"get_outputs: {func_name!r} was not called; invoke_stateful({func_name!r}) calls it")
        return self._outputs[func_name]

    def set_instrument(self, instrument: Any) -> None:
        """Let a function see each call: `f(func, name, before_run, ret_value, *args)` before and after; SKIP_RUN leaves the call out."""
        found = get_global_func(instrument) if isinstance(instrument, str) else instrument
        self._instrument = found

        def watched(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
            if found(function, name, True, None, *args) == VMInstrumentReturnKind.SKIP_RUN:
                return None
            value = function(*args)
            found(function, name, False, value, *args)
            return value

        self.call, self.is_watched = watched, True

    def time_evaluator(
        self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0, **_: Any
    ) -> Callable[..., Any]:
        """What times calls of a function, as `Module.time_evaluator` does: a function of the arguments that returns a BenchmarkResult.

        Of "invoke_stateful" the argument is the name of a function whose arguments `set_input` has set.
        """
        from ...runtime.timing import BenchmarkResult

        stateful = func_name == "invoke_stateful" and func_name not in self.plans
        function = self.invoke_stateful if stateful else self[func_name]

        def evaluate(*args: Any) -> BenchmarkResult:
            given = list(args) if stateful else [self.given(arg) for arg in args]
            seconds: list[float] = []
            # The first call isn't measured: it looks up kernels and touches memory for the first time.
            function(*given)
            for _ in range(repeat):
                calls = number
                while True:
                    begin = perf_counter()
                    for _ in range(calls):
                        function(*given)
                    taken = perf_counter() - begin
                    if taken * 1e3 >= min_repeat_ms:
                        break
                    # At most ten times as many at once: a first measurement may be far too short to go by.
                    calls = max(calls + 1, int(calls * min(10.0, 1.2 * min_repeat_ms / max(taken * 1e3, 1e-6))))
                seconds.append(taken / calls)
            return BenchmarkResult(tuple(seconds))

        return evaluate

    def profile(self, func_name: str, *args: Any) -> Report:
        """Call a function and measure each call in it.

        Raises:
            ArgumentError: if the machine was made without `profile=True`.
        """
        if not self._profile:
            raise ArgumentError("profile: make the machine by VirtualMachine(ex, dev, profile=True)")
        rows, total = self.timed_calls(func_name, *args)
        return Report(rows, total, {name: self.module.schedule_of(name) for name, _, _ in rows})

    def timed_calls(self, func_name: str, *args: Any) -> tuple[list[tuple[str, float, str]], float]:
        """Call a function: the name, the seconds and the shapes of each call in it, and the seconds of the whole.

        Views of tensors aren't among them: native code has them for nothing, and only calls one by one spend time on them.
        """
        rows: list[tuple[str, float, str]] = []
        # An instrument that is set goes on seeing the calls.
        before = self.call

        def timed(name: str, function: Callable[..., Any], given: Sequence[Any]) -> Any:
            if name == VIEWED:
                return before(name, function, given)
            begin = perf_counter()
            value = before(name, function, given)
            shapes = ", ".join(f"{one.dtype}[{', '.join(map(str, one.shape))}]" for one in given if isinstance(one, NDArray))
            rows.append((name, perf_counter() - begin, shapes))
            return value

        watched_before = self.is_watched
        self.call, self.is_watched = timed, True
        begin = perf_counter()
        try:
            self[func_name](*args)
        finally:
            self.call, self.is_watched = before, watched_before
        return rows, perf_counter() - begin


def _call_plainly(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    return function(*args)


class _Kernels(dict[str, Callable[..., Any]]):
    """The tensor functions in machine code, each looked up once."""

    def __init__(self, executable: Executable) -> None:
        super().__init__()
        self._executable = executable

    def __missing__(self, name: str) -> Callable[..., Any]:
        if self._executable.kernels is None:
            raise MissingFunctionError(f"the executable has no tensor function {name!r}")
        found: Callable[..., Any] = self._executable.kernels[name]
        self[name] = found
        return found


def shortened(name: str, width: int = 52) -> str:
    """A kernel's name for a table: of one that is fused of twenty operators the first and the last."""
    return name if len(name) <= width else f"{name[: width - 23]}...{name[-20:]}"


class Report:
    """What each call of a run took.

    Args:
        calls: name, seconds and shapes of arguments of each.
        total: seconds of the whole.
        schedules: what is to be said of kernels by name.
    """

    def __init__(self, calls: Sequence[tuple[str, float, str]], total: float, schedules: Mapping[str, str] | None = None) -> None:
        self.calls, self.total, self.schedules = tuple(calls), total, dict(schedules or {})

    def table(self) -> str:
        """Rows by name and shapes, the longest first, with their sum and the whole run; long names shortened."""
        summed: dict[tuple[str, str], list[float]] = {}
        for name, seconds, shapes in self.calls:
            # A kernel of symbolic shapes has a row for each of its shapes.
            summed.setdefault((name, shapes), []).append(seconds)
        rows = [(name, sum(s) * 1e6, 100 * sum(s) / self.total, "cpu0", len(s), shapes) for (name, shapes), s in summed.items()]
        rows.sort(key=lambda row: -row[1])
        inside = sum(row[1] for row in rows)
        shown = [
            (shortened(n), f"{us:.2f}", f"{part:.2f}", dev, str(count), shapes, self.schedules.get(n, ""))
            for n, us, part, dev, count, shapes in rows
        ]
        shown += [
            ("----------", "", "", "", "", "", ""),
            ("Sum", f"{inside:.2f}", f"{inside / self.total / 1e4:.2f}", "", str(len(self.calls)), "", ""),
        ]
        shown.append(("Total", f"{self.total * 1e6:.2f}", "", "cpu0", "1", "", ""))
        head = ("Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes", "Schedule")
        widths = [max(len(row[n]) for row in (head, *shown)) for n in range(len(head))]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in (head, *shown))

    __str__ = table

    @classmethod
    def median(cls, runs: Sequence[Report]) -> Report:
        """One report of several runs of a network on the same inputs: the median of each call, and of the whole."""
        first = runs[0]
        same = [run for run in runs if len(run.calls) == len(first.calls)]
        seconds = [statistics.median(run.calls[n][1] for run in same) for n in range(len(first.calls))]
        calls = [(name, taken, shapes) for (name, _, shapes), taken in zip(first.calls, seconds, strict=True)]
        return cls(calls, statistics.median(run.total for run in same), first.schedules)


__all__ = ["Function", "Report", "VMInstrumentReturnKind", "VirtualMachine"]

"""The surroundings of a lowering: optimisation level, switched passes, options and instruments."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from ..errors import LoweringError, PassError
from ..tir.insist import ask_with
from .options import CONFIG_KEYS, STRUCTS, validated

_local = threading.local()
_Struct = TypeVar("_Struct")
_STRUCT_KEYS: dict[type, str] = {struct: key for key, struct in STRUCTS.items()}


def argument_list(args: Any) -> Sequence[Any]:
    """The arguments of a function as `lower` and `build` take them: several, one by itself, or None."""
    return () if args is None else args if isinstance(args, (list, tuple)) else (args,)


def _names(what: str, value: Sequence[str] | None) -> tuple[str, ...]:
    # A string is a sequence of strings too, and would switch off passes that are called like its letters: none.
    is_list = value is None or isinstance(value, (list, tuple, set, frozenset))
    if not is_list or not all(isinstance(name, str) for name in value or ()):
        raise PassError(f"PassContext {what} takes a list of pass names, not {value!r}")
    return tuple(value or ())


def _instruments(instruments: Iterable[Any] | None) -> list[Any]:
    if not isinstance(instruments or (), Iterable):
        raise PassError(f"PassContext instruments takes a list of instruments, not {instruments!r}")
    return list(instruments or ())


def _tell(instrument: Any, event: str) -> None:
    hook = getattr(instrument, event, None)
    if hook is not None:
        hook()


class PassContext:
    """Options that hold for every lowering inside `with PassContext(...):`, on this thread.

    Args:
        opt_level: passes of a higher level are left out.
        required_pass: names of passes that run whatever their level.
        disabled_pass: names of passes that don't run.
        instruments: objects with any of `enter_pass_ctx`, `exit_pass_ctx`, `should_run`, `run_before_pass`, `run_after_pass`.
        config: options by key; `list_configs()` names them.
        trace, trace_stack, make_traceable, num_evals, tuning_api_database: kept for programs that pass them along.

    Raises:
        ConfigError: for an unknown config key or a value of another type.
        PassError: for names or instruments that are no list.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
        trace_stack: list[Any] | None = None,
        make_traceable: Sequence[str] | None = None,
        num_evals: int = 0,
        tuning_api_database: Any = None,
    ) -> None:
        if not hasattr(opt_level, "__int__"):
            raise PassError(f"PassContext opt_level is a number, such as 3, not {opt_level!r}")
        self.opt_level = int(opt_level)
        self.required_pass = _names("required_pass", required_pass)
        self.disabled_pass = _names("disabled_pass", disabled_pass)
        self.instruments = _instruments(instruments)
        self.config: Mapping[str, Any] = MappingProxyType(validated(config))
        self.trace_stack: list[Any] = list(trace_stack or ([trace] if trace is not None else []))
        self.make_traceable = tuple(make_traceable or ())
        self.num_evals = num_evals
        self.tuning_api_database = tuning_api_database

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread; the default one outside any."""
        stack: list[PassContext] = getattr(_local, "stack", [])
        if stack:
            return stack[-1]
        if not hasattr(_local, "default"):
            _local.default = PassContext()
        default: PassContext = _local.default
        return default

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Every known config key with the type of its value."""
        return {key: {"type": name} for key, (name, _) in CONFIG_KEYS.items()}

    def __enter__(self) -> PassContext:
        if not hasattr(_local, "stack"):
            _local.stack = []
        self._enter_instruments()
        _local.stack.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _local.stack.pop()
        self._exit_instruments()

    def _enter_instruments(self) -> None:
        """Tell the instruments that the context begins; if one fails, those before it leave and none is left."""
        entered: list[Any] = []
        try:
            for instrument in self.instruments:
                _tell(instrument, "enter_pass_ctx")
                entered.append(instrument)
        except BaseException:
            self.instruments = []
            for instrument in entered:
                _tell(instrument, "exit_pass_ctx")
            raise

    def _exit_instruments(self) -> None:
        """Tell the instruments that the context ends; after one that fails none is left."""
        try:
            for instrument in self.instruments:
                _tell(instrument, "exit_pass_ctx")
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Replace the instruments; those that were there leave, the new ones enter."""
        self._exit_instruments()
        self.instruments = _instruments(instruments)
        self._enter_instruments()

    def flag(self, key: str, default: bool = False) -> bool:
        """The value of an integer option as a switch."""
        return bool(self.config.get(key, default))

    def option(self, struct: type[_Struct]) -> _Struct:
        """The struct of options of its type, or its defaults."""
        value: _Struct = self.config.get(_STRUCT_KEYS[struct]) or struct()
        return value

    def enables(self, name: str, opt_level: int) -> bool:
        """Whether a pass of this name and level runs here."""
        if name in self.disabled_pass:
            return False
        return name in self.required_pass or opt_level <= self.opt_level

    def push_trace(self, trace: Any) -> None:
        """Put a trace on the stack."""
        self.trace_stack.append(trace)

    def pop_trace(self, return_current: bool = True) -> Any:
        """Take the top trace off the stack."""
        if not self.trace_stack:
            raise LoweringError("PassContext.pop_trace: the trace stack is empty")
        top = self.trace_stack.pop()
        return top if return_current else None

    def get_current_trace(self) -> Any:
        """The top of the trace stack, or None."""
        return self.trace_stack[-1] if self.trace_stack else None

    def get_trace_stack(self) -> list[Any]:
        """The stack of traces."""
        return self.trace_stack

    def get_trace_stack_size(self) -> int:
        """How many traces there are."""
        return len(self.trace_stack)

    def set_num_evals(self, num: int) -> None:
        """Set the count of evaluations."""
        self.num_evals = num

    def inc_num_evals(self, num: int) -> None:
        """Add to the count of evaluations."""
        self.num_evals += num

    def get_tuning_api_database(self) -> Any:
        """The database that was passed in."""
        return self.tuning_api_database

    def __repr__(self) -> str:
        return (
            f"PassContext(opt_level={self.opt_level}, required_pass={list(self.required_pass)}, "
            f"disabled_pass={list(self.disabled_pass)}, instruments={list(self.instruments)}, config={dict(self.config)})"
        )


ask_with(lambda: PassContext.current().flag("tir.unsafe"))

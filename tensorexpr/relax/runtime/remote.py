"""The virtual machine of a network that another machine loaded: `VirtualMachine(session.load_module("net.so"), session.cpu())`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError
from ...runtime.ndarray import array
from ...runtime.timing import BenchmarkResult


class RemoteMachine:
    """Calls functions of a network in a session. Arguments are copied there; what comes of them stays there until it is asked for.

    Args:
        network: `rpc.client.RemoteNetwork`.
    """

    def __init__(self, network: Any) -> None:
        self.module = network
        self._there = network.machine()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return lambda *args: self.invoke(name, *args)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set the arguments of `invoke_stateful`, by place or by name."""
        self._there.call_executor("set_input", func_name, *args, **kwargs)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set one argument of `invoke`: the number or the name of a parameter and its value, or the value by name."""
        self._there.call_executor("set_one_input", func_name, *args, **kwargs)

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function with arguments, or, without any, with those that were set; several results are a list."""
        return self._there.call_executor("invoke", func_name, *args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As `invoke("main", ...)`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any) -> None:
        """Call a function with the arguments that were set, or with these; `get_outputs` has the results."""
        self._there.call_executor("invoke_stateful", func_name, *args)

    def get_outputs(self, func_name: str = "main") -> Any:
        """The results of the last `invoke_stateful`."""
        return self._there.call_executor("get_outputs", func_name)

    def invoke_with_outputs(self, func_name: str, input_args: Mapping[str, Any], output_args: Sequence[Any]) -> None:
        """Call a function with arguments by name, and write its results to arrays, here or there.

        Raises:
            ArgumentError: for another number of arrays than of results.
        """
        found = self.invoke(func_name, **input_args)
        results = found if isinstance(found, list) else [found]
        if len(results) != len(output_args):
            raise ArgumentError(f"{func_name} has {len(results)} results, and there are {len(output_args)} arrays for them")
        for result, out in zip(results, output_args, strict=True):
            out.copyfrom(array(result.numpy()))

    def benchmark(
        self, device: Any = None, *args: Any, func_name: str = "main", repeat: int = 5, number: int = 5, min_repeat_ms: int | None = None,
        **kwargs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Call a function there many times and measure it; without arguments, with those that were set."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        options = {"func_name": func_name, "repeat": repeat, "number": number, "min_repeat_ms": min_repeat_ms}
        made: BenchmarkResult = self._there.call_executor("benchmark", None, **options)
        return made

    def time_evaluator(
        self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0, **_: Any
    ) -> Callable[..., BenchmarkResult]:
        """What times calls of a function there: a function of the arguments."""
        options = {"number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms}
        return lambda *args: self.benchmark(None, *args, func_name=func_name, **options)

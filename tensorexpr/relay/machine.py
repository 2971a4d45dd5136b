"""The virtual machine as programs of Relay call it: that of graphs, with inputs one by one, results in arrays, and a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError
from ..relax.runtime.executable import Executable
from ..relax.runtime.host import converted
from ..relax.runtime.machine import Report
from ..relax.runtime.machine import VirtualMachine as GraphMachine
from ..runtime.device import Device
from ..runtime.timing import BenchmarkResult


class VirtualMachine(GraphMachine):
    """Runs an executable: `VirtualMachine(relay.vm.compile(mod, target), tvm.cpu())`."""

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The place of a parameter of a function; -1 if there is none of that name."""
        names = [param.name_hint for param in self._plan(func_name).func.params]
        return names.index(input_name) if input_name in names else -1

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set one argument of `invoke`; the others stay as they were set.

        Args:
            func_name: the function.
            args: the number or the name of a parameter, and its value.
            kwargs: or the value by name.

        Raises:
            ArgumentError: for another number of arguments, or a parameter that there isn't.
        """
        if (len(args), len(kwargs)) not in ((2, 0), (0, 1)):
            raise ArgumentError(f'set_one_input("{func_name}", name, value) sets one argument; given are {len(args) + len(kwargs)}')
        key, value = args or next(iter(kwargs.items()))
        count = len(self._plan(func_name).func.params)
        place = self.get_input_index(key, func_name) if isinstance(key, str) else int(key)
        if not 0 <= place < count:
            names = ", ".join(param.name_hint for param in self._plan(func_name).func.params)
            raise ArgumentError(f"{func_name} has no parameter {key!r}; it has {names or 'none'}")
        given = list(self._inputs.get(func_name, (None,) * count))
        given[place] = converted(value)
        self._inputs[func_name] = tuple(given)

    def invoke_with_outputs(self, func_name: str, input_args: Mapping[str, Any], output_args: Sequence[Any]) -> None:
        """Call a function, and write its results to arrays.

        Args:
            func_name: the function.
            input_args: arguments by name.
            output_args: an array for each result.

        Raises:
            ArgumentError: for another number of arrays than of results.
        """
        found = self.invoke(func_name, **input_args)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(results) != len(output_args):
            raise ArgumentError(f"{func_name} has {len(results)} results, and there are {len(output_args)} arrays for them")
        for result, out in zip(results, output_args, strict=True):
            result.copyto(out)

    def get_outputs(self, func_name: str = "main") -> list[Any]:
        """The results of the last `invoke_stateful`, also of one.

        Raises:
            ArgumentError: if there was none.
        """
        found = super().get_outputs(func_name)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def benchmark(
        self, device: Device | None = None, *args: Any, func_name: str = "main", repeat: int = 5, number: int = 5,
        min_repeat_ms: int | None = None, limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1, **kwargs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Call a function many times and measure it.

        Args:
            device: accepted.
            args, kwargs: its arguments; those that were set, without any.
            func_name: the function.
            repeat, number, min_repeat_ms: as of `time_evaluator`.
            limit_zero_time_iterations, end_to_end, cooldown_interval_ms, repeats_to_cooldown: accepted.
        """
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        timed = self.time_evaluator(func_name, device, number, repeat, min_repeat_ms or 0)
        result: BenchmarkResult = timed(*self._inputs.get(func_name, ()))
        return result


class VirtualMachineProfiler(VirtualMachine):
    """A machine that measures each call: `VirtualMachineProfiler(relay.vm.compile(mod, target), tvm.cpu()).profile(x)`."""

    def __init__(self, exe: Executable, device: Device | Sequence[Device] | None = None, memory_cfg: Any = None) -> None:
        super().__init__(exe, device, memory_cfg, profile=True)

    def profile(self, *args: Any, func_name: str = "main", collectors: Any = None, **kwargs: Any) -> Report:
        """Call a function and measure each call in it.

        Args:
            args, kwargs: its arguments; those that were set, without any.
            func_name: the function.
            collectors: accepted.
        """
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        return super().profile(func_name, *self._inputs.get(func_name, ()))


__all__ = ["VirtualMachine", "VirtualMachineProfiler"]

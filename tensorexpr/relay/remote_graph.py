"""The graph executor of a network that another machine loaded: `GraphModule(session.load_module("net.so")["default"](dev))`."""

from __future__ import annotations

from typing import Any

from ..runtime.device import Device
from ..runtime.ndarray import NDArray, array
from ..runtime.params import load_param_dict
from ..runtime.timing import BenchmarkResult
from .graph_executor import GraphModule


class RemoteGraphModule(GraphModule):
    """Runs a network in a session. Inputs are copied there; what comes of it stays there until it is asked for.

    Args:
        module: `rpc.client.RemoteExecutor`.
    """

    def __init__(self, module: Any) -> None:
        # `module.module.time_evaluator` is what programs call
        self.module = self._executor = module

    def _set(self, key: Any, value: Any, params: Any, copied: bool) -> None:
        self._executor.call_executor("set_input", *(() if key is None else (key, value)), **params)

    def run(self, **input_dict: Any) -> None:
        """Run the network there; inputs by name are set first."""
        self._executor.call_executor("run", **input_dict)

    def get_num_outputs(self) -> int:
        """How many results there are."""
        return int(self._executor.call_executor("get_num_outputs"))

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return int(self._executor.call_executor("get_num_inputs"))

    def get_output(self, index: int, out: NDArray | None = None) -> Any:
        """A result of the last run; in `out`, here or there, if that is given."""
        return _into(self._executor.call_executor("get_output", index), out)

    def get_input(self, index: Any, out: NDArray | None = None) -> Any:
        """An input by name or number; zeros if it wasn't set."""
        return _into(self._executor.call_executor("get_input", index), out)

    def get_input_index(self, name: str) -> int:
        """The number of an input; -1 if there is none of that name."""
        return int(self._executor.call_executor("get_input_index", name))

    def get_output_index(self, name: str) -> int:
        """The number of a result called "output_0", "output_1", ...; -1 for another name."""
        return int(self._executor.call_executor("get_output_index", name))

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs by name; -1 for extents that any number fits."""
        shapes, dtypes = self._executor.call_executor("get_input_info")
        return {name: tuple(shape) for name, shape in shapes.items()}, dtypes

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the results, as of `get_input_info`."""
        shapes, dtypes = self._executor.call_executor("get_output_info")
        return {name: tuple(shape) for name, shape in shapes.items()}, dtypes

    def load_params(self, params_bytes: bytes) -> None:
        """Set the inputs that saved parameters name; the others are constants of the network."""
        self.set_input(**load_param_dict(params_bytes))

    def benchmark(
        self, device: Device | None = None, func_name: str = "run", repeat: int = 5, number: int = 5, min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Run the network many times there and measure it; arguments as of `GraphModule.benchmark`."""
        options = {"func_name": func_name, "repeat": repeat, "number": number, "min_repeat_ms": min_repeat_ms}
        made: BenchmarkResult = self._executor.call_executor("benchmark", None, **options, **kwargs)
        return made


def _into(found: Any, out: NDArray | None) -> Any:
    return found if out is None else out.copyfrom(array(found.numpy()))

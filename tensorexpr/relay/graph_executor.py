"""The graph executor by its name: set inputs, run, get outputs. `contrib.graph_executor` offers it where programs look for it."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..log import once
from ..relax.runtime.executable import Executable
from ..relax.runtime.host import converted
from ..relax.runtime.machine import GRAPH_EXECUTOR, Report, VirtualMachine
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..runtime.device import Device, cpu
from ..runtime.ndarray import NDArray, array, empty
from ..runtime.params import load_param_dict
from ..runtime.registry import register_func
from ..runtime.timing import BenchmarkResult
from ..tir.arithmetic import as_int
from ..tir.dtype import to_numpy
from .backend.executor_factory import ExecutorFactoryModule

_MAIN = "main"
_logger = logging.getLogger(__name__)
_FUNCTIONS = (
    "get_input", "get_input_index", "get_input_info", "get_num_inputs", "get_num_outputs", "get_output", "get_output_index",
    "get_output_info", "load_params", "run", "set_input", "set_input_zero_copy", "set_output_zero_copy", "share_params",
)  # fmt: skip


def _leaves(info: Any, value: Any) -> list[Any]:
    """The results of a network one behind the other, whatever tuples they stand in; a list is one result."""
    if isinstance(info, TupleStructInfo):
        return [leaf for one, part in zip(info.fields, value, strict=True) for leaf in _leaves(one, part)]
    return [value]


def leaf_infos(info: Any) -> list[Any]:
    """What is known of the results of a network, one behind the other."""
    return [leaf for part in info.fields for leaf in leaf_infos(part)] if isinstance(info, TupleStructInfo) else [info]


def _by_name(of: weakref.ref[GraphModule], name: str) -> Callable[..., Any]:
    """A function of a graph executor that lives as long as that."""

    def call(*args: Any, **kwargs: Any) -> Any:
        executor = of()
        if executor is None:
            raise ArgumentError(f"{name!r} is of a GraphModule that is gone; keep it as long as its functions are called")
        return getattr(executor, name)(*args, **kwargs)

    return call


def input_info(params: Sequence[Any]) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Shapes and dtypes of a graph function's parameters by name; -1 for extents that any number fits."""
    return described({param.name_hint: param.struct_info for param in params})


def described(infos: Mapping[str, Any]) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Shapes and dtypes of tensors by name; -1 for extents that any number fits."""
    extents = {name: [as_int(one) for one in info.extents or ()] for name, info in infos.items()}
    shapes = {name: tuple(-1 if one is None else one for one in found) for name, found in extents.items()}
    return shapes, {name: str(info.dtype) for name, info in infos.items()}


class GraphModule:
    """Runs "main" of a built network. Inputs that weren't set are zeros. Parameters, which `lib.get_params()` has by name, are set as
    inputs are: other values than the library's are this executor's own.

    Args:
        module: what `lib["default"](dev)` returns, of a library that a session loaded elsewhere too.

    Raises:
        ArgumentError: for anything else.
    """

    def __new__(cls, module: Any, *_: Any) -> GraphModule:
        """The executor that fits: one of a session for what is elsewhere."""
        if cls is GraphModule and hasattr(module, "call_executor"):
            from .remote_graph import RemoteGraphModule  # which few programs need

            return super().__new__(RemoteGraphModule)
        return super().__new__(cls)

    def __init__(self, module: Any) -> None:
        if not isinstance(module, VirtualMachine):
            raise ArgumentError(f'GraphModule takes what lib["default"](dev) returns, not {type(module).__name__}')
        self.module = module
        self._devices = [module.place.device or cpu()]
        self._params = list(module.module.functions[_MAIN].params)
        self._names = [param.name_hint for param in self._params]
        self._inputs: dict[int, NDArray] = {}
        self._outputs: list[Any] | None = None
        self._targets: dict[int, NDArray] = {}  # arrays that results are written to
        self._strange: list[str] = []  # names that were set and that are no inputs
        self._offer()

    def _place(self, key: Any) -> int | None:
        """Which parameter a name or number is; None for a name that there isn't."""
        if isinstance(key, str):
            return self._names.index(key) if key in self._names else None
        if not 0 <= int(key) < len(self._names):
            raise ArgumentError(f"input {key} of a network of {len(self._names)}: {', '.join(self._names)}")
        return int(key)

    def _known(self, key: Any) -> int:
        place = self._place(key)
        if place is None:
            raise ArgumentError(f"no input {key!r}; the network has {', '.join(self._names) or 'none'}")
        return place

    def checked_input(self, key: Any, value: Any) -> NDArray:
        """A copy of a value as an input, by name or number, takes it; nothing is set.

        Raises:
            ArgumentError: as `set_input`.
        """
        return self._checked(self._known(key), value, True)

    def set_input(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """Set inputs to copies of values, so that what becomes of these later doesn't matter.

        Args:
            key, value: one of them, by name or number; or a parameter by name.
            params: others by name; names that the network doesn't have are left out, as those of weights that others were made of.

        Raises:
            ArgumentError: for an input that there isn't, or a value of another shape or dtype; of a parameter that dtype has to be its own.
        """
        self._set(key, value, params, True)

    def set_input_zero_copy(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """As `set_input`, but arrays of the runtime are the inputs themselves: what is written to them later is seen by the next run."""
        self._set(key, value, params, False)

    def _set(self, key: Any, value: Any, params: Mapping[str, Any], copied: bool) -> None:
        if isinstance(key, str) and self._place(key) is None and key in self._parameters:
            params = {key: value, **params}
        elif key is not None:
            self._inputs[self._known(key)] = self._checked(self._known(key), value, copied)
        places = {name: self._place(name) for name in params}
        for name, place in places.items():
            if place is not None:
                self._inputs[place] = self._checked(place, params[name], copied)
        others = [name for name, place in places.items() if place is None]
        # Calls with inputs alone don't look through the network's constants.
        parameters = self._parameters if others else {}
        self._strange += [name for name in others if name not in parameters and name not in self._strange]
        self._set_params({name: params[name] for name in others if name in parameters})

    @property
    def _parameters(self) -> Mapping[str, NDArray]:
        """Constants of the executable by name, without those that are called as an input is."""
        return {name: one for name, one in self.module.module.get_params().items() if name not in self._names}

    def _set_params(self, params: Mapping[str, Any]) -> None:
        executable, missing = self.module.module, set(self.module.module.missing)
        made = executable.with_params(params) if params else executable
        # A machine for a device has copies of constants there.
        if made is not executable or made.missing != missing:
            self.module = VirtualMachine(made, self._devices)
            self._offer()

    def _offer(self) -> None:
        """Programs call `module.module["run"]()`, and time it by `module.module.time_evaluator("run", dev)`."""
        own = weakref.ref(self)  # as a cycle would keep the network's weights until Python looks for cycles
        self.module.offer({name: _by_name(own, name) for name in _FUNCTIONS})

    def set_output_zero_copy(self, key: Any, value: NDArray) -> None:
        """Let each run write a result to an array as well, which `get_output` returns.

        Args:
            key: the number of the result, or "output_0", "output_1", ...
            value: an array of its shape and dtype.

        Raises:
            ArgumentError: for a result that there isn't, or another shape or dtype.
        """
        place = self.get_output_index(key) if isinstance(key, str) else int(key)
        if not 0 <= place < self.get_num_outputs():
            raise ArgumentError(f"output {key!r} of a network of {self.get_num_outputs()}")
        info = self._result()[place]
        extents = [as_int(one) for one in info.extents or ()]
        if value.dtype != info.dtype or any(e not in (None, n) for e, n in zip(extents, value.shape, strict=True)):
            raise ArgumentError(f"output {key!r} is {info}, and the array is {value.dtype}{list(value.shape)}")
        self._targets[place] = value

    def share_params(self, other: GraphModule, params_bytes: bytes) -> None:
        """Take inputs from another executor, whose arrays both read.

        Args:
            other: it.
            params_bytes: saved parameters, whose names are those that are taken.
        """
        names = list(load_param_dict(params_bytes))
        for name in names:
            place = self._place(name)
            if place is not None:
                self._inputs[place] = other.get_input(name)
        self._set_params({name: other.get_input(name) for name in names if name in self._parameters})

    def debug_get_output(self, node: Any, out: Any = None) -> Any:
        """Refused: values between kernels aren't kept.

        Raises:
            ArgumentError: always; it says what shows such values.
        """
        raise ArgumentError(
            f"debug_get_output({node!r}): what lies between kernels isn't kept; relay.analysis.extract_intermdeiate_expr makes a network "
            "whose result it is, and debug_executor says what each kernel takes"
        )

    def _checked(self, place: int, value: Any, copied: bool) -> NDArray:
        info = self._params[place].struct_info
        is_number = isinstance(value, np.generic) and isinstance(info, TensorStructInfo)
        given: Any = value if not is_number and (hasattr(value, "dtype") or hasattr(value, "shape")) else np.asarray(value)
        # Arrays of NumPy are copied by the conversion.
        made: Any = array(given.numpy()) if copied and isinstance(given, NDArray) else converted(given)
        if not isinstance(info, TensorStructInfo):
            return made  # type: ignore[no-any-return]
        if not isinstance(made, NDArray):
            if info.dtype == "object":
                return made  # type: ignore[no-any-return]
            raise ArgumentError(f"input {self._names[place]!r} is {info}, and the value is of {given.dtype}")
        if made.dtype != info.dtype:
            made = array(made.numpy().astype(to_numpy(info.dtype)))
        extents = [as_int(one) for one in info.extents or ()]
        if info.extents is not None and (
            len(extents) != len(made.shape) or any(e not in (None, n) for e, n in zip(extents, made.shape, strict=True))
        ):
            raise ArgumentError(f"input {self._names[place]!r} is {info}, and the value has shape {tuple(made.shape)}")
        return made  # type: ignore[no-any-return]

    def _zeros(self, place: int) -> NDArray:
        info = self._params[place].struct_info
        extents = [as_int(one) for one in getattr(info, "extents", None) or ()]
        if not isinstance(info, TensorStructInfo) or None in extents:
            raise ArgumentError(f"input {self._names[place]!r}, {info}, was not set")
        return array(np.zeros(extents, empty((), info.dtype).numpy().dtype))

    def run(self, **input_dict: Any) -> None:
        """Run the network.

        Args:
            input_dict: inputs by name, as `set_input` takes them.
        """
        self.set_input(**input_dict)
        found = self.module[_MAIN](*self._arguments())
        info = self.module.module.functions[_MAIN].ret_struct_info
        self._outputs = _leaves(info, found)
        for place, value in self._targets.items():
            self._outputs[place].copyto(value)
            self._outputs[place] = value

    def _arguments(self) -> list[NDArray]:
        unset = [name for n, name in enumerate(self._names) if n not in self._inputs]
        if unset and self._strange:  # parameters that are constants may be set; a name that is misspelt looks the same
            message = f"no inputs {', '.join(self._strange)}, which were set; {', '.join(unset)} were not, and are zeros"
            once(_logger, f"{message}. The network has {', '.join(self._names)}")
        return [self._inputs[n] if n in self._inputs else self._zeros(n) for n in range(len(self._names))]

    def _result(self) -> Sequence[Any]:
        return leaf_infos(self.module.module.functions[_MAIN].ret_struct_info)

    def get_num_outputs(self) -> int:
        """How many results there are."""
        return len(self._result())

    def get_num_inputs(self) -> int:
        """How many inputs there are."""
        return len(self._names)

    def get_output(self, index: int, out: NDArray | None = None) -> Any:
        """A result of the last run.

        Args:
            index: which.
            out: an array that gets it.

        Raises:
            ArgumentError: before the first run, or for one that there isn't.
        """
        if self._outputs is None:
            raise ArgumentError("get_output: the network didn't run yet; call run()")
        if not 0 <= index < len(self._outputs):
            raise ArgumentError(f"output {index} of a network of {len(self._outputs)}")
        found = self._outputs[index]
        if out is not None:
            found.copyto(out)
            return out
        return found

    def get_input(self, index: Any, out: NDArray | None = None) -> Any:
        """An input by name or number; zeros if it wasn't set. Of a parameter, by its name, a copy."""
        place = self._place(index)
        if place is None and index not in self._parameters:
            raise ArgumentError(f"no input {index!r}; the network has {', '.join(self._names)}")
        if place is None:
            found = array(self._parameters[index].numpy())
        else:
            found = self._inputs.setdefault(place, self._zeros(place)) if place not in self._inputs else self._inputs[place]
        if out is not None:
            found.copyto(out)
            return out
        return found

    def get_input_index(self, name: str) -> int:
        """The number of an input; -1 if there is none of that name."""
        place = self._place(name)
        return -1 if place is None else place

    def get_output_index(self, name: str) -> int:
        """The number of a result called "output_0", "output_1", ...; -1 for another name."""
        number = name.removeprefix("output_")
        return int(number) if number.isdigit() and int(number) < self.get_num_outputs() else -1

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs by name; -1 for extents that any number fits."""
        return input_info(self._params)

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the results, as of `get_input_info`, under the names that `get_output_index` takes."""
        return described({f"output_{n}": info for n, info in enumerate(self._result())})

    def load_params(self, params_bytes: bytes) -> None:
        """Set the parameters and inputs that saved arrays name; names that the network doesn't have are left out.

        Raises:
            RecordError: for other bytes.
            ArgumentError: for an array of another shape or dtype.
        """
        self.set_input(**load_param_dict(params_bytes))

    def benchmark(
        self, device: Device | None = None, func_name: str = "run", repeat: int = 5, number: int = 5, min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100, end_to_end: bool = False, cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:  # fmt: skip
        """Run the network many times and measure it.

        Args:
            device: accepted.
            func_name: "run".
            repeat, number, min_repeat_ms: as of `time_evaluator`.
            end_to_end: accepted: arrays are where they are needed already.
            limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown: accepted.
            kwargs: inputs by name.
        """
        if func_name != "run":
            raise ArgumentError(f'benchmark measures "run", not {func_name!r}')
        self.set_input(**kwargs)
        timed = self.module.time_evaluator(_MAIN, device, number, repeat, min_repeat_ms or 0)
        result: BenchmarkResult = timed(*self._arguments())
        return result

    def __getitem__(self, key: str) -> Any:
        """A method by name: "run", "set_input", "get_output", ..."""
        return getattr(self, key)


register_func(GRAPH_EXECUTOR, GraphModule)


class GraphModuleDebug(GraphModule):
    """A graph executor that tells what each call took.

    Args:
        module: what `lib["default"](dev)` returns.
        device, graph_json_str, dump_root: accepted.
    """

    def __init__(self, module: Any, device: Any = None, graph_json_str: str | None = None, dump_root: str | None = None) -> None:
        super().__init__(module)
        self._report: Report | None = None

    def profile(self, collectors: Any = None, **input_dict: Any) -> Report:
        """Run the network and measure each call; prints as a table."""
        self.set_input(**input_dict)
        machine = VirtualMachine(self.module.module, profile=True)
        self._report = machine.profile(_MAIN, *self._arguments())
        return self._report

    def run(self, **input_dict: Any) -> None:
        """Run the network, and print what each call took."""
        super().run(**input_dict)
        print(self.profile())

    def run_individual(self, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0, **_: Any) -> list[float]:
        """Microseconds of each call, the mean of so many runs."""
        runs = [self.profile() for _ in range(max(1, number * repeat))]
        return [1e6 * sum(run.calls[n][1] for run in runs) / len(runs) for n in range(len(runs[0].calls))]

    def exit(self) -> None:
        """Nothing to tidy: nothing is written."""


def _machine(libmod: Any, device: Any) -> VirtualMachine:
    devices = [one for one in (device if isinstance(device, (list, tuple)) else [device]) if one is not None]
    executable = libmod.module if isinstance(libmod, ExecutorFactoryModule) else libmod
    if not isinstance(executable, Executable):
        raise ArgumentError(
            f"the library of a graph executor is what relay.build returns or load_module reads, not {type(libmod).__name__}"
        )
    return VirtualMachine(executable, devices or None)


def _check_graph(graph_json_str: str, libmod: Any) -> None:
    """Check that a graph's JSON is such.

    Raises:
        ArgumentError: if it isn't.
    """
    try:
        nodes: Any = json.loads(graph_json_str)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"graph_executor.create: the graph is no JSON: {error}") from None
    if not isinstance(nodes, Mapping) or "nodes" not in nodes:
        raise ArgumentError("graph_executor.create: the JSON is no graph: it has no nodes")


def create(graph_json_str: str, libmod: Any, device: Any = None) -> GraphModule:
    """A graph executor of the parts that `relay.build` of the first releases gave: `graph, lib, params = relay.build(...)`.

    Args:
        graph_json_str: the graph; it is in the library as well.
        libmod: the library.
        device: where it runs.
    """
    _check_graph(graph_json_str, libmod)
    return GraphModule(_machine(libmod, device))


def create_debug(graph_json_str: str, libmod: Any, device: Any = None, dump_root: str | None = None) -> GraphModuleDebug:
    """As `create`, of an executor that measures."""
    _check_graph(graph_json_str, libmod)
    return GraphModuleDebug(_machine(libmod, device))


def get_device(libmod: Any, device: Any) -> list[Any]:
    """The devices, as a list."""
    found = device if isinstance(device, (list, tuple)) else [device if device is not None else cpu()]
    return list(found)

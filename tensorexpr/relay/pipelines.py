"""What runs networks one behind the other, each on a thread of its own: while the second has one input, the first has the next one.

Networks, and what lies between them, are those of `pipeline_config`.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..dataclass import asdict, dataclass
from ..errors import ArgumentError, DeclarationError, TensorExprError
from ..relax.runtime.machine import VirtualMachine
from ..runtime import load_module
from ..runtime.device import Device, cpu, device
from ..runtime.ndarray import NDArray
from ..runtime.params import save_param_dict
from .build_module import build as build_network
from .graph_executor import GraphModule
from .pipeline_config import PipelineConfig

_CONFIG = "pipeline.json"


@dataclass(frozen=True)
class Plan:
    """How networks, by number, are connected.

    Args:
        edges: number of a network and of its result, number of a network and name of its input.
        inputs: of the pipeline: name, number of a network and name of its input.
        outputs: of the pipeline, in order: number of a network and of its result.
        params: groups of parameters: name, number of a network.
        affinity: numbers of the processors that each network's thread is held to; none for any.
    """

    edges: tuple[tuple[int, int, int, str], ...]
    inputs: tuple[tuple[str, int, str], ...]
    outputs: tuple[tuple[int, int], ...]
    params: tuple[tuple[str, int], ...]
    affinity: tuple[tuple[int, ...], ...]


def _planned(config: PipelineConfig) -> Plan:
    parts = config.parts
    number = {id(part): place for place, part in enumerate(parts)}
    outputs = {int(b.name): (number[id(a.part)], int(a.name)) for a, b in config.connections("output", "output")}
    if sorted(outputs) != list(range(len(outputs))) or not outputs:
        raise DeclarationError(f"results of a pipeline are numbered from 0 without gaps; connected are {sorted(outputs) or 'none'}")
    texts = [part.cpu_affinity.replace(",", " ").split() for part in parts]
    if wrong := [part.cpu_affinity for part, words in zip(parts, texts, strict=True) if not all(map(str.isdigit, words))]:
        raise DeclarationError(f'cpu_affinity has numbers of processors, such as "0,1", not {wrong[0]!r}')
    edges = config.connections("output", "input")
    return Plan(
        tuple((number[id(a.part)], int(a.name), number[id(b.part)], str(b.name)) for a, b in edges),
        tuple((str(a.name), number[id(b.part)], str(b.name)) for a, b in config.connections("input", "input")),
        tuple(outputs[place] for place in range(len(outputs))),
        tuple((str(a.name), number[id(b.part)]) for a, b in config.connections("param_group", "param")),
        tuple(tuple(map(int, words)) for words in texts),
    )


def build(pipe_configs: PipelineConfig) -> PipelineExecutorFactoryModule:
    """Build the networks of a pipeline, each as its part of the configuration has it (`relay.build` for "llvm" by default).

    Parameters of a network become constants of it; where a group of parameters is connected to it, they stay inputs, which are set to them.

    Raises:
        DeclarationError: if no result of the pipeline is connected, or their numbers have gaps.
    """
    plan = _planned(pipe_configs)
    libraries, params = [], []
    is_open = {number for _, number in plan.params}
    for number, part in enumerate(pipe_configs.parts):
        make = part.build_func or build_network
        params.append(dict(part.params or {}) if number in is_open else {})
        target = "llvm" if part.target is None else part.target
        made = make(part.mod, target, target_host=part.target_host, params=None if params[-1] else part.params, mod_name=part.name)
        libraries.append((made, part.name, part.dev or cpu(0), part.fcompile))
    return PipelineExecutorFactoryModule(plan, libraries, params)


class PipelineExecutorFactoryModule:
    """The built networks of a pipeline.

    Args:
        plan: how they are connected.
        libraries: of each what was built, its name, its device, and what links it into a file.
        params: of each values of inputs that are set to them at first.
    """

    def __init__(
        self, plan: Plan, libraries: Sequence[tuple[Any, str, Device, Callable[..., Any] | None]], params: Sequence[Mapping[str, Any]]
    ) -> None:
        self.plan, self.libraries, self.params = plan, tuple(libraries), tuple(params)

    def get_pipeline_executor_module(self) -> PipelineModule:
        """What runs them."""
        return PipelineModule(self)

    def machines(self) -> list[GraphModule]:
        """A machine for each network."""
        made = [GraphModule(library[name](where)) for library, name, where, _ in self.libraries]
        for machine, params in zip(made, self.params, strict=True):
            machine.set_input(**params)
        return made

    def export_library(self, directory_path: str | os.PathLike[str]) -> str:
        """Write the networks as libraries, and a description that `PipelineModule.load_library` reads, whose path is returned.

        Raises:
            ArgumentError: if there is no such folder.
        """
        folder = Path(directory_path)
        if not folder.is_dir():
            raise ArgumentError(f"export_library: there is no folder {folder}")
        modules = []
        for number, (library, _, where, link) in enumerate(self.libraries):
            file = f"mod{number}.so"
            library.export_library(folder / file, link)
            modules.append({"library": file, "device": [where.device_type, where.device_id]})
            if self.params[number]:
                modules[-1]["params"] = f"mod{number}.params"
                (folder / f"mod{number}.params").write_bytes(save_param_dict(self.params[number]))
        path = folder / _CONFIG
        path.write_text(json.dumps({"modules": modules, **asdict(self.plan)}))
        return str(path)


class _Failed:
    """Stands for results that there are none of, as a network before it raised."""

    def __init__(self, number: int, error: Exception) -> None:
        self.number, self.error = number, error


def _serve(
    number: int, module: GraphModule, starts: SimpleQueue[Any], inbox: Mapping[str, SimpleQueue[Any]],
    outbox: Sequence[tuple[int, SimpleQueue[Any]]], processors: Sequence[int],
) -> None:  # fmt: skip
    """Run a network once for each thing that `starts` gets, parameters to set before, until None."""
    if processors and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, processors)  # of this thread, and of those that it starts
    while (params := starts.get()) is not None:
        given = {name: queue.get() for name, queue in inbox.items()}
        failed = next((value for value in given.values() if isinstance(value, _Failed)), None)
        if failed is None:
            try:
                for name, value in (*params.items(), *given.items()):
                    module.set_input_zero_copy(name, value)
                module.run()
            except Exception as error:  # whatever it is, the caller gets it, who waits on another thread
                failed = _Failed(number, error)
        for place, queue in outbox:
            queue.put(failed or module.get_output(place))


def _end(starts: Sequence[SimpleQueue[Any]]) -> None:
    for queue in starts:
        queue.put(None)


class PipelineModule:
    """Runs the networks of a pipeline: set inputs, run, set the next ones, run; results come in the same order.

    Args:
        module: what `build` returned.
    """

    def __init__(self, module: PipelineExecutorFactoryModule) -> None:
        self._start(module.plan, module.machines())

    def _start(self, plan: Plan, modules: Sequence[GraphModule]) -> None:
        self._plan, self._modules = plan, modules
        self._given: dict[str, NDArray] = {}
        self._params: list[dict[str, Any]] = [{} for _ in modules]
        self._runs = self._taken = 0
        self._starts: list[SimpleQueue[Any]] = [SimpleQueue() for _ in modules]
        inboxes: list[dict[str, SimpleQueue[Any]]] = [{} for _ in modules]
        outboxes: list[list[tuple[int, SimpleQueue[Any]]]] = [[] for _ in modules]
        for source, result, target, name in plan.edges:
            outboxes[source].append((result, inboxes[target].setdefault(name, SimpleQueue())))
        self._inputs = {key: inboxes[place].setdefault(name, SimpleQueue()) for key, place, name in plan.inputs}
        self._results: list[SimpleQueue[Any]] = [SimpleQueue() for _ in plan.outputs]
        for (place, result), queue in zip(plan.outputs, self._results, strict=True):
            outboxes[place].append((result, queue))
        for number, module in enumerate(modules):
            own = (number, module, self._starts[number], inboxes[number], outboxes[number], plan.affinity[number])
            threading.Thread(target=_serve, args=own, daemon=True).start()
        # Threads know queues, not this object, which would never go otherwise.
        weakref.finalize(self, _end, self._starts)

    @staticmethod
    def load_library(config_file_name: str | os.PathLike[str]) -> PipelineModule:
        """The pipeline that `export_library` wrote. Loading runs its code: load only what you trust.

        Raises:
            ArgumentError: for a file that isn't there, or is no description of a pipeline.
            TensorExprError, TargetError: of a network's library.
        """
        path = Path(config_file_name)
        try:
            said = json.loads(path.read_text())
            plan = Plan(*(tuple(tuple(one) for one in said[key]) for key in Plan.__dataclass_fields__))
            modules = [(path.parent / one["library"], device(*one["device"])) for one in said["modules"]]
            params = [(path.parent / one["params"]).read_bytes() if "params" in one else None for one in said["modules"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArgumentError(f"{path} is no description of a pipeline, as export_library returns it: {error}") from None
        made = PipelineModule.__new__(PipelineModule)
        machines = [GraphModule(VirtualMachine(load_module(library), [where])) for library, where in modules]
        for machine, values in zip(machines, params, strict=True):
            if values is not None:
                machine.load_params(values)
        made._start(plan, machines)
        return made

    def get_input_pipeline_map(self, name: str) -> list[str]:
        """Where an input goes: the number of a network, as text, and the name of its input."""
        number, inner = self._destination(name)
        return [str(number), inner]

    def _destination(self, name: str) -> tuple[int, str]:
        for key, number, inner in self._plan.inputs:
            if key == name:
                return number, inner
        known = ", ".join(key for key, _, _ in self._plan.inputs)
        raise ArgumentError(f"a pipeline without input {name!r}; it has {known or 'none'}")

    def get_params_group_pipeline_map(self, name: str) -> int:
        """The number of the network that a group of parameters belongs to.

        Raises:
            ArgumentError: for another name.
        """
        for key, number in self._plan.params:
            if key == name:
                return number
        known = ", ".join(key for key, _ in self._plan.params)
        raise ArgumentError(f"a pipeline without parameters {name!r}; it has {known or 'none'}")

    def set_input(self, key: str, value: Any) -> None:
        """Set an input for the runs to come; the array is copied.

        Raises:
            ArgumentError: for an input that there isn't, or an array that doesn't fit it.
        """
        number, inner = self._destination(key)
        self._given[key] = self._modules[number].checked_input(inner, value)

    def get_input(self, key: str) -> NDArray:
        """What an input was set to.

        Raises:
            ArgumentError: if it wasn't.
        """
        self._destination(key)
        if key not in self._given:
            raise ArgumentError(f"input {key!r} of the pipeline was not set")
        return self._given[key]

    def set_params(self, params_group_name: str, params_data: Mapping[str, Any]) -> None:
        """Set inputs of the network that a group of parameters belongs to, for the runs to come, in place of those that a build was given.

        Raises:
            ArgumentError: for another group, no parameters, or some that aren't inputs of the network.
        """
        number = self.get_params_group_pipeline_map(params_group_name)
        if not params_data:
            raise ArgumentError(f"set_params({params_group_name!r}): there are no parameters")
        made = {name: self._modules[number].checked_input(name, value) for name, value in params_data.items()}
        self._params[number] = {**self._params[number], **made}

    def run(self) -> None:
        """Let what was set go through the networks; returns at once.

        Raises:
            ArgumentError: if an input was never set.
        """
        given = {key: self.get_input(key) for key in self._inputs}
        for key, value in given.items():
            self._inputs[key].put(value)
        for queue, params in zip(self._starts, self._params, strict=True):
            queue.put(params)
        self._runs += 1

    def get_output(self, synchronize: bool = True, sleep_interval: float = 0.001) -> list[NDArray]:
        """The results of the oldest run whose results weren't taken.

        Args:
            synchronize: wait for them; else there may be none yet, and the list is empty.
            sleep_interval: accepted: waiting takes no turns.

        Raises:
            ArgumentError: if all were taken, and these would be waited for.
            TensorExprError: of what a network raised, which ends no other run.
        """
        if self._taken == self._runs and synchronize:
            raise ArgumentError(f"get_output: the results of all {self._runs} runs were taken; call run()")
        if not synchronize and any(queue.empty() for queue in self._results):
            return []
        found = [queue.get() for queue in self._results]
        self._taken += 1
        if failed := next((value for value in found if isinstance(value, _Failed)), None):
            raise TensorExprError(f"network {failed.number} of a pipeline in run {self._taken}: {failed.error}") from failed.error
        return found

    @property
    def num_executing_pipeline(self) -> int:
        """How many runs were started."""
        return self._runs

    @property
    def num_outputs(self) -> int:
        """How many results there are."""
        return len(self._plan.outputs)

    @property
    def num_inputs(self) -> int:
        """How many inputs there are."""
        return len(self._plan.inputs)


def pipeline_executor_enabled() -> bool:
    """Whether pipelines can be run: always."""
    return True


__all__ = ["PipelineExecutorFactoryModule", "PipelineModule", "Plan", "build", "pipeline_executor_enabled"]

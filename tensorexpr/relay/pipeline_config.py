"""Several networks as one pipeline: which result of which network is which input of another one.

config = PipelineConfig()
config["input"]["x"].connect(config[first]["input"]["data"])
config[first]["output"][0].connect(config[second]["input"]["data"])
config[second]["output"][0].connect(config["output"][0])
pipeline = PipelineModule(build(config))            # of `relay.pipelines`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..runtime.device import Device
from .build_module import as_module, bound_graph
from .graph_executor import leaf_infos
from .ty import type_of

Kind = Literal["input", "output", "param", "param_group"]


@dataclass(frozen=True)
class Place:
    """An end of a connection: an input, a result or the parameters, of a network or of the whole pipeline (`part` is None)."""

    config: PipelineConfig
    part: PipelinePart | None
    kind: Kind
    name: str | int

    def connect(self, binding: Place) -> None:
        """Lead what is here to another place; see `PipelineConfig`.

        Raises:
            DeclarationError: for two places that can't be connected.
        """
        self.config.connect(self, binding)

    def __str__(self) -> str:
        owner = "the pipeline" if self.part is None else f"mod{self.config.parts.index(self.part)}"
        return f"{owner}[{self.kind!r}]" + ("" if self.kind == "param" else f"[{self.name!r}]")


class _Places:
    """The inputs or the results of a network or of the pipeline, by name or number."""

    def __init__(self, config: PipelineConfig, part: PipelinePart | None, kind: Kind) -> None:
        self._config, self._part, self._kind = config, part, kind

    def __getitem__(self, key: str | int) -> Place:
        name: str | int = key
        if self._kind == "output":
            if not str(key).isdigit():
                raise DeclarationError(f"results have numbers, from 0, not {key!r}")
            name = int(key)
        if self._part is not None:
            self._part.type_at(self._kind, name)  # which is an error for what isn't there
        return Place(self._config, self._part, self._kind, name)


class PipelinePart:
    """A network of a pipeline, and how it is built.

    Args:
        config: the pipeline.
        mod: a module of Relay or relax with "main".
    """

    def __init__(self, config: PipelineConfig, mod: Any) -> None:
        self._config, self.mod = config, mod
        self.target: Any = None
        self.target_host: Any = None
        self.dev: Device | None = None
        self.params: Mapping[str, Any] | None = None
        self.name = "default"
        self.build_func: Callable[..., Any] | None = None
        self.fcompile: Callable[..., Any] | None = None
        self.cpu_affinity = ""

    def __getitem__(self, key: str) -> Any:
        """Its "input" or "output", which have names and numbers, or its "param".

        Raises:
            DeclarationError: for anything else.
        """
        if key == "param":
            return Place(self._config, self, "param", key)
        if key not in ("input", "output"):
            raise DeclarationError(f'a network of a pipeline has "input", "output" and "param", not {key!r}')
        return _Places(self._config, self, "input" if key == "input" else "output")

    @cached_property
    def _types(self) -> tuple[dict[str, Any], list[Any]]:
        main: Any = bound_graph(self.mod, None)["main"]
        return {param.name_hint: param.struct_info for param in main.params}, leaf_infos(main.ret_struct_info)

    def type_at(self, kind: Kind, name: str | int) -> Any:
        """What is known of an input by name, or of a result by number.

        Raises:
            DeclarationError: if there is none.
        """
        inputs, outputs = self._types
        if kind == "input":
            if name not in inputs:
                raise DeclarationError(f"the network has no input {name!r}; it has {', '.join(inputs) or 'none'}")
            return inputs[str(name)]
        if int(name) >= len(outputs):
            raise DeclarationError(f"the network has no result {name}; it has {len(outputs)}, from 0")
        return outputs[int(name)]


class PipelineConfig:
    """Networks and how they are connected.

    `config[mod]` is a network; `config["input"]`, `config["output"]` and `config["param_group"]` are those of the whole pipeline.

    An input of the pipeline goes to one input of a network, a result of a network to inputs of others and to results of the pipeline, a
    group of parameters to one network. Networks are numbered in the order in which data goes through them.
    """

    def __init__(self) -> None:
        self._parts: list[PipelinePart] = []
        self._connections: list[tuple[Place, Place]] = []

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in ("input", "output", "param_group"):
                raise DeclarationError(f'a pipeline has "input", "output", "param_group" and networks, not {key!r}')
            return _Places(self, None, "input" if key == "input" else "output" if key == "output" else "param_group")
        found = next((part for part in self._parts if part.mod is key), None)
        if found is None:
            as_module(key)  # which is an error for what is no network
            found = PipelinePart(self, key)
            self._parts.append(found)
        return found

    def connect(self, source: Place, target: Place) -> None:
        """Connect two places; see `Place.connect`."""
        ends = (source.kind, source.part is None, target.kind, target.part is None)
        allowed = (
            ("input", True, "input", False), ("output", False, "input", False),
            ("output", False, "output", True), ("param_group", True, "param", False),
        )  # fmt: skip
        wish = f"{source} can't be led to {target}"
        if ends not in allowed or source.config is not target.config:
            raise DeclarationError(
                f"{wish}: inputs of a pipeline go to those of networks, results of networks to inputs of others and to results of the "
                "pipeline, groups of parameters to a network's"
            )
        if any(target == known for _, known in self._connections):
            raise DeclarationError(f"{wish}: it has a source already")
        if source.part is None and any(source == known for known, _ in self._connections):
            raise DeclarationError(f"{wish}: it leads to another network already")
        if source.part is not None and target.part is not None:
            given, wanted = source.part.type_at("output", source.name), target.part.type_at("input", target.name)
            if type_of(given) != type_of(wanted):
                raise DeclarationError(f"{wish}: a {type_of(given)} is no {type_of(wanted)}")
            if source.part is target.part or self._leads(target.part, source.part):
                raise DeclarationError(f"{wish}: data would go around in a circle")
        self._connections.append((source, target))

    def _leads(self, first: PipelinePart, last: PipelinePart) -> bool:
        """Whether data goes from one network to another, through others or not."""
        following = {id(b.part): b.part for a, b in self._connections if a.part is first and b.part is not None}
        return any(part is last or self._leads(part, last) for part in following.values())

    @property
    def parts(self) -> Sequence[PipelinePart]:
        """The networks, each behind those that it reads results of, otherwise as they were named."""
        waiting, found = list(self._parts), list[PipelinePart]()
        while waiting:
            ready = next(part for part in waiting if not any(self._leads(other, part) for other in waiting if other is not part))
            waiting.remove(ready)
            found.append(ready)
        return found

    def connections(self, source: Kind, target: Kind) -> list[tuple[Place, Place]]:
        """Those from one kind of place to another one."""
        return [(a, b) for a, b in self._connections if (a.kind, b.kind) == (source, target)]

    def get_config(self) -> dict[str, Any]:
        """The whole as plain values: "module_connection" by network, "input_connection" and "param_connection" as lists."""
        parts = self.parts
        return {
            "module_connection": {part.mod: self._config_of(part, place) for place, part in enumerate(parts)},
            "input_connection": [
                {"global_interface_name": a.name, "mod_idx": parts.index(b.part), "module_interface_name": b.name}
                for a, b in self.connections("input", "input") if b.part is not None
            ],
            "param_connection": [
                {"global_interface_name": a.name, "mod_idx": parts.index(b.part)}
                for a, b in self.connections("param_group", "param") if b.part is not None
            ],
        }  # fmt: skip

    def _config_of(self, part: PipelinePart, place: int) -> dict[str, Any]:
        outputs: dict[int, list[dict[str, Any]]] = {}
        for source, target in self._connections:
            if source.part is part:
                to = {"global_output_index": target.name} if target.part is None else {
                    "mod_idx": self.parts.index(target.part), "input_name": target.name}  # fmt: skip
                outputs.setdefault(int(source.name), []).append(to)
        listed = [{"output_idx": number, "dependencies": outputs[number]} for number in sorted(outputs)]
        return {
            "pipeline": {"mod_idx": place, "cpu_affinity": part.cpu_affinity, "output": listed},
            "target_host": part.target_host, "mod_name": part.name, "build": part.build_func, "params": part.params,
            "target": part.target, "fcompile": part.fcompile, "dev": part.dev,
        }  # fmt: skip

    def __str__(self) -> str:
        parts = self.parts

        def end(place: Place, between: str) -> str:
            where = "output" if place.part is None else f"mod{parts.index(place.part)}{between}"
            return where + (f"output({place.name})" if place.kind == "output" and place.part is not None else str(place.name))

        lines = ["Params", *(f"  |{a.name}: {end(b, ':')}" for a, b in self.connections("param_group", "param")), ""]
        lines += ["Inputs", *(f"  |{a.name}: {end(b, ':')}" for a, b in self.connections("input", "input")), ""]
        lines += ["output", *(f"  |output({b.name}) : {end(a, '.')}" for a, b in self.connections("output", "output")), ""]
        lines += ["connections", *(f"  |{end(a, '.')}-> {end(b, '.')}" for a, b in self.connections("output", "input"))]
        return "\n".join(lines)


__all__ = ["PipelineConfig", "PipelinePart", "Place"]

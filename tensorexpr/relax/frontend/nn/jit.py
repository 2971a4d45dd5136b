"""Modules built in place: methods of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....errors import ArgumentError, DeclarationError
from ....runtime.device import device as device_of
from ....runtime.ndarray import NDArray, from_dlpack
from ....target import Target
from ...build import build
from ...runtime.machine import VirtualMachine
from . import spec as specs
from .exporter import Exporter


def built(module: Any, spec: Any, device: Any, pipeline: Any, out_format: str, debug: bool) -> TorchModule:
    """A module built, with its parameters; see `Module.jit`."""
    if out_format != "torch":
        raise DeclarationError(f'jit: out_format is "torch", not {out_format!r}; relax.build(mod) of export_tvm\'s module runs on NDArrays')
    place = device_of(device) if isinstance(device, str) else device
    methods = specs.ModuleSpec.from_raw(spec, module)
    mod, named, _ = Exporter(debug).build(methods)
    missing = [name for name, parameter in named if parameter.data is None]
    if missing:
        raise DeclarationError(f"jit: parameters without values: {', '.join(missing)}; load_state_dict gives them some")
    machine = VirtualMachine(build(mod, Target.from_device(place), pipeline=pipeline), place)
    return TorchModule(methods, machine, [parameter.data for _, parameter in named])


class TorchModule:
    """Methods by name: `model["forward"](x)` takes and returns tensors of PyTorch, without copies; the states of effects stay in it."""

    def __init__(self, spec: specs.ModuleSpec, vm: VirtualMachine, params: Sequence[NDArray]) -> None:
        self.spec, self.vm, self.params = spec, vm, list(params)
        self.effects = vm["_initialize_effect"]() if "_initialize_effect" in vm.module.functions else None

    def __getitem__(self, method_name: str) -> Callable[..., Any]:
        """A method.

        Raises:
            ArgumentError: if there is none of that name; of its calls: for other arguments than those of the spec.
        """
        if method_name not in self.spec.method_names:
            raise ArgumentError(f"jit: there is no method {method_name!r}; there are {', '.join(self.spec.method_names)}")
        spec = self.spec.method_specs[list(self.spec.method_names).index(method_name)]
        run = self.vm[method_name]

        def call(*args: Any) -> Any:
            if len(args) != len(spec.arg_names):
                raise ArgumentError(f"jit: {spec.shown(method_name)} gets {len(args)} arguments")
            given = [_argument(name, one, arg) for name, one, arg in zip(spec.arg_names, spec.arg_specs, args, strict=True)]
            has_effects = self.effects is not None and spec.effect_mode != "none"
            effects = _packed(self.effects, spec.effect_mode) if has_effects else []
            found = run(*given, *effects, *_packed(self.params, spec.param_mode))
            if has_effects:
                found, self.effects = found
            return _tensors(found)

        call.__name__ = method_name
        return call


def _packed(values: Any, mode: str) -> list[Any]:
    return [tuple(values)] if mode == "packed" else list(values) if mode == "plain" else []


def _argument(name: str, spec: Any, value: Any) -> Any:
    """A value of PyTorch as the machine takes it."""
    match spec:
        case specs.Tensor() if hasattr(value, "__dlpack__"):
            return from_dlpack(value.detach() if hasattr(value, "detach") else value)
        case specs.Int() if isinstance(value, int):
            return (value,)
        case specs.Tuple() if isinstance(value, (list, tuple)) and len(value) == len(spec.elements):
            return [_argument(f"{name}[{n}]", one, part) for n, (one, part) in enumerate(zip(spec.elements, value, strict=True))]
        case specs.Object():
            return value
    raise ArgumentError(f"jit: argument {name} is {spec}, not {type(value).__name__}")


def _tensors(value: Any) -> Any:
    if isinstance(value, NDArray):
        import torch

        return torch.utils.dlpack.from_dlpack(value)
    return [_tensors(one) for one in value] if isinstance(value, (list, tuple)) else value


__all__ = ["TorchModule", "built"]

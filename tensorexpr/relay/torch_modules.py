"""Modules of PyTorch that run what is compiled here: `as_torch` of a tensor function, `optimize_torch` of a module of PyTorch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import ArgumentError, DeclarationError
from ..ir import load_json, save_json
from ..meta_schedule import relay_integration, tir_integration
from ..runtime import load_module
from ..runtime.build import build
from ..runtime.ndarray import from_dlpack
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from .build_module import build as build_network
from .frontend import from_pytorch
from .graph_executor import GraphModule

_Module: Any = torch.nn.Module
_CPU, _LIBRARY = "cpu", "network.so"


def _target(target: TargetLike) -> Target:
    return Target("llvm" if target == _CPU else target)


_Folder = tempfile.TemporaryDirectory[str]


def _folder() -> _Folder:
    return tempfile.TemporaryDirectory(prefix="tensorexpr-")


class OperatorModuleWrapper(_Module):  # type: ignore[misc]
    """A tensor function as a module: `module(x, y, out)` writes to the tensors that the function writes to.

    Args:
        module: the function, or a module with one.
    """

    def __init__(self, module: PrimFunc | IRModule) -> None:
        super().__init__()
        self.ir_module = module
        self.rt_module: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """The function as JSON, of which `torch.load` makes it again; it is compiled when it runs."""
        return {**self.__dict__, "ir_module": save_json(self.ir_module), "rt_module": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "ir_module": load_json(state["ir_module"])})

    def tune(self, target: TargetLike = _CPU, max_trials_global: int = 32, **options: Any) -> None:
        """Search a schedule by MetaSchedule, and build the best one.

        Args:
            target: what for; "cpu" is this machine.
            max_trials_global: programs to measure.
            options: of `meta_schedule.tune_tir`.

        Raises:
            TuningError: if no program could be measured.
        """
        chosen = _target(target)
        with _folder() as folder:
            database = tir_integration.tune_tir(self.ir_module, chosen, folder, max_trials_global, **options)
            found = tir_integration.compile_tir(database, self.ir_module, chosen)
        if found is not None:
            self.ir_module = found.mod
        self.build(chosen)

    def script(self) -> str:
        """The function as TVMScript."""
        return self.ir_module.script()

    def build(self, target: TargetLike = _CPU) -> None:
        """Compile it."""
        self.rt_module = build(self.ir_module, target=_target(target))

    def forward(self, *torch_inputs: Any) -> None:
        """Run it on tensors, in the order of its parameters.

        Raises:
            ArgumentError: for tensors that aren't on the CPU or aren't compact, as a copy's results would be lost, and for other shapes.
        """
        if wrong := [n for n, one in enumerate(torch_inputs) if one.device.type != _CPU or not one.is_contiguous()]:
            found = torch_inputs[wrong[0]]
            raise ArgumentError(
                f"argument {wrong[0]} is on {found.device} with strides {found.stride()}; tensors are compact and on the CPU: .contiguous()"
            )
        if self.rt_module is None:
            self.build()
        self.rt_module(*(from_dlpack(one.detach()) for one in torch_inputs))


def as_torch(func: PrimFunc | IRModule | Callable[..., Any]) -> Any:
    """A tensor function as a module of PyTorch, as a decorator above `T.prim_func` or `I.ir_module`.

    Args:
        func: it, or a function that makes one of its arguments, which then returns a module.

    Raises:
        ArgumentError: for anything else.
    """
    if isinstance(func, (PrimFunc, IRModule)):
        return OperatorModuleWrapper(func)
    if not callable(func):
        raise ArgumentError(f"as_torch takes a PrimFunc, an IRModule, or a function that makes one, not {type(func).__name__}")
    return lambda *args, **kwargs: OperatorModuleWrapper(func(*args, **kwargs))


class GraphExecutorFactoryWrapper(_Module):  # type: ignore[misc]
    """A built network as a module, without gradients.

    Args:
        module: what `relay.build` returns; it can be exported from there.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.inner_module = module
        self._executor = GraphModule(module["default"]())
        self._folder: _Folder | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The network as the bytes of a library, whose code `torch.load(path, weights_only=False)` loads."""
        folder = self._folder or _folder()
        path = Path(folder.name) / _LIBRARY
        if self._folder is None:
            self.inner_module.export_library(str(path))
        return {**self.__dict__, "inner_module": path.read_bytes(), "_executor": None, "_folder": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = _folder()
        path = Path(folder.name) / _LIBRARY
        path.write_bytes(state["inner_module"])
        module = load_module(str(path))
        # What was loaded can't be exported again, so the file stays.
        super().__setstate__({**state, "inner_module": module, "_executor": GraphModule(module["default"]()), "_folder": folder})

    def forward(self, *torch_inputs: Any) -> Any:
        """The result for inputs in their order, a tuple if there are several.

        Raises:
            ArgumentError: for another number of inputs, or another shape or dtype.
        """
        count = self._executor.get_num_inputs()
        if len(torch_inputs) != count:
            raise ArgumentError(f"the network takes {count} inputs, not {len(torch_inputs)}")
        for place, one in enumerate(torch_inputs):
            self._executor.set_input(place, one.detach().cpu().numpy())
        self._executor.run()
        results = [self._executor.get_output(n) for n in range(self._executor.get_num_outputs())]
        found = tuple(torch.from_numpy(np.array(one.numpy())) for one in results)  # copies: the next run overwrites its results
        return found[0] if len(found) == 1 else found


class _Called(_Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, func: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = func


def _exported(func: Any, inputs: tuple[Any, ...]) -> Any:
    """The exported program of a module, or a function, as it is when it isn't trained."""
    module = func if isinstance(func, torch.nn.Module) else _Called(func)
    trains = module.training
    try:
        return torch.export.export(module.eval(), inputs)
    except Exception as error:  # PyTorch raises many kinds, of which none says what was wished
        raise DeclarationError(f"PyTorch {torch.__version__} can't export {type(func).__name__}: {error}") from error
    finally:
        module.train(trains)


def optimize_torch(
    func: Any, example_inputs: Any, tuning_config: Any = None, target: TargetLike = _CPU, work_dir: str | None = None, *,
    max_trials_global: int = 64, **options: Any,
) -> GraphExecutorFactoryWrapper:  # fmt: skip
    """A module of PyTorch, tuned by MetaSchedule and built.

    Args:
        func: the module, or a traced one.
        example_inputs: a tensor, or as many as it takes.
        tuning_config: `meta_schedule.TuneConfig`, whose number of trials it takes.
        target: what for; "cpu" is this machine.
        work_dir: where records stay; by default they don't.
        max_trials_global: programs to measure; 0 builds by rules.
        options: of `meta_schedule.relay_integration.tune_relay`.

    Raises:
        DeclarationError: for what PyTorch can't export, and operators without a converter.
        TuningError: of the search.
    """
    inputs = [example_inputs] if isinstance(example_inputs, torch.Tensor) else list(example_inputs)
    scripted = type(func).__module__.startswith(("torch.jit", "torch._C"))
    program = func if scripted else _exported(func, tuple(inputs))
    infos = [(f"inp_{n}", (tuple(one.shape), str(one.dtype).removeprefix("torch."))) for n, one in enumerate(inputs)]
    mod, params = from_pytorch(program, infos)
    chosen, trials = _target(target), max_trials_global if tuning_config is None else tuning_config.max_trials_global
    with _folder() as folder:
        if trials:
            database: Any = relay_integration.tune_relay(mod, params, chosen, work_dir or folder, trials, **options)
            built = relay_integration.compile_relay(database, mod, chosen, params)
        else:
            built = build_network(mod, chosen, params=params)
    return GraphExecutorFactoryWrapper(built)

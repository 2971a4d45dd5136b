"""Networks of PyTorch compiled to a folder, by the helpers of TVM 0.8 to 0.19: `contrib.torch.compile(script_module, options)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..runtime import load_module
from ..runtime.device import cpu
from ..runtime.params import load_param_dict, save_param_dict
from ..target import TargetLike
from .build_module import build
from .frontend import from_pytorch
from .graph_executor import GraphModule, GraphModuleDebug, create
from .torch_modules import GraphExecutorFactoryWrapper

LIBRARY, GRAPH, PARAMS = TVM_ASSETS = ["mod.so", "graph.json", "params"]
# What `compile` takes, and what stands for what isn't given.
_OPTIONS: dict[str, Any] = {
    "input_infos": None, "default_dtype": "float32", "export_dir": "pytorch_compiled", "num_outputs": 1, "tuning_n_trials": 20,
    "tuning_log_file": "tuning.log", "target": "llvm", "device": None,
}  # fmt: skip


class PyTorchTVMModule:
    """Compiles a module of PyTorch step by step: `from_pytorch`, `tune_tvm` if wished, `build_tvm`, `build_pytorch_module`.

    Args:
        target: what for.
        device: where it runs: a CPU.
    """

    def __init__(self, target: TargetLike = "llvm", device: Any = None) -> None:
        self.target, self.dev = target, cpu() if device is None else device
        self.script_module: Any = None
        self.input_infos: Sequence[tuple[str, Any]] = ()
        self.default_dtype = "float32"
        self.mod: Any = None
        self.params: Mapping[str, Any] = {}
        self.tasks: Any = None
        self.log_file: str | None = None
        self.export_dir: str | None = None
        self.tvm_module: GraphModule | None = None
        self.tvm_graph = ""
        self.tvm_lib: Any = None
        self.tvm_params: Mapping[str, Any] = {}

    def from_pytorch(self, script_module: Any, input_infos: Sequence[tuple[str, Any]], default_dtype: str = "float32") -> None:
        """Read a module; see `relay.frontend.from_pytorch`."""
        self.script_module, self.input_infos, self.default_dtype = script_module, list(input_infos), default_dtype
        self.mod, self.params = from_pytorch(script_module, input_infos, default_dtype=default_dtype)

    def _read(self, wish: str) -> None:
        if self.mod is None:
            raise ArgumentError(f"{wish}: there is no network yet; from_pytorch(script_module, input_infos) reads one")

    def tune_tvm(self, log_file: str = "tuning.log", n_trial: int = 200) -> None:
        """Search the knobs of AutoTVM's templates at random; `build_tvm` follows the log.

        Args:
            log_file: gets records.
            n_trial: programs of each task.

        Raises:
            ArgumentError: before `from_pytorch`.
            TuningError: of the search.
        """
        from .. import autotvm  # which compiling doesn't need

        self._read("tune_tvm")
        self.log_file = log_file
        self.tasks = autotvm.task.extract_from_program(self.mod["main"], self.params, self.target)
        runner = autotvm.LocalRunner(number=20, repeat=3, timeout=4, min_repeat_ms=150)
        measuring = autotvm.measure_option(autotvm.LocalBuilder(timeout=10), runner)
        for number, task in enumerate(self.tasks):
            count = min(n_trial, len(task.config_space))
            shown = autotvm.callback.progress_bar(count, prefix=f"[Task {number + 1:2d}/{len(self.tasks):2d}] ")
            autotvm.tuner.RandomTuner(task).tune(count, measuring, 60, [shown, autotvm.callback.log_to_file(log_file)])

    def build_tvm(self, export_dir: str, debug_runtime: bool = False) -> GraphModule:
        """Build it, and write library, graph and parameters to a folder.

        Args:
            export_dir: the folder, which is made if it isn't there.
            debug_runtime: whether what is returned tells what each call takes.

        Raises:
            ArgumentError: before `from_pytorch`.
        """
        self._read("build_tvm")
        built: Any
        if self.log_file is not None and Path(self.log_file).exists():
            from ..autotvm import apply_history_best

            with apply_history_best(self.log_file):
                built = build(self.mod, self.target, params=self.params)
        else:
            built = build(self.mod, self.target, params=self.params)
        folder = Path(export_dir)
        folder.mkdir(parents=True, exist_ok=True)
        built.lib.export_library(str(folder / LIBRARY))
        (folder / GRAPH).write_text(built.get_graph_json(), encoding="utf-8")
        (folder / PARAMS).write_bytes(save_param_dict(built.get_params()))
        return self.load_tvm(export_dir, debug_runtime)

    def load_tvm(self, export_dir: str, debug_runtime: bool = False) -> GraphModule:
        """What runs the network of a folder. Its library's code is loaded: load only what you trust.

        Raises:
            ArgumentError: for a folder without a network.
        """
        folder = Path(export_dir)
        if missing := [name for name in TVM_ASSETS if not (folder / name).is_file()]:
            raise ArgumentError(f"load_tvm: {folder} has no {', '.join(missing)}; build_tvm({export_dir!r}) writes them")
        bare: Any = load_module(str(folder / LIBRARY))
        self.export_dir, self.tvm_lib = str(folder), bare.with_params(load_param_dict((folder / PARAMS).read_bytes()))
        self.tvm_graph = (folder / GRAPH).read_text(encoding="utf-8")
        made = create(self.tvm_graph, self.tvm_lib, self.dev)
        self.tvm_module = GraphModuleDebug(made.module) if debug_runtime else made
        return self.tvm_module

    def build_pytorch_module(
        self, num_inputs: int, num_outputs: int, input_infos: Sequence[tuple[str, Any]] | None = None
    ) -> GraphExecutorFactoryWrapper:
        """A module of PyTorch that runs the network.

        Args:
            num_inputs, num_outputs: of the network.
            input_infos: accepted: the network knows its inputs.

        Raises:
            ArgumentError: before `build_tvm` or `load_tvm`, or for other numbers.
        """
        if self.tvm_module is None or self.export_dir is None:
            raise ArgumentError("build_pytorch_module: nothing is built; call build_tvm(export_dir) or load_tvm(export_dir) first")
        found = self.tvm_module.get_num_inputs(), self.tvm_module.get_num_outputs()
        if found != (num_inputs, num_outputs):
            raise ArgumentError(f"the network has {found[0]} inputs and {found[1]} outputs, not {num_inputs} and {num_outputs}")
        return GraphExecutorFactoryWrapper(self.tvm_lib)


def compile(script_module: Any, option: Mapping[str, Any]) -> GraphExecutorFactoryWrapper:
    """A traced module of PyTorch as one that runs what is compiled here, without gradients; see also `optimize_torch`.

        compile(torch.jit.trace(net, x), {"input_infos": [("x", (1, 3, 224, 224))], "tuning_n_trials": 0})

    Args:
        script_module: what `torch.jit.trace`, `torch.jit.script` or `torch.export.export` returns.
        option: "input_infos", names and shapes of the inputs; "default_dtype" ("float32") of these; "export_dir" ("pytorch_compiled"), the
            folder; "num_outputs" (1); "tuning_n_trials" (20) programs of each of AutoTVM's tasks, 0 for none; "tuning_log_file"
            ("tuning.log"); "target" ("llvm") and "device" (the CPU).

    Raises:
        ArgumentError: for an option that there isn't, or another number of outputs than the network has.
        DeclarationError: for what PyTorch can't export, and operators without a converter.
    """
    unknown = [name for name in option if name not in _OPTIONS]
    if unknown or "input_infos" not in option:
        wrong = f"no option {', '.join(map(repr, unknown))}" if unknown else 'the option "input_infos" is missing'
        raise ArgumentError(f"contrib.torch.compile: {wrong}; there are {', '.join(_OPTIONS)}")
    given = {**_OPTIONS, **option}
    made = PyTorchTVMModule(given["target"], given["device"])
    made.from_pytorch(script_module, given["input_infos"], given["default_dtype"])
    if given["tuning_n_trials"] > 0:
        made.tune_tvm(given["tuning_log_file"], given["tuning_n_trials"])
    made.build_tvm(given["export_dir"])
    return made.build_pytorch_module(len(made.input_infos), given["num_outputs"])


__all__ = ["TVM_ASSETS", "PyTorchTVMModule", "compile"]

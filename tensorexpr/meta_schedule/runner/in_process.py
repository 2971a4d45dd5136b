"""Running programs in this process, with functions of the caller: arguments, evaluator, clean-up."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import dataclass
from ...runtime.build import build
from ...runtime.device import cpu
from ...runtime.module import Module
from ...runtime.ndarray import array
from ...target import Target
from ...te.declare import placeholder
from ...tir.serialize.module_graph import module_from_graph
from ...tune.measure.inputs import RANGES, random_inputs
from ..arg_info import shapes_of
from ..builder.artifact import read_artifact
from ..utils import TIMED_OUT, within
from .config import EvaluatorConfig
from .runner import LocalRunnerFuture, RunnerInput

AllocArgument = Callable[[Any, Sequence[Any], int], Sequence[Sequence[Any]]]
RunEvaluator = Callable[[Any, Any, EvaluatorConfig, Sequence[Sequence[Any]]], Sequence[float]]


def alloc_argument_common(device: Any, args_info: Sequence[Any], alloc_repeat: int) -> list[list[Any]]:
    """Random arguments, so many times anew.

    Args:
        device: where they are.
        args_info: ["TENSOR", dtype, shape] for each.
        alloc_repeat: how many sets.
    """
    shapes = [(dtype, tuple(shape)) for _, dtype, shape in args_info]
    tensors = [placeholder(shape, dtype, f"arg{n}") for n, (dtype, shape) in enumerate(shapes)]
    return [[array(values, device) for values in random_inputs(tensors, {}, seed, RANGES[0]).values()] for seed in range(alloc_repeat)]


def run_evaluator_common(
    rt_mod: Module, device: Any, evaluator_config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]
) -> list[float]:
    """Seconds per call of each repeat, for each set of arguments."""
    config = EvaluatorConfig.normalized(evaluator_config)
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name,
        device,
        number=config.number,
        repeat=config.repeat,
        min_repeat_ms=config.min_repeat_ms,
        f_preproc="cache_flush_cpu_non_first_arg" if config.enable_cpu_cache_flush else "",
    )
    return [float(seconds) for args in repeated_args for seconds in evaluator(*args).results]


@dataclass(frozen=True)
class InProcess:
    """Runs programs one after the other.

    Args:
        config: how they are timed.
        alloc_repeat: sets of arguments.
        alloc: makes arguments.
        evaluate: gives seconds.
        cleanup: is called after each program.
        timeout_s: limit of each program; functions that take longer count as failed, but nothing ends them.
        name: of the runner, for messages.
    """

    config: EvaluatorConfig
    alloc_repeat: int
    alloc: AllocArgument
    evaluate: RunEvaluator
    cleanup: Callable[[], Any] | None
    timeout_s: float = 30.0
    name: str = "LocalRunner"

    def run(self, given: RunnerInput) -> LocalRunnerFuture:
        """The result of a program; an error of the caller's functions is one."""
        try:
            artifact = read_artifact(given.artifact_path)
            module = build(module_from_graph(artifact.module), target=Target(artifact.target))
            infos = [info.as_json() for info in shapes_of(given.args_info)]

            def timed() -> Sequence[float]:
                return self.evaluate(module, cpu(), self.config, self.alloc(cpu(), infos, self.alloc_repeat))

            seconds = [float(getattr(value, "value", value)) for value in within(self.timeout_s, timed)]
            return LocalRunnerFuture(seconds)
        except TimeoutError:
            return LocalRunnerFuture(None, f"{self.name}: {TIMED_OUT.format(self.timeout_s)}")
        except Exception:
            return LocalRunnerFuture(None, f"{self.name}: An exception occurred\n{traceback.format_exc()}")
        finally:
            if self.cleanup is not None:
                self.cleanup()

"""THE page: every pass of graphs in the order in which `relax.build` runs them, and why it stands there.

    0 normalise   what is known is said: parameters and constants that depend on nothing else
    1 simplify    fewer and cheaper operators that mean the same
    2 layouts     the order of elements in memory, by value; weights as the kernels read them
    3 fuse        a group of operators is one tensor function
    4 kernels     tensor functions get schedules, and are what runs
    5 memory      where results stand
    6 plan        the functions of the graph as the machine calls them

After each phase its spec holds, and `relax.build(..., upto=phase)` stops there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError, LoweringError
from ...lower.passes import ModulePass, deep_recursion
from ...target import Target, TargetLike
from ...tir.function import IRModule
from ..expr import Function
from ..ops.row import row_of
from ..visitor import walk
from .annotate_pattern import AnnotateTIROpPattern
from .canonicalize import CanonicalizeBindings
from .channels_last import ChannelsLast
from .check_extents import CheckExtents
from .common import EliminateCommonSubexpr
from .dataflow import ConvertToDataflow
from .decompose import DecomposeOpsForInference
from .fake_quantization import FakeQuantizationToInteger
from .fuse_ops import FuseOps
from .fuse_tir import FuseTIR
from .join_in_place import JoinInPlace
from .legalize import LegalizeOps, has_known_shapes
from .minimal_filtering import MinimalFiltering
from .normalize import Normalize
from .overwritten import KeepOverwritten, OutOfPlace
from .passes import graph_pass
from .patterns import RecognizePatterns
from .simple import DeadCodeElimination, FoldConstant
from .simplify import Simplify
from .subnormals import DropSubnormals
from .views import VIEW, RewriteDataflowReshape


def _operators_with_computations(mod: IRModule) -> Iterator[str]:
    """Calls of operators that could be tensor functions."""
    for var, func in mod.functions_items():
        if not isinstance(func, Function):
            continue
        for node in walk(func.body):
            row = row_of(node)
            if row is not None and row.te is not None and node.op != VIEW and has_known_shapes(node):
                yield f"{var.name_hint} calls {row.name}, which has a tensor computation and known shapes"


@dataclass(frozen=True)
class Phase:
    """A part of the pipeline.

    Args:
        name: of it.
        spec: what holds after it.
        passes: in order.
        violations: what breaks the spec, one line each; what can't be checked for little isn't.
    """

    name: str
    spec: str
    passes: tuple[ModulePass, ...] = ()
    violations: Callable[[IRModule], Iterator[str]] = lambda mod: iter(())


PHASES: Mapping[int, Phase] = {
    0: Phase(
        "normalise",
        "no call of a pure operator has constants only for arguments, unless its result would be larger than four million elements",
        (
            Normalize(),  # first: all that follows sees one call a binding
            CanonicalizeBindings(),
            OutOfPlace(),  # before anything relies on what is overwritten, and so that it can be fused
            ConvertToDataflow(),  # before all that works on such blocks: branches, bodies of loops, functions without any
            FakeQuantizationToInteger(),  # before constants are folded: weights of integers would be floats
            FoldConstant(),  # shapes and weights that are computed are constants for all that follows
            CheckExtents(),  # last: before anything relies on a reshape that may not fit
        ),
    ),
    1: Phase(
        "simplify",
        "as before: each value is what it was within the rounding of its dtype, and sums of products within the least normal number",
        (
            EliminateCommonSubexpr(),  # first: exporters repeat shapes and casts, and what is used twice isn't simplified
            CanonicalizeBindings(),
            RecognizePatterns(),  # before their constants are merged with others
            Simplify(),
            DropSubnormals(),  # once weights are what they stay
            DeadCodeElimination(),
        ),
    ),
    2: Phase(
        "layouts",
        "each value has one layout, and each use reads it in that layout",
        (
            ChannelsLast(),  # once nothing is left to simplify: what a transpose costs is counted
            EliminateCommonSubexpr(),  # two readers of a value have it transposed once
            CanonicalizeBindings(),
            DeadCodeElimination(),
        ),
    ),
    3: Phase(
        "fuse",
        "no call of an operator that has a tensor computation and known shapes is left, views aside; each tensor function is used",
        (
            MinimalFiltering(),  # once layouts are what they stay, and before operators are tensor functions
            LegalizeOps(),
            RewriteDataflowReshape(),  # before groups are made: a view costs nothing, but computed in a group it does
            AnnotateTIROpPattern(),  # before groups are made, which go by it
            FuseOps(bind_numbers=True),
            FuseTIR(),
            KeepOverwritten(),  # once nothing changes the order of calls
            JoinInPlace(),  # last: concatenations that are one kernel with what reads them copy nothing
        ),
        _operators_with_computations,
    ),
    4: Phase("kernels", "each tensor function that runs is lowered, and says where its schedule comes from"),
    5: Phase(
        "memory",
        "what a call writes stands where no value that is used later stands",
    ),  # places in memory are given by `runtime.stretch`, where kernels and their order are known
    6: Phase("plan", "each call knows its callee and where its arguments are"),
}
LAST_GRAPH_PHASE = 3  # what follows needs a target


def run_phases(mod: IRModule, first: int = 0, upto: int = LAST_GRAPH_PHASE) -> IRModule:
    """A module through phases, each with its spec checked.

    Raises:
        DeclarationError: for phases that there aren't.
        LoweringError: if a spec doesn't hold.
    """
    if first not in PHASES or upto not in PHASES:
        raise DeclarationError(f"relax.build(upto={upto!r}): the phases are {', '.join(map(str, PHASES))}")
    with deep_recursion:
        for number in range(first, upto + 1):
            phase = PHASES[number]
            for one in phase.passes:
                mod = one(mod)
            broken = next(phase.violations(mod), None)
            if broken is not None:
                raise LoweringError(f"after phase {number} ({phase.name}) {phase.spec}; but {broken}")
    return mod


Pipeline = Callable[[IRModule], IRModule]


def _in_order(*passes: Pipeline) -> Pipeline:
    def run(mod: IRModule) -> IRModule:
        for one in passes:
            mod = one(mod)
        return mod

    return run


_ZERO = (LegalizeOps(), AnnotateTIROpPattern(), FoldConstant(), FuseOps(bind_numbers=True), FuseTIR())


def _static_shape_tuning(
    total_trials: int, target: TargetLike, work_dir: str = "tuning_logs", cpu_weight_prepack: bool = False, max_trials_per_task: int = 64
) -> Pipeline:
    """Schedules by search; weights of constants are packed when kernels are made, whatever `cpu_weight_prepack` says."""

    from .meta_schedule import MetaScheduleApplyDatabase, MetaScheduleTuneIRMod  # a search, which few programs load

    def run(mod: IRModule) -> IRModule:
        with Target(target):
            tune = (MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task), MetaScheduleApplyDatabase(work_dir))
            return _in_order(DecomposeOpsForInference(), CanonicalizeBindings(), *_ZERO, *tune)(mod)

    return run


_PIPELINES: dict[str, Callable[..., Pipeline]] = {
    "default": lambda: run_phases,
    "default_build": lambda: run_phases,
    "zero": lambda: _in_order(*_ZERO),
    "static_shape_tuning": _static_shape_tuning,
}


def get_pipeline(name: str = "zero", **kwargs: Any) -> Any:
    """The passes of a name, as one.

    Raises:
        DeclarationError: for a name that there isn't, naming those that are there.
    """
    if name not in _PIPELINES:
        raise DeclarationError(f"no pipeline {name!r}; there are {', '.join(sorted(_PIPELINES))}")
    made = _PIPELINES[name](**kwargs)
    return made if isinstance(made, ModulePass) else graph_pass(name, made)


def register_pipeline(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a function that returns a pipeline, under a name.

    Raises:
        DeclarationError: if the name is taken.
    """

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        if name in _PIPELINES:
            raise DeclarationError(f"a pipeline {name!r} is registered already")
        _PIPELINES[name] = make
        return make

    return register

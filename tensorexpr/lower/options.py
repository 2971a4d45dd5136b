"""The configuration keys of a `PassContext`: a table of what is known, and the structs some keys hold.

Keys of TVM that steer other devices are known and ignored, so that a program's configuration need not change.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from ..dataclass import dataclass, fields
from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class UnrollLoopConfig:
    """How loops are unrolled.

    auto_max_step: loops with at most so many steps in total are unrolled without being asked; 0 is never.
    auto_max_depth: nests deeper than this are not unrolled without being asked.
    auto_max_extent: the largest extent of a loop unrolled for its own sake; 0 leaves it to `auto_max_step`.
    explicit_unroll: loops are unrolled here; False leaves loops of kind UNROLLED as serial loops.
    unroll_local_access: also unroll loops that index small local buffers.
    explicit_max_step: the largest number of statements that requested unrolling may produce in one function.
    """

    auto_max_step: int = 0
    auto_max_depth: int = 8
    auto_max_extent: int = 0
    explicit_unroll: bool = True
    unroll_local_access: bool = False
    explicit_max_step: int = 16384


@dataclass(frozen=True, slots=True)
class LoopPartitionConfig:
    """How guarded loops are cut.

    partition_const_loop: also cut loops of constant extent at conditions that are not `likely`, such as padding.
    max_growth: the program may become so many times larger.
    """

    partition_const_loop: bool = False
    no_unroll_loop_with_extent_one: bool = False
    unroll_loop_with_partition_hint_no_interval: bool = False
    max_growth: int = 16


@dataclass(frozen=True, slots=True)
class SimplifyConfig:
    """Which proofs the simplifier may try.

    transitively_prove_inequalities: from a < b and b < c that a < c.
    propagate_knowns_to_prove_conditional: conditions on loads are decided by what was stored.
    propagate_knowns_to_simplify_expressions: loads of what is known to be stored there become that.
    convert_boolean_to_and_of_ors: common conditions are taken out of disjunctions.
    apply_constraints_to_boolean_branches: each side of `and` and `or` is simplified under what the other one says.
    """

    transitively_prove_inequalities: bool = False
    propagate_knowns_to_prove_conditional: bool = False
    propagate_knowns_to_simplify_expressions: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False


@dataclass(frozen=True, slots=True)
class RemoveNoOpConfig:
    """What counts as a statement without effect; with `use_dataflow_analysis` also stores that nobody reads or that change nothing."""

    use_dataflow_analysis: bool = False
    max_simplification_steps: int = 0


@dataclass(frozen=True, slots=True)
class HoistIfThenElseConfig:
    """How conditions leave loops; the option is about thread blocks and without meaning here."""

    support_block_scope_hosting: bool = False


@dataclass(frozen=True, slots=True)
class HoistExpressionConfig:
    """What `tir.transform.HoistExpression` moves out of loops: the values of HoistedConditionals and HoistedLetBindings.

    The pipeline's own pass, which moves loads and calls in front of loops, doesn't ask for them.
    """

    hoisted_conditionals: int = 7
    hoisted_let_bindings: int = 7


@dataclass(frozen=True, slots=True)
class InjectDoubleBufferConfig:
    """How double buffered loops end.

    split_loop: 1 lets the last iteration follow the loop, an even number unrolls the loop by that as well, 0 guards
    the filling inside the loop.
    """

    split_loop: int = 1


@dataclass(frozen=True, slots=True)
class ReduceBranchingThroughOvercomputeConfig:
    """How `tir.transform.ReduceBranchingThroughOvercompute` proves: also from what is stored, and overwritten before it is read."""

    use_dataflow_analysis: bool = False


STRUCTS: dict[str, type] = {
    "tir.UnrollLoop": UnrollLoopConfig,
    "tir.LoopPartition": LoopPartitionConfig,
    "tir.Simplify": SimplifyConfig,
    "tir.RemoveNoOp": RemoveNoOpConfig,
    "tir.HoistIfThenElse": HoistIfThenElseConfig,
    "tir.HoistExpression": HoistExpressionConfig,
    "tir.InjectDoubleBuffer": InjectDoubleBufferConfig,
    "tir.ReduceBranchingThroughOvercompute": ReduceBranchingThroughOvercomputeConfig,
}
_INTEGERS = (
    "ir.enable_si_builder",
    "relax.FuseOps.max_depth",
    "relax.backend.use_cuda_graph",
    "relax.build.processes",
    "relax.build.progress",
    "relax.fallback_device_type",
    "relax.lift_transform_params.consume_params",
    "relax.transform.apply_legalize_ops",
    "relay.FuseOps.link_params",
    "relay.FuseOps.max_depth",
    "relay.ToMixedPrecision.keep_orig_output_dtype",
    "relay.backend.use_auto_scheduler",
    "relay.backend.use_meta_schedule",
    "relay.backend.use_meta_schedule_dispatch",
    "relay.fallback_device_type",
    "relay.frontend.fill_span",
    "relay.remove_standalone_reshapes.enable",
    "te.keep_schedule_record",
    "testing.immutable_module",
    "tir.debug_keep_trivial_loop",
    "tir.detect_global_barrier",
    "tir.disable_assert",
    "tir.disable_cse_tir",
    "tir.disable_storage_rewrite",
    "tir.disable_vectorize",
    "tir.enable_buffer_level_predication",
    "tir.enable_debug",
    "tir.enable_equiv_terms_in_cse_tir",
    "tir.experimental_dma_bypass_cache",
    "tir.instr_siblings",
    "tir.instrument_bound_checkers",
    "tir.instrument_lwp",
    "tir.is_entry_func",
    "tir.lwp_disable_func_prof",
    "tir.lwp_max_depth",
    "tir.lwp_min_height",
    "tir.merge_static_smem",
    "tir.noalias",
    "tir.ptx_ldg32",
    "tir.reset_start_id",
    "tir.unsafe",
    "tir.use_async_copy",
    "tir.usmp.enable",
    "tir.usmp.use_workspace_io",
    "tir.vtcm_capacity",
)
_STRINGS = ("cuda.kernels_output_dir", "relay.backend.tir_converter", "tir.usmp.algorithm", "tir.usmp.custom_algorithm")
_LISTS = ("tir.add_lower_pass",)

# Key -> (the type's name as TVM lists it, the Python type of an accepted value).
CONFIG_KEYS: dict[str, tuple[str, type]] = dict(
    sorted(
        {
            **{key: ("IntImm", int) for key in _INTEGERS},
            **{key: ("runtime.String", str) for key in _STRINGS},
            **{key: ("Array", list) for key in _LISTS},
            **{key: (f"tir.transform.{struct.__name__}", struct) for key, struct in STRUCTS.items()},
        }.items()
    )
)

_Struct = TypeVar("_Struct")


def _nearest(wish: str, known: list[str]) -> str:
    close = difflib.get_close_matches(wish, known, n=1, cutoff=0.4)
    return f"; did you mean {close[0]!r}?" if close else "."


def _as_struct(key: str, value: Any, struct: type[_Struct]) -> _Struct:
    if isinstance(value, struct):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"PassContext config {key!r} takes a mapping of options or a {struct.__name__}, not {value!r}")
    known: dict[str, Any] = {f.name: f.default for f in fields(struct)}  # type: ignore[arg-type]
    for name, option in value.items():
        if name not in known:
            raise ConfigError(
                f"PassContext config {key!r} has no option {name!r}{_nearest(str(name), list(known))} Options: {', '.join(known)}."
            )
        if not isinstance(option, (int, bool)):
            raise ConfigError(f"PassContext config {key!r}: option {name!r} is an integer or a bool, not {option!r}")
    return struct(**{name: type(known[name])(option) for name, option in value.items()})


def validated(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """`config` with every key known and every value of its key's type.

    Raises:
        ConfigError: for an unknown key (with the nearest known one) or a value of another type.
    """
    if not isinstance(config or {}, Mapping):
        raise ConfigError(f'PassContext config is a dictionary such as {{"tir.disable_vectorize": True}}, not {config!r}')
    result: dict[str, Any] = {}
    for key, value in (config or {}).items():
        if key not in CONFIG_KEYS:
            raise ConfigError(
                f"PassContext has no config {key!r}{_nearest(str(key), list(CONFIG_KEYS))} PassContext.list_configs() lists all."
            )
        name, wanted = CONFIG_KEYS[key]
        if wanted in STRUCTS.values():
            result[key] = _as_struct(key, value, wanted)
        elif wanted is int and hasattr(value, "__index__"):
            result[key] = int(value)
        elif wanted is list and isinstance(value, (list, tuple)):
            result[key] = tuple(value)
        elif wanted is str and isinstance(value, str):
            result[key] = value
        else:
            raise ConfigError(f"PassContext config {key!r} takes {name}, not {value!r}")
    return result

"""The options of a lowering by the names that they had up to release 0.6, as a `PassContext`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ConfigError
from ..lower.context import PassContext
from ..lower.passes import Pass
from ..lower.transform import prim_func_pass
from ..tir.function import IRModule, PrimFunc
from ..tir.stmt import Stmt

# Option of early releases -> the key of a PassContext, and the field of the struct that the key holds.
_KEYS: dict[str, tuple[str, str | None]] = {
    "auto_unroll_max_step": ("tir.UnrollLoop", "auto_max_step"),
    "auto_unroll_max_depth": ("tir.UnrollLoop", "auto_max_depth"),
    "auto_unroll_max_extent": ("tir.UnrollLoop", "auto_max_extent"),
    "unroll_explicit": ("tir.UnrollLoop", "explicit_unroll"),
    "partition_const_loop": ("tir.LoopPartition", "partition_const_loop"),
    "double_buffer_split_loop": ("tir.InjectDoubleBuffer", "split_loop"),
    "detect_global_barrier": ("tir.detect_global_barrier", None),
    "disable_assert": ("tir.disable_assert", None),
    "disable_vectorize": ("tir.disable_vectorize", None),
    "instrument_bound_checkers": ("tir.instrument_bound_checkers", None),
    "restricted_func": ("tir.noalias", None),
}
# Buffers stand anywhere and are aligned for vectors without being asked; conditions that are cheap are selected in any case.
_WITHOUT_EFFECT = ("data_alignment", "disable_select_rewriting", "offset_factor")


def build_config(
    *, add_lower_pass: Iterable[tuple[int, Callable[[Any], Any]]] = (), dump_pass_ir: bool = False, **options: Any
) -> PassContext:
    """The context in which lowering has these options.

    Args:
        add_lower_pass: pairs of a phase and a pass, which is a function of a statement that gives a statement.
        dump_pass_ir: print the program after every pass.
        options: `auto_unroll_max_step`, `auto_unroll_max_depth`, `auto_unroll_max_extent`, `unroll_explicit`, `partition_const_loop`,
            `double_buffer_split_loop`, `detect_global_barrier`, `disable_assert`, `disable_vectorize`, `instrument_bound_checkers`
            and `restricted_func`; `data_alignment`, `offset_factor` and `disable_select_rewriting` have no effect.

    Raises:
        ConfigError: for another option, or a value of another type.
    """
    config: dict[str, Any] = {}
    for name, value in options.items():
        if name in _WITHOUT_EFFECT:
            continue
        if name not in _KEYS:
            known = ", ".join(sorted([*_KEYS, *_WITHOUT_EFFECT, "add_lower_pass", "dump_pass_ir"]))
            raise ConfigError(f"build_config has no option {name!r}; it has {known}")
        key, part = _KEYS[name]
        config[key] = value if part is None else {**config.get(key, {}), part: value}
    added = [(phase, _as_pass(one)) for phase, one in add_lower_pass]
    if added:
        config["tir.add_lower_pass"] = added
    return PassContext(config=config, instruments=[_Dump()] if dump_pass_ir else None)


def _as_pass(one: Callable[[Any], Any]) -> Any:
    if isinstance(one, Pass):
        return one

    def on_body(func: PrimFunc, mod: IRModule, ctx: Any) -> PrimFunc:
        made = one(func.body)
        return func.with_body(made) if isinstance(made, Stmt) else func

    return prim_func_pass(on_body, opt_level=0, name=f"tir.{getattr(one, '__name__', 'user_pass')}")


class _Dump:
    """Prints what each pass leaves."""

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        print(f"# after {info.name}\n{mod}")

"""Names that programs of the releases up to 0.6 use and that later ones dropped; what they stand for is elsewhere in the house.

ir_pass        passes and questions as functions of statements
make           nodes by their classes, with the arguments of that time
build_config   the options of a lowering, today those of a `PassContext`
"""

from collections.abc import Callable
from typing import Any

from ..tir.op_registry import register_intrin_lowering
from .build_config import build_config

__all__ = ["build_config", "register_intrin_rule"]


def register_intrin_rule(target: str, intrin: str, f: Callable[[Any], Any] | None = None, override: bool = False) -> Any:
    """`ir.register_intrin_lowering` with the target first.

    Args:
        target: a kind such as "llvm", or "default".
        intrin: the intrinsic.
        f: the call -> the expression in its place; without it this is a decorator.
        override: accepted; what is registered last counts.
    """
    return register_intrin_lowering(intrin, target, f=f)

"""Conditions on scalable vectors, proved for every length that the hardware can have."""

from __future__ import annotations

import sys

from ..target import Target
from ..tir.expr import Call, IntImm, PrimExpr
from ..tir.rewriting import post_order_rewrite, walk
from .facts import Facts
from .queries import holds
from .rewrite import rewrite

# Arm, Learn the architecture - Introducing SVE: vectors of 128 to 2048 bits in steps of 128.
_SVE_LENGTHS = range(1, 17)


def holds_for_vector_lengths(facts: Facts, condition: PrimExpr) -> bool:
    """True if a condition that mentions `tir.vscale()` holds for all its values on the current target.

    Only AArch64 with SVE says what they are; for another target a warning says that nothing was tried.
    """
    if not any(isinstance(node, Call) and node.op == "tir.vscale" for node in walk(condition)):
        return False
    target = Target.current(allow_none=True)
    if target is None or not _has_sve(target):
        print(
            "Warning: The expression contains scalable values. An attempt to prove by substituting with known values of vscale "
            f"was not performed. This proof currently only supports AArch64 SVE targets, but the target was {target}",
            file=sys.stderr,
        )
        return False
    return all(_holds_at(facts, condition, length) for length in _SVE_LENGTHS)


def _has_sve(target: Target) -> bool:
    words = str(target).split()
    return any("aarch64" in word for word in words) and any("sve" in word for word in words if word.startswith("-mattr="))


def _holds_at(facts: Facts, condition: PrimExpr, length: int) -> bool:
    def known(node: object) -> PrimExpr | None:
        return IntImm(node.dtype, length) if isinstance(node, Call) and node.op == "tir.vscale" else None

    found = rewrite(facts, post_order_rewrite(condition, known))
    return bool(found.value) if isinstance(found, IntImm) else holds(facts, found)

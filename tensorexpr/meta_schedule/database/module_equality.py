"""When two programs count as the same workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ...errors import TuningError
from ...tir.block import Block
from ...tir.function import IRModule, PrimFunc
from ...tir.rewriting import walk
from ...tir.structural import structural_equal
from ...tir.structural_digest import structural_hash


@dataclass(frozen=True)
class ModuleEquality:
    """A way to compare programs: `hash` is the same where `equal` holds."""

    name: str
    hash: Callable[[IRModule], int]
    equal: Callable[[IRModule, IRModule], bool]


def anchor_block(mod: IRModule) -> Block | None:
    """The block that a program is about: the last one that reduces, else the last one that computes; None if there is none."""
    found: Block | None = None
    for func in mod.functions.values():
        for node in walk(func.body) if isinstance(func, PrimFunc) else ():
            if isinstance(node, Block) and not any(isinstance(inner, Block) for inner in walk(node.body)):
                found = node if found is None or node.init is not None or found.init is None else found
    return found


def _anchor(mod: IRModule) -> Any:
    return anchor_block(mod) or mod


def _equal_anchors(a: IRModule, b: IRModule) -> bool:
    one, other = _anchor(a), _anchor(b)
    # a module without blocks is compared as a whole
    return type(one) is type(other) and structural_equal(one, other, map_free_vars=True)


# Arrays of constants are no part of a module here, so that ignoring them changes nothing.
_KNOWN: dict[str, tuple[Callable[[IRModule], int], Callable[[IRModule, IRModule], bool]]] = {
    "structural": (structural_hash, structural_equal),
    "ignore-ndarray": (structural_hash, structural_equal),
    "anchor-block": (lambda mod: structural_hash(_anchor(mod), map_free_vars=True), _equal_anchors),
}


def module_equality(name: str) -> ModuleEquality:
    """The comparison of a name.

    Raises:
        TuningError: for another name.
    """
    if name not in _KNOWN:
        raise TuningError(f"module_equality is one of {', '.join(_KNOWN)}, not {name!r}")
    compute, equal = _KNOWN[name]
    return ModuleEquality(name, compute, equal)

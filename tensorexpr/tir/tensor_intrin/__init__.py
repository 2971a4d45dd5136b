"""Tensor intrinsics as pairs of functions: what a few instructions compute, and the statements that do it.

Both take the same buffers. Each body is a block that states what it reads and writes.
`x86` and `cuda` have the names of those that come with the package; `wmma`, `dot_product_common` and `parts` make them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import ClassVar, Literal, overload

from ...dataclass import dataclass
from ...errors import DeclarationError
from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..function import PrimFunc

# Modules that tell of intrinsics by `built_in`, loaded when a name isn't known.
_FAMILIES = ("wmma", "mma", "mma_tiles", "mfma", "metal", "dot_product_common", "group_dots")


@dataclass(frozen=True, eq=False)
class TensorIntrin:
    """An intrinsic: `impl` does what `desc` describes, to buffers in the same order."""

    desc: PrimFunc
    impl: PrimFunc

    _known: ClassVar[dict[str, TensorIntrin]] = {}
    _built_in: ClassVar[dict[str, Callable[[], TensorIntrin]]] = {}

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Register an intrinsic, which `tir.Schedule.tensorize` then finds.

        Args:
            name: what schedules call it.
            desc: what it computes, with loops and blocks.
            impl: how.
            override: replace one that is registered under the name.

        Raises:
            DeclarationError: if the name is taken, the functions take different buffers, or a body is no block.
        """
        if not override and (name in TensorIntrin._known or name in TensorIntrin._built_in):
            raise DeclarationError(f"a tensor intrinsic {name!r} is registered already; give override=True to replace it")
        _check(name, desc, impl)
        TensorIntrin._known[name] = TensorIntrin(desc, impl)
        return TensorIntrin._known[name]

    @overload
    @staticmethod
    def get(name: str, allow_missing: Literal[False] = False) -> TensorIntrin: ...

    @overload
    @staticmethod
    def get(name: str, allow_missing: bool) -> TensorIntrin | None: ...

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of a name.

        Args:
            allow_missing: give None if there is none.

        Raises:
            DeclarationError: if there is none.
        """
        if name not in TensorIntrin._known and name not in TensorIntrin._built_in:
            for family in _FAMILIES:
                importlib.import_module(f"{__name__}.{family}")
        if name not in TensorIntrin._known and name in TensorIntrin._built_in:
            TensorIntrin._known[name] = TensorIntrin._built_in[name]()
        found = TensorIntrin._known.get(name)
        if found is None and not allow_missing:
            known = ", ".join(sorted({*TensorIntrin._known, *TensorIntrin._built_in})) or "none"
            raise DeclarationError(f"no tensor intrinsic {name!r} is registered; registered: {known}; see tir.TensorIntrin.register")
        return found


def built_in(name: str, make: Callable[[], TensorIntrin]) -> None:
    """Let an intrinsic be made when it is first asked for."""
    TensorIntrin._built_in[name] = make


def buffers_of(func: PrimFunc) -> list[Buffer]:
    """The buffers of a function in the order of its parameters."""
    return [func.buffer_map[param] for param in func.params if param in func.buffer_map]


def body_block(func: PrimFunc) -> Block:
    """The block that a function's body is: the one inside, where the function's own root only holds it."""
    assert isinstance(func.body, BlockRealize)
    block = func.body.block
    if not block.reads and not block.writes and isinstance(block.body, BlockRealize) and not block.alloc_buffers:
        return block.body.block
    return block


def _check(name: str, desc: PrimFunc, impl: PrimFunc) -> None:
    for what, func in (("desc", desc), ("impl", impl)):
        if not isinstance(func, PrimFunc) or not isinstance(func.body, BlockRealize):
            raise DeclarationError(f"tensor intrinsic {name!r}: {what} is a function whose body is a block (T.block)")
        if len(buffers_of(func)) != len(func.params):
            raise DeclarationError(f"tensor intrinsic {name!r}: all parameters of {what} are buffers (T.match_buffer)")
        if body_block(func).iter_vars:
            raise DeclarationError(f"tensor intrinsic {name!r}: the outermost block of {what} has axes; put a block without axes around it")
    left, right = buffers_of(desc), buffers_of(impl)
    if len(left) != len(right):
        raise DeclarationError(f"tensor intrinsic {name!r}: desc takes {len(left)} buffers, impl {len(right)}")
    for a, b in zip(left, right, strict=True):
        # Constants are interned: equal extents are identical.
        same = a.dtype == b.dtype and len(a.shape) == len(b.shape) and all(x is y for x, y in zip(a.shape, b.shape, strict=True))
        if not same:
            raise DeclarationError(f"tensor intrinsic {name!r}: {a.name} is {a!r} in desc and {b!r} in impl; dtype and shape must be equal")

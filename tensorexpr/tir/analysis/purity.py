"""Whether a function only computes a value: no writes that its caller can see, no calls with effects."""

from __future__ import annotations

from collections.abc import Iterator

from ..block import Block
from ..expr import Call, Var
from ..function import PrimFunc
from ..intrin import intrinsic_of
from ..rewriting import walk
from ..stmt import Allocate, BufferRealize, BufferStore, DeclBuffer

_ALWAYS_PURE = frozenset(("tir.ret", "tir.assume", "tir.likely"))


def is_pure_function(func: PrimFunc) -> bool:
    """Whether calls of `func` may be left out, repeated and moved: it writes its own memory alone, and calls what is pure."""
    return next(_effects(func), None) is None


def assert_pure_function(func: PrimFunc) -> bool:
    """True for a function that `is_pure_function` holds of.

    Raises:
        AssertionError: for another; the message names the first effect.
    """
    found = next(_effects(func), None)
    if found is not None:
        raise AssertionError(f"the function is not pure: {found}")
    return True


def _effects(func: PrimFunc) -> Iterator[str]:
    """What the function does besides computing, as text."""
    own = set(_own_memory(func))
    for node in walk(func.body):
        if isinstance(node, BufferStore) and node.buffer.data not in own:
            yield f"it writes {node.buffer.name}, which it does not allocate"
        elif isinstance(node, Call) and node.op not in _ALWAYS_PURE and not intrinsic_of(node).pure:
            yield f"it calls {node}"


def _own_memory(func: PrimFunc) -> Iterator[Var]:
    """The pointers of what the function allocates; a declared buffer that stands on nothing is the function's own."""
    # Memory of the caller, which a declaration only gives another name.
    given = {*func.params, *(buffer.data for buffer in func.buffer_map.values())}
    for node in walk(func.body):
        if isinstance(node, Allocate):
            yield node.buffer_var
        elif isinstance(node, (BufferRealize, DeclBuffer)) and node.buffer.data not in given:
            yield node.buffer.data
        elif isinstance(node, Block):
            yield from (buffer.data for buffer in node.alloc_buffers)

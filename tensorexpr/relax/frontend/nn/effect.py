"""What runs beside the values of a graph: effects, which functions take behind their inputs and return behind their results.

An effect has a state, variables of the function that is being exported. What happens to it makes a new state of the old one, so that
it happens in order, and no pass lets it go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import DeclarationError, TypeMismatchError
from ....tir.expr import IntImm
from ... import op as relax_op
from ...block_builder import BlockBuilder
from ...expr import PrimValue, Var
from ...struct_info import ObjectStructInfo, ShapeExpr, TensorStructInfo
from .core import Effect, Tensor, get_default_dtype


class IOEffect(Effect):
    """Prints and calls of debugging functions; `Module.export_tvm(debug=True)` adds it."""

    def __init__(self) -> None:
        self.effect: Var | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Nothing, as a value."""
        return [builder.emit(relax_op.null_value(), f"{name_hint}_io")]

    def create(self, name_hint: str) -> list[Var]:
        """The parameter."""
        return [Var(f"{name_hint}_io", ObjectStructInfo())]

    def set_state(self, state_vars: Sequence[Var]) -> None:
        """Take over the state."""
        (self.effect,) = state_vars

    def finalize(self) -> list[Var]:
        """The state behind all that has happened."""
        found, self.effect = self.effect, None
        return [found]  # type: ignore[list-item]


class KVCache(Effect):
    """Keys or values of the positions that an attention has seen, which grow as it goes on.

    Args:
        init_seq_len: positions that there is room for in the beginning; it grows.
        unit_shape: of one position, such as [heads, width].
        dtype: of elements; the default one if None.
    """

    def __init__(self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None) -> None:
        self.init_seq_len, self.unit_shape = init_seq_len, [int(one) for one in unit_shape]
        self.dtype = dtype or get_default_dtype()
        self.cache: Var | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """An empty cache."""
        shape = _shape(self.init_seq_len, self.unit_shape)
        first = relax_op.zeros(shape, self.dtype)
        start, info = PrimValue(IntImm("int64", 0)), ObjectStructInfo()
        made = relax_op.call_pure_packed("vm.builtin.attention_kv_cache_create", first, shape, start, sinfo_args=info)
        return [builder.emit(made, name_hint)]

    def create(self, name_hint: str) -> list[Var]:
        """The parameter."""
        return [Var(name_hint, ObjectStructInfo())]

    def set_state(self, state_vars: Sequence[Var]) -> None:
        """Take over the cache."""
        (self.cache,) = state_vars

    def finalize(self) -> list[Var]:
        """The cache with what was appended."""
        found, self.cache = self.cache, None
        return [found]  # type: ignore[list-item]

    def to(self, dtype: str | None = None) -> None:
        """Let elements have another dtype."""
        self.dtype = dtype or self.dtype

    def view(self, seq_len: Any) -> Tensor:
        """The first positions, (seq_len, *unit_shape)."""
        shape = _shape(seq_len, self.unit_shape)
        info = TensorStructInfo(shape, self.dtype)
        call = relax_op.call_pure_packed("vm.builtin.attention_kv_cache_view", self._known(), shape, sinfo_args=info)
        return Tensor(_expr=_builder().emit(call))

    def append(self, new_element: Tensor) -> None:
        """Add positions behind the last one: a tensor (positions, *unit_shape).

        Raises:
            TypeMismatchError: for another dtype.
        """
        if new_element.dtype != self.dtype:
            raise TypeMismatchError(f"KVCache: elements are {self.dtype}, not {new_element.dtype}; astype converts them")
        self.cache = _builder().emit(
            relax_op.call_inplace_packed(
                "vm.builtin.attention_kv_cache_append", self._known(), new_element._expr, inplace_indices=[0], sinfo_args=ObjectStructInfo()
            )
        )

    def _known(self) -> Var:
        if self.cache is None:
            raise DeclarationError("KVCache: it is read and written in methods while Module.export_tvm exports them")
        return self.cache


def _shape(positions: Any, unit: Sequence[Any]) -> ShapeExpr:
    return ShapeExpr((positions, *unit))


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise DeclarationError("effects happen while Module.export_tvm makes a graph")
    return builder


__all__ = ["IOEffect", "KVCache"]

"""Operations: the nodes of a tensor computation. A placeholder is given, a compute is defined by expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..later import later
from ..tir.arithmetic import cast as to_dtype
from ..tir.attrs import EMPTY, FrozenMap
from ..tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Var
from ..tir.rewriting import substitute, walk
from .tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Operation(ABC):
    """Base of all operations. Identity is equality, and `output(i)` always gives the same tensor."""

    name: str

    @property
    def num_outputs(self) -> int:
        """The number of tensors it makes."""
        return 1

    if TYPE_CHECKING:  # placeholders have properties, computes have fields of these names

        @property
        def axis(self) -> tuple[IterVar, ...]: ...
        @property
        def reduce_axis(self) -> tuple[IterVar, ...]: ...
        @property
        def tag(self) -> str: ...
        @property
        def attrs(self) -> FrozenMap: ...

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that are read, in order of first appearance, each once."""
        return ()

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very operation."""
        return self is other

    def __copy__(self) -> Operation:
        return self

    def __deepcopy__(self, memo: Any) -> Operation:
        return self

    def __repr__(self) -> str:
        return str(self)

    @abstractmethod
    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The shape of output `index`."""

    @abstractmethod
    def output_dtype(self, index: int) -> str:
        """The dtype of output `index`."""

    @cached_property
    def _outputs(self) -> tuple[Tensor, ...]:
        return tuple(Tensor(self, i) for i in range(self.num_outputs))

    def output(self, index: int) -> Tensor:
        """Output `index`.

        Raises:
            DeclarationError: if there are fewer outputs.
        """
        if not 0 <= index < self.num_outputs:
            raise DeclarationError(f"operation {self.name} has {self.num_outputs} output(s), so no output {index}")
        return self._outputs[index]


@dataclass(frozen=True, eq=False, repr=False)
class PlaceholderOp(Operation):
    """A tensor that the caller provides."""

    shape: tuple[PrimExpr, ...]
    dtype: str
    tag: str = ""
    attrs: FrozenMap = EMPTY

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """No axis: nothing is computed."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """No axis."""
        return ()

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The shape."""
        return self.shape

    def output_dtype(self, index: int) -> str:
        """The dtype."""
        return self.dtype

    def __str__(self) -> str:
        return f"placeholder({self.name}, [{', '.join(map(str, self.shape))}], {self.dtype})"


@dataclass(frozen=True, eq=False, repr=False)
class BaseComputeOp(Operation):
    """What compute operations share: spatial axes that span the outputs."""

    tag: str
    attrs: FrozenMap
    axis: tuple[IterVar, ...]

    @cached_property
    def _shape(self) -> tuple[PrimExpr, ...]:
        return tuple(axis.dom.extent for axis in self.axis if axis.dom is not None)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The extents of the spatial axes."""
        return self._shape


@dataclass(frozen=True, eq=False, repr=False)
class ComputeOp(BaseComputeOp):
    """Output i at (axis...) is body[i]; bodies are all `Reduce` nodes of one reduction, or none is.

    Make one with `te.compute`, which checks the definition.
    """

    reduce_axis: tuple[IterVar, ...]
    body: tuple[PrimExpr, ...]
    reads_outside: str = field(default="", kw_only=True)  # the proof that a read leaves a tensor: such a definition isn't computed

    @property
    def num_outputs(self) -> int:
        """The number of bodies."""
        return len(self.body)

    def output_dtype(self, index: int) -> str:
        """The dtype of body `index`."""
        return self.body[index].dtype

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the bodies read, in order of first appearance, each once."""
        return tuple(dict.fromkeys(cast(Tensor, load.producer) for load in loads(self)))

    def element(self, output: int, indices: Sequence[PrimExpr]) -> PrimExpr:
        """The expression of an element of an output; its indices may have another integer dtype than the axes."""
        pairs = zip(self.axis, indices, strict=True)
        return substitute(self.body[output], {axis.var: to_dtype(index, axis.var.dtype) for axis, index in pairs})

    def __str__(self) -> str:
        axes = ", ".join(axis.name for axis in self.axis)
        return f"compute({self.name}, [{axes}], [{', '.join(map(str, self.body))}])"


def loads(op: ComputeOp) -> Iterator[ProducerLoad]:
    """Every distinct element read by the bodies of `op`, innermost first, in textual order."""
    seen: set[int] = set()
    for root in _roots(op):
        for node in walk(root):
            if isinstance(node, ProducerLoad) and id(node) not in seen:
                seen.add(id(node))
                yield node


def _roots(op: ComputeOp) -> tuple[PrimExpr, ...]:
    """The expressions of a compute in the order they are read; one reduction has its ranges and sources only once."""
    first = op.body[0]
    if not isinstance(first, Reduce):
        return op.body
    ends = (end for axis in first.axis if axis.dom is not None for end in (axis.dom.min, axis.dom.extent))
    return (*(end for end in ends if not isinstance(end, (IntImm, Var))), *first.source, *first.init, first.condition)


__getattr__, __dir__ = later(__name__, {".to_prim_func": "create_prim_func"})  # programs import it from here, too

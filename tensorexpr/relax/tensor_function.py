"""Tensor functions of what functions on tensors (`te`) compute, and the way back to the tensors for scheduling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import te
from ..errors import DeclarationError, TensorExprError, TypeMismatchError
from ..te.from_prim_func import tensors_of
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..te.to_prim_func import create_prim_func
from ..tir.arithmetic import as_int
from ..tir.expr import Var as Symbol
from ..tir.function import PrimFunc
from ..tir.rewriting import variables
from ..tir.structural import structural_equal, structural_hash
from .expr import Constant, PrimValue, RelaxExpr, Tuple, TupleGetItem
from .struct_info import ShapeExpr, StructInfo, TensorStructInfo, TupleStructInfo

_MOST_MADE = 4096


class _Made:
    """Tensors by the functions that were made of them: reading blocks takes longer, and knows fewer reductions. The oldest go.

    Nearly always the function itself is asked for, with other attributes; a hash of its structure takes as long as making it, and is
    made only when another function is.
    """

    def __init__(self) -> None:
        self._by_body: OrderedDict[int, tuple[PrimFunc, list[Tensor]]] = OrderedDict()
        self._by_structure: OrderedDict[int, tuple[PrimFunc, list[Tensor]]] = OrderedDict()
        self._unhashed: list[tuple[PrimFunc, list[Tensor]]] = []

    def keep(self, func: PrimFunc, tensors: list[Tensor]) -> None:
        """Remember what a function computes."""
        bare = func.with_attrs({})
        # The function is kept with them, so that no other body gets its id.
        self._by_body[id(bare.body)] = bare, tensors
        self._unhashed.append((bare, tensors))
        if len(self._by_body) > _MOST_MADE:
            self._by_body.popitem(last=False)
        if len(self._unhashed) > _MOST_MADE:
            self._unhashed.pop(0)

    def find(self, func: PrimFunc) -> list[Tensor] | None:
        """The tensors of a function that is the same but for names and attributes."""
        made, tensors = self._by_body.get(id(func.body), (None, []))
        if made is not None and made.params == func.params and dict(made.buffer_map) == dict(func.buffer_map):
            return tensors
        waiting, self._unhashed = self._unhashed, []
        self._by_structure.update((structural_hash(one), (one, found)) for one, found in waiting)
        while len(self._by_structure) > _MOST_MADE:
            self._by_structure.popitem(last=False)
        bare = func.with_attrs({})
        made, tensors = self._by_structure.get(structural_hash(bare), (None, []))
        return tensors if made is not None and structural_equal(made, bare) else None


_made = _Made()


def outline(func: PrimFunc) -> tuple[Any, ...]:
    """What is quickly told of a function, and the same for equal ones: dtypes and extents of its arguments."""
    buffers = [func.buffer_map.get(param) for param in func.params]
    return tuple(None if one is None else (one.dtype, *map(as_int, one.shape)) for one in buffers)


def _copied(tensor: Tensor) -> Tensor:
    """A tensor that is an argument, or a result already, as a result of its own."""
    made: Tensor = te.compute(tensor.shape, lambda *index: tensor[index], name=f"{tensor.op.name}_copy")
    return made


class TensorFunction:
    """A function on tensors, as a tensor function of the module and the arguments of its calls."""

    def __init__(self, func: PrimFunc, args: Sequence[Any], symbols: tuple[Symbol, ...], result: StructInfo) -> None:
        self.func, self.args, self.symbols, self.result = func, args, symbols, result


def tensor_function(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorFunction:
    """Run a function on placeholders, and make a tensor function of what it computes.

    Args:
        func: from tensors to a tensor, or a list or tuple of tensors.
        args, kwargs: of it: expressions that are tensors become placeholders, shapes tuples of extents, numbers themselves.

    Raises:
        DeclarationError: if the shape of a tensor isn't known, or it computes none.
    """
    inputs: list[tuple[Any, Tensor]] = []

    def as_te(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(as_te(one) for one in value)
        if isinstance(value, dict):
            return {key: as_te(one) for key, one in value.items()}
        if isinstance(value, Tuple):
            return [as_te(one) for one in value.fields]
        if isinstance(value, ShapeExpr):
            return tuple(value.values)
        if isinstance(value, PrimValue):
            number = as_int(value.value)
            return value.value if number is None else number
        if not isinstance(value, RelaxExpr):
            return value
        info = value.struct_info
        if isinstance(info, TupleStructInfo):
            return [as_te(TupleGetItem(value, n)) for n in range(len(info.fields))]
        if not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
            raise DeclarationError(
                f"{value} is {info}: a tensor computation needs the shape and dtype of its operands; match_cast it first"
            )
        # A value that is passed twice is one argument.
        known = next((made for given, made in inputs if given is value), None)
        if known is None:
            known = te.placeholder(info.extents, info.dtype, getattr(value, "name_hint", "const" if isinstance(value, Constant) else "x"))
            inputs.append((value, known))
        return known

    computed = func(*map(as_te, args), **{key: as_te(value) for key, value in kwargs.items()})
    outputs = list(computed) if isinstance(computed, (list, tuple)) else [computed]
    outputs = [_copied(one) if isinstance(one, Tensor) and isinstance(one.op, PlaceholderOp) else one for one in outputs]
    if not outputs or not all(isinstance(one, Tensor) for one in outputs):
        raise TypeMismatchError(f"{getattr(func, '__name__', func)} returns {computed!r}, where a tensor or a list of tensors is expected")
    tensors = [made for _, made in inputs]
    infos = tuple(TensorStructInfo(one.shape, one.dtype) for one in outputs)
    settled = [one for made in tensors for one in made.shape if isinstance(one, Symbol)]
    used = {var for info in infos for extent in info.extents or () for var in variables(extent)}
    free = tuple(sorted((var for var in used if var not in settled), key=lambda var: var.name))
    made = function_of_tensors(tensors, outputs, free)
    return TensorFunction(made, [given for given, _ in inputs], free, infos[0] if len(infos) == 1 else TupleStructInfo(infos))


def function_of_tensors(inputs: Sequence[Tensor], outputs: Sequence[Tensor], symbols: Sequence[Symbol] = ()) -> PrimFunc:
    """The tensor function that computes tensors, which `plain_tensors` gives back."""
    # Each result is a buffer of its own, which some stage has to write.
    results = [_copied(one) if isinstance(one.op, PlaceholderOp) or one in outputs[:n] else one for n, one in enumerate(outputs)]
    made = create_prim_func([*inputs, *results, *symbols]).without_attr("global_symbol").with_attr("tir.noalias", True)
    if not symbols:  # a size among the arguments has no place among tensors
        _made.keep(made, [*inputs, *results])
    return made


def plain_tensors(func: PrimFunc) -> list[Tensor]:
    """The tensors of a function whose loops nobody has changed: they are those that its computation has by itself.

    Raises:
        DeclarationError: if it is no computation of tensors, or its loops are others; the message says which.
    """
    known = _made.find(func)
    if known is not None:
        return known
    try:
        tensors = tensors_of(func)
    except TensorExprError as error:
        raise DeclarationError(f"it is no computation of tensors: {error}") from None
    # Made again of what was read: only loops that nobody has changed come out the same.
    if not structural_equal(create_prim_func(tensors).with_attrs({}), func.with_attrs({})):
        raise DeclarationError("its loops were written or scheduled by hand")
    _made.keep(func, tensors)
    return tensors

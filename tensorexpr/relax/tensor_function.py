"""Tensor functions of what functions on tensors (`te`) compute, and the way back to the tensors for scheduling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from .. import te
from ..errors import DeclarationError, TensorExprError, TypeMismatchError
from ..te.checked import free_variables
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from ..te.to_prim_func import prim_func_later
from ..tir.arithmetic import as_int
from ..tir.block import BlockRealize
from ..tir.expr import IntImm, PrimExpr
from ..tir.expr import Var as Symbol
from ..tir.function import PrimFunc
from ..tir.rewriting import post_order_rewrite, substitute, variables
from ..tir.stmt import For, ForKind, SeqStmt, Stmt
from ..tir.structural import structural_equal
from ..tir.structural_digest import structural_hash
from .expr import Constant, PrimValue, RelaxExpr, Tuple, TupleGetItem
from .extents import simplified
from .struct_info import PrimStructInfo, ShapeExpr, StructInfo, TensorStructInfo, TupleStructInfo

_MOST_MADE = 4096
Argument: TypeAlias = Tensor | Symbol


class _Made:
    """Tensors by the functions that were made of them: reading blocks takes longer, and knows fewer reductions. The oldest go.

    Nearly always the function itself is asked for, with other attributes; a hash of its structure takes as long as making it, and is
    made only when another function of arguments as large is.
    """

    def __init__(self) -> None:
        self._by_body: OrderedDict[int, tuple[PrimFunc, list[Argument]]] = OrderedDict()
        self._by_structure: OrderedDict[int, tuple[PrimFunc, list[Argument]]] = OrderedDict()
        self._unhashed: dict[tuple[Any, ...], list[tuple[PrimFunc, list[Argument]]]] = {}

    def keep(self, func: PrimFunc, tensors: list[Argument]) -> None:
        """Remember what a function computes."""
        bare = func.with_attrs({})
        # The function is kept with them, so that no other body gets its id.
        self._by_body[id(bare.body_identity)] = bare, tensors
        self._unhashed.setdefault(outline(bare), []).append((bare, tensors))
        if len(self._by_body) > _MOST_MADE:
            oldest, _ = self._by_body.popitem(last=False)[1]
            waiting = self._unhashed.get(outline(oldest), [])
            if waiting and waiting[0][0] is oldest:
                waiting.pop(0)

    def find(self, func: PrimFunc) -> list[Argument] | None:
        """The tensors of a function that is the same but for names and attributes."""
        made, tensors = self._by_body.get(id(func.body_identity), (None, []))
        if made is not None and made.params == func.params and dict(made.buffer_map) == dict(func.buffer_map):
            return tensors
        waiting = self._unhashed.pop(outline(func), [])
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


class Sizes:
    """Symbols of a function's own, in place of extents that its arguments would not determine.

        [(h + 1) // 2, w], [(h + 1) // 2]    ->    [size, w], [size]

    Of an array of (h + 1) // 2 rows nobody can tell h. Functions of layers that halve their sizes differently become equal so, too. An
    expression of symbols that are extents themselves stays: [n], [n + 2] says how the two are related.

    Args:
        shapes: of all tensors that are arguments.
    """

    def __init__(self, shapes: Sequence[Sequence[PrimExpr]]) -> None:
        self.settled = {extent for shape in shapes for extent in shape if isinstance(extent, Symbol)}
        self.own: dict[PrimExpr, Symbol] = {}

    def extent(self, extent: PrimExpr) -> PrimExpr:
        """An extent of an argument."""
        if isinstance(extent, (IntImm, Symbol)) or self.settled.issuperset(variables(extent)):
            return extent
        # Simplified, since equal extents have to be one symbol: (h - 1) // 2 + 1 is (h + 1) // 2.
        return self.own.setdefault(simplified(extent), Symbol(f"size{len(self.own)}", extent.dtype))

    def value(self, value: PrimExpr) -> PrimExpr:
        """A number that is no extent of an argument, such as one of a shape to bring it into."""
        return post_order_rewrite(simplified(value), lambda node: self.own.get(node)) if self.own else value  # type: ignore[arg-type]

    def unknown(self, tensors: Sequence[Tensor]) -> set[Symbol]:
        """The symbols of results and their definitions that no argument determines."""
        known, found, seen = {*self.settled, *self.own.values()}, set[Symbol](), set[Any]()
        waiting = [tensor.op for tensor in tensors]
        while waiting:
            op = waiting.pop()
            if op in seen or isinstance(op, PlaceholderOp):
                continue
            seen.add(op)
            waiting += [tensor.op for tensor in op.input_tensors]
            found |= {var for n in range(op.num_outputs) for extent in op.output(n).shape for var in variables(extent)}
            if isinstance(op, ComputeOp):
                axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
                ranges = [end for axis in op.reduce_axis if axis.dom is not None for end in (axis.dom.min, axis.dom.extent)]
                found |= {var for one in (*op.body, *ranges) for var in free_variables(one) if var not in axes}
        return found - known

    def outside(self, info: StructInfo) -> StructInfo:
        """What is said of a result, in the symbols of the arguments."""
        if not self.own:
            return info
        if isinstance(info, TupleStructInfo):
            return TupleStructInfo(tuple(map(self.outside, info.fields)))
        assert isinstance(info, TensorStructInfo) and info.extents is not None
        given: dict[Symbol, PrimExpr] = {symbol: extent for extent, symbol in self.own.items()}
        return TensorStructInfo([simplified(substitute(one, given)) for one in info.extents], info.dtype)


class _Inputs:
    """Placeholders for the tensors among the arguments of a function on tensors."""

    def __init__(self, sizes: Sizes) -> None:
        self.given: list[tuple[Any, Argument]] = []
        self._sizes = sizes

    def __call__(self, value: Any) -> Any:
        """An argument as the function takes it: expressions that are tensors become placeholders, shapes tuples of extents."""
        if isinstance(value, (list, tuple)):
            return type(value)(self(one) for one in value)
        if isinstance(value, dict):
            return {key: self(one) for key, one in value.items()}
        if isinstance(value, Tuple):
            return [self(one) for one in value.fields]
        if isinstance(value, ShapeExpr):
            return tuple(self._sizes.value(one) for one in value.values)
        if isinstance(value, PrimValue):
            number = as_int(value.value)
            return self._sizes.value(value.value) if number is None else number
        if not isinstance(value, RelaxExpr):
            return value
        info = value.struct_info
        if isinstance(info, TupleStructInfo):
            return [self(TupleGetItem(value, n)) for n in range(len(info.fields))]
        extents = info.extents if isinstance(info, TensorStructInfo) else () if isinstance(info, PrimStructInfo) else None
        if not isinstance(info, (TensorStructInfo, PrimStructInfo)) or extents is None or not info.dtype:
            raise DeclarationError(
                f"{value} is {info}: a tensor computation needs the shape and dtype of its operands; match_cast it first"
            )
        # A value that is passed twice is one argument.
        known = next((made for given, made in self.given if given is value), None)
        if known is None:
            name = getattr(value, "name_hint", "const" if isinstance(value, Constant) else "x")
            is_number = isinstance(info, PrimStructInfo)
            known = Symbol(name, info.dtype) if is_number else te.placeholder(list(map(self._sizes.extent, extents)), info.dtype, name)
            self.given.append((value, known))
        return known


def _shapes(value: Any) -> Iterator[Sequence[PrimExpr]]:
    """The shapes of all tensors among arguments."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _shapes(one)
    elif isinstance(value, dict):
        yield from _shapes(list(value.values()))
    elif isinstance(value, RelaxExpr) and not isinstance(value, (ShapeExpr, PrimValue)):
        infos = [value.struct_info]
        while infos:
            info = infos.pop()
            infos.extend(info.fields if isinstance(info, TupleStructInfo) else ())
            if isinstance(info, TensorStructInfo) and info.extents is not None:
                yield info.extents


def tensor_function(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorFunction:
    """Run a function on placeholders, and make a tensor function of what it computes.

    Args:
        func: from tensors to a tensor, or a list or tuple of tensors.
        args, kwargs: of it: expressions that are tensors become placeholders, shapes tuples of extents, numbers themselves.

    Raises:
        DeclarationError: if the shape of a tensor isn't known, or it computes none.
    """
    shapes = [*_shapes(list(args)), *_shapes(dict(kwargs))]
    sizes = Sizes(shapes)
    lost = {var for shape in shapes for extent in shape for var in variables(extent)} - sizes.settled
    inputs = _Inputs(sizes)
    try:
        outputs = _computed(func, inputs, args, kwargs)
        needs = sizes.unknown(outputs) & lost
    except DeclarationError:
        # Slices [0:n] of n + 2 rows lie inside only for those who know n.
        if not sizes.own:
            raise
        needs = lost
    if needs:
        # It needs h itself, as a reshape to [h, 2] does: then h is an argument, and extents that are made of it stay.
        sizes = Sizes([*shapes, tuple(lost)])
        inputs = _Inputs(sizes)
        outputs = _computed(func, inputs, args, kwargs)
    inside = [made for _, made in inputs.given]
    tensors = [made for made in inside if isinstance(made, Tensor)]
    infos = tuple(TensorStructInfo(one.shape, one.dtype) for one in outputs)
    # An array that is written tells its extents as one that is read does.
    arguments = {one for made in (*tensors, *outputs) for one in made.shape if isinstance(one, Symbol)}
    used = {var for made in tensors for extent in made.shape for var in variables(extent)} | Sizes(()).unknown(outputs)
    free = tuple(sorted(used - arguments - {*inside}, key=lambda var: var.name))
    made = function_of_tensors(inside, outputs, free)
    result = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
    return TensorFunction(made, [given for given, _ in inputs.given], free, sizes.outside(result))


def _computed(func: Callable[..., Any], inputs: _Inputs, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
    """What a function on tensors computes, each result a tensor that is no argument."""
    computed = func(*map(inputs, args), **{key: inputs(value) for key, value in kwargs.items()})
    outputs = list(computed) if isinstance(computed, (list, tuple)) else [computed]
    outputs = [_copied(one) if isinstance(one, Tensor) and isinstance(one.op, PlaceholderOp) else one for one in outputs]
    if not outputs or not all(isinstance(one, Tensor) for one in outputs):
        raise TypeMismatchError(f"{getattr(func, '__name__', func)} returns {computed!r}, where a tensor or a list of tensors is expected")
    return outputs


def function_of_tensors(inputs: Sequence[Argument], outputs: Sequence[Tensor], symbols: Sequence[Symbol] = ()) -> PrimFunc:
    """The tensor function that computes tensors, which `plain_tensors` gives back."""
    # Each result is a buffer of its own, which some stage has to write.
    results = [_copied(one) if isinstance(one.op, PlaceholderOp) or one in outputs[:n] else one for n, one in enumerate(outputs)]
    # Sizes of a graph are int64, and so its functions are read and printed; the tensors, of which kernels are made, count in int32.
    made = prim_func_later([*inputs, *results, *symbols], "int64").without_attr("global_symbol").with_attr("tir.noalias", True)
    if not symbols:  # a size among the arguments has no place among tensors
        remember(made, [*inputs, *results])
    return made


def remember(func: PrimFunc, tensors: Sequence[Argument]) -> None:
    """Let `plain_arguments` give these for a function."""
    _made.keep(func, list(tensors))


def plain_tensors(func: PrimFunc) -> list[Tensor]:
    """The tensors of a function of tensors alone; see `plain_arguments`.

    Raises:
        DeclarationError: as there, and if it takes numbers.
    """
    found = plain_arguments(func)
    tensors = [one for one in found if isinstance(one, Tensor)]
    if len(tensors) < len(found):
        raise DeclarationError("it takes a number, which has no place among tensors")
    return tensors


def plain_arguments(func: PrimFunc) -> list[Argument]:
    """The tensors and numbers of a function whose loops nobody has changed: they are those that its computation has by itself.

    Raises:
        DeclarationError: if it is no computation of tensors, or its loops were scheduled; the message says which.
    """
    known = _made.find(func)
    if known is not None:
        return known
    from ..te.from_prim_func import arguments_of  # analyses of loops, which graphs without functions of their own don't need

    try:
        found = arguments_of(func)
    except TensorExprError as error:
        raise DeclarationError(f"it is no computation of tensors: {error}") from None
    if not _has_plain_loops(func):
        raise DeclarationError("its loops were scheduled by hand")
    _made.keep(func, found)
    return found


def _has_plain_loops(func: PrimFunc) -> bool:
    """Whether each block has loops of its own, one for each axis in their order, of which nothing more is said."""
    assert isinstance(func.body, BlockRealize)
    waiting: list[tuple[Stmt, tuple[Symbol, ...]]] = [(func.body.block.body, ())]
    while waiting:
        stmt, loops = waiting.pop()
        if isinstance(stmt, For):
            if stmt.kind != ForKind.SERIAL or stmt.thread_binding is not None or stmt.annotations:
                return False
            waiting.append((stmt.body, (*loops, stmt.loop_var)))
        elif isinstance(stmt, SeqStmt):
            if loops:  # somebody has put them there
                return False
            waiting += [(one, ()) for one in stmt.seq]
        elif isinstance(stmt, BlockRealize):
            values = tuple(value for value in stmt.iter_values if as_int(value) is None)
            if len(values) != len(loops) or any(a is not b for a, b in zip(values, loops, strict=True)):
                return False
    return True

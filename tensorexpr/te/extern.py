"""Tensors that a statement computes: `te.extern` for hand-written loops and calls of foreign or Python functions.

    C = te.extern((n,), [A], lambda ins, outs: tir.call_packed("my.sort", ins[0], outs[0]), name="C")

The statement reads the whole inputs and writes the whole outputs, so the stage has no loops to schedule and is computed
at the root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..dataclass import dataclass, replace
from ..errors import DeclarationError
from ..tir.analysis import undefined_vars
from ..tir.attrs import FrozenMap
from ..tir.buffer import Buffer, decl_buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, ProducerLoad, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import walk
from ..tir.scopes import buffer_vars
from ..tir.stmt import BufferStore, Evaluate, Stmt
from ..tir.stmt_functor import Renaming
from .declare import as_shape, checked_attrs, checked_tag
from .operation import Operation, PlaceholderOp
from .tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class ExternOp(Operation):
    """Outputs that `statement` writes into `output_placeholders`, reading the `inputs` through `input_placeholders`.

    Make one with `te.extern`, which checks the definition.
    """

    tag: str
    attrs: FrozenMap
    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]
    statement: Stmt

    @property
    def body(self) -> Stmt:
        """The statement."""
        return self.statement

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """No axis: the statement has its own loops."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """No axis."""
        return ()

    @property
    def num_outputs(self) -> int:
        """The number of buffers that the body writes."""
        return len(self.output_placeholders)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The shape of output `index`."""
        return self.output_placeholders[index].shape

    def output_dtype(self, index: int) -> str:
        """The dtype of output `index`."""
        return self.output_placeholders[index].dtype

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The inputs, each once."""
        return tuple(dict.fromkeys(self.inputs))

    @cached_property
    def whole_reads(self) -> tuple[ProducerLoad, ...]:
        """One read of each input, at its first element, that stands for all of them."""
        return tuple(ProducerLoad(t, tuple(IntImm(extent.dtype, 0) for extent in t.shape)) for t in self.input_tensors)

    def reading(self, old: Operation, new: Tensor) -> ExternOp:
        """This operation reading `new` in place of the result of `old`."""
        return replace(self, inputs=tuple(new if tensor.op is old else tensor for tensor in self.inputs))

    def pairs(self) -> tuple[tuple[Buffer, Tensor], ...]:
        """The buffers of the body with the tensors that they hold, inputs first."""
        outputs = (self.output(i) for i in range(self.num_outputs))
        return tuple(zip((*self.input_placeholders, *self.output_placeholders), (*self.inputs, *outputs), strict=True))

    def __str__(self) -> str:
        inputs = ", ".join(tensor.name for tensor in self.inputs)
        return f"extern({self.name}, [{inputs}], {str(self.statement).strip()})"


def extern(
    shape: Any,
    inputs: Sequence[Tensor] | Tensor,
    fcompute: Callable[[list[Buffer], list[Buffer]], Stmt | PrimExpr],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Declare tensors that a statement computes.

    Args:
        shape: the shape of the output, or a list of shapes for several outputs.
        inputs: the tensors that the statement reads.
        fcompute: from the buffers of the inputs and of the outputs to the statement, or to a call as an expression.
        name: of the operation, for printing.
        dtype: of the outputs, one for all or one for each; that of the inputs if None.
        in_buffers: buffers for the inputs, with strides and offsets of your choice (variables get their values).
        out_buffers: likewise for the outputs; their shapes and dtypes count.
        tag: a note for schedules.
        attrs: hints for schedulers; `FLOP` is the number of operations.

    Returns:
        The output tensor, or a list of them if there are several shapes.

    Raises:
        DeclarationError: if the definition is malformed; the message says how.
    """
    where = f"extern {name}"
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise DeclarationError(f"{where}: the input {tensor!r} is no tensor; inputs are te.Tensors")
    if not callable(fcompute):
        raise DeclarationError(f"{where}: fcompute is a function of the inputs' and outputs' buffers, not {fcompute!r}")
    given_in, given_out = _listed(in_buffers), _listed(out_buffers)
    if given_in is not None:
        _check_inputs(where, tensors, given_in)
    ins = given_in or [decl_buffer(t.shape, t.dtype, t.op.name) for t in tensors]
    outs = given_out or [decl_buffer(s, d, name) for s, d in zip(*_outputs(where, shape, dtype, tensors), strict=True)]
    body = fcompute(list(ins), list(outs))
    return _declared(tensors, body, ins, outs, name, tag, attrs, in_place=False)


def _declared(
    tensors: Sequence[Tensor],
    body: Stmt | PrimExpr,
    ins: Sequence[Buffer],
    outs: Sequence[Buffer],
    name: str = "extern",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    *,
    in_place: bool,
) -> Any:
    """The outputs of the operation with this body, checked."""
    stmt = Evaluate(body) if isinstance(body, PrimExpr) else body
    op = ExternOp(name, checked_tag(tag, f"extern {name}"), checked_attrs(attrs), tuple(tensors), tuple(ins), tuple(outs), stmt)
    verify_extern(op, in_place)
    made = [op.output(i) for i in range(op.num_outputs)]
    return made[0] if len(made) == 1 else made


def _listed(buffers: Any) -> list[Buffer] | None:
    if not buffers:
        return None
    return [buffers] if isinstance(buffers, Buffer) else list(buffers)


def _outputs(where: str, shape: Any, dtype: Any, inputs: Sequence[Tensor]) -> tuple[list[tuple[PrimExpr, ...]], list[str]]:
    """The shapes and dtypes of the outputs."""
    # [[4], [8]] are two shapes, [4, 8] is one
    several = isinstance(shape, (list, tuple)) and len(shape) > 0 and all(isinstance(part, (list, tuple)) for part in shape)
    shapes = [as_shape(part, where) for part in (shape if several else [shape])]
    if dtype is None:
        found = sorted({tensor.dtype for tensor in inputs})
        if len(found) != 1:
            raise DeclarationError(f"{where}: its inputs have the dtypes {', '.join(found) or 'of none'}; say which one the outputs have")
        dtype = found[0]
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    if len(dtypes) != len(shapes):
        raise DeclarationError(f"{where}: {len(shapes)} shapes and {len(dtypes)} dtypes; give one dtype for each output, or one for all")
    for one in dtypes:
        if parse_dtype(one).lanes > 1 or one == "handle":
            raise DeclarationError(f"{where}: elements are scalars, not {one}")
    return shapes, dtypes


def _check_inputs(where: str, tensors: Sequence[Tensor], buffers: Sequence[Buffer]) -> None:
    if len(tensors) != len(buffers):
        raise DeclarationError(f"{where}: {len(tensors)} inputs and {len(buffers)} in_buffers; give one buffer for each input")
    for tensor, buffer in zip(tensors, buffers, strict=True):
        if tensor.dtype != buffer.dtype or tensor.ndim != buffer.ndim:
            raise DeclarationError(
                f"{where}: the buffer {buffer.name} ({buffer.dtype}, {buffer.ndim} dimensions) "
                f"can't hold {tensor.name} ({tensor.dtype}, {tensor.ndim} dimensions)"
            )


def verify_extern(op: ExternOp, in_place: bool = False) -> None:
    """Check what an extern's statement mentions; with `in_place` it may write placeholders, the caller's arrays.

    Raises:
        DeclarationError: for a body that is no statement, reads tensors, writes an input or uses what nothing defines.
    """
    where = f"extern {op.name}"
    if not isinstance(op.statement, Stmt):
        raise DeclarationError(f"{where}: the function returned {op.statement!r}; it must return a statement (ib.get()) or a call")
    if not op.output_placeholders:
        raise DeclarationError(f"{where}: it has no output; give at least one shape")
    buffers = (*op.input_placeholders, *op.output_placeholders)
    if len({buffer.data for buffer in buffers}) != len(buffers):
        raise DeclarationError(f"{where}: two of its buffers share their memory; declare a buffer of its own for each input and output")
    # a computed input may have other readers, whom an update in place would reach; a placeholder is the caller's own array
    kept = [pair for pair in zip(op.input_placeholders, op.inputs, strict=True) if not (in_place and isinstance(pair[1].op, PlaceholderOp))]
    inputs = {buffer.data: buffer for buffer, _ in kept}
    for node in walk(op.statement):
        if isinstance(node, ProducerLoad):
            raise DeclarationError(f"{where}: it reads {node}, of a tensor; list the tensor in `inputs` and read its buffer in ins")
        if isinstance(node, BufferStore) and node.buffer.data in inputs:
            raise DeclarationError(f"{where}: it writes {inputs[node.buffer.data].name}, which is an input; write the buffers in outs")
    given = {var for buffer in buffers for var in (buffer.data, *buffer_vars(buffer))}
    missing = [var for var in undefined_vars(op.statement, tuple(given)) if var.dtype == "handle"]
    if missing:
        raise DeclarationError(f"{where}: nothing defines the memory {', '.join(v.name for v in missing)}; use ins, outs or ib.allocate")


def scalar_symbols(op: ExternOp) -> tuple[Var, ...]:
    """The scalar variables of the body that are no size, stride or offset of its buffers: parameters of the function."""
    given = {var for buffer, _ in op.pairs() for var in (buffer.data, *buffer_vars(buffer))}
    return tuple(undefined_vars(op.statement, tuple(given)))


def extern_function(op: ExternOp) -> PrimFunc:
    """The body as a function of the inputs, the outputs, and the `scalar_symbols`."""
    handles = {Var(buffer.name, "handle"): buffer for buffer, _ in op.pairs()}
    return PrimFunc((*handles, *scalar_symbols(op)), op.statement, None, handles)


def is_plain(buffer: Buffer) -> bool:
    """True for a compact buffer from the start of its memory: another buffer may simply take its place."""
    return not buffer.strides and isinstance(buffer.elem_offset, IntImm) and buffer.elem_offset.value == 0


def addressed(op: ExternOp) -> set[Var]:
    """The pointers that the body hands out, or looks through in another shape than that of its placeholder."""
    found: set[Var] = set()
    placeholders = {placeholder for placeholder, _ in op.pairs()}
    for node in walk(op.statement):
        if isinstance(node, Var) and node.dtype == "handle":
            found.add(node)
        elif isinstance(node, (BufferLoad, BufferStore)) and node.buffer not in placeholders:
            found.add(node.buffer.data)
    return found


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """Declare the tensors that a function writes, given tensors for the buffers that it reads.

    Args:
        input_tensors: one for each parameter that the function only reads, in their order; or one for each that it reads,
            also where it writes it, but for the outputs: then placeholders are changed in place, and the outputs are what
            is written only, or if there is nothing such the last parameter that is read and written.
        primfunc: a function of buffers; its symbolic sizes take those of the tensors.
        kwargs: `name`, `tag` and `attrs`, as for `te.extern`.

    Raises:
        DeclarationError: if the tensors do not fit the function.
    """
    where = f"extern {kwargs.get('name', 'extern')}"
    buffers = [primfunc.buffer_map[param] for param in primfunc.params if param in primfunc.buffer_map]
    stores = {node.buffer.data for node in walk(primfunc.body) if isinstance(node, BufferStore)}
    loads = {node.buffer.data for node in walk(primfunc.body) if isinstance(node, BufferLoad)}
    written = [buffer for buffer in buffers if buffer.data in stores]
    read = [buffer for buffer in buffers if buffer.data not in stores and buffer.data in loads]
    if not written:
        raise DeclarationError(f"{where}: the function writes none of its buffers, so it has no output")
    # how many tensors are given says which of the two readings is meant
    if len(read) != len(input_tensors):
        read, written = _in_place(buffers, loads, stores)
    if len(read) != len(input_tensors):
        names = ", ".join(buffer.name for buffer in read) or "none"
        raise DeclarationError(f"{where}: {len(input_tensors)} input tensors, but the function reads {len(read)} buffers ({names})")
    _check_inputs(where, input_tensors, read)
    sizes = _sizes(where, input_tensors, read)
    resized = Renaming(sizes, folding=False)
    body = resized.apply(primfunc.body) if sizes else primfunc.body
    ins, outs = [resized.buffer(buffer) for buffer in read], [resized.buffer(buffer) for buffer in written]
    return _declared(input_tensors, body, ins, outs, **kwargs, in_place=True)


def _in_place(buffers: Sequence[Buffer], loads: set[Var], stores: set[Var]) -> tuple[list[Buffer], list[Buffer]]:
    """What is read, if written or not, and what is written only; or all that is read but the last one that is also written."""
    read = [buffer for buffer in buffers if buffer.data in loads]
    written = [buffer for buffer in buffers if buffer.data in stores and buffer.data not in loads]
    if not written:
        written = [buffer for buffer in read if buffer.data in stores][-1:]
        read = [buffer for buffer in read if buffer not in written]
    return read, written


def _sizes(where: str, tensors: Sequence[Tensor], buffers: Sequence[Buffer]) -> dict[Var, PrimExpr]:
    """What the symbolic sizes of the function are, given its inputs."""
    sizes: dict[Var, PrimExpr] = {}
    for tensor, buffer in zip(tensors, buffers, strict=True):
        for dim, (have, want) in enumerate(zip(tensor.shape, buffer.shape, strict=True)):
            known = sizes.get(want, want) if isinstance(want, Var) else want
            # the first dimension that has a size says what it is, the others must agree
            if isinstance(want, Var) and want not in sizes:
                sizes[want] = have
            elif known is not have:
                raise DeclarationError(f"{where}: dimension {dim} of {tensor.name} has extent {have}, but {buffer.name} has {known}")
    return {var: size for var, size in sizes.items() if size is not var}

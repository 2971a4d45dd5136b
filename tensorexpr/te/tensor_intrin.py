"""Tensor intrinsics: what a few instructions compute, told as a tensor computation, and the statement that does it.

`decl_tensor_intrin` declares one and puts it into a register under its name. A schedule step names the intrinsic and the
digest of its content, so that a recorded schedule never means another intrinsic of the same name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..tir.analysis import undefined_vars
from ..tir.arithmetic import as_int
from ..tir.attrs import FrozenMap
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import BufferLoad, PrimExpr, Reduce, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import variables, walk
from ..tir.scopes import buffer_vars
from ..tir.stmt import BufferStore, Evaluate, Stmt
from ..tir.structural_digest import structural_hash
from .identity import dag_key
from .operation import ComputeOp, Operation, PlaceholderOp
from .row_crossing import with_flat_views
from .sized_intrin import check_reads_all, size_variables
from .tensor import Tensor
from .tensor_compute import TensorIntrinCall, call_intrin


@dataclass(frozen=True, eq=False)
class TensorIntrin:
    """An intrinsic: `op` says what it computes, the functions how. Make one with `decl_tensor_intrin`.

    Each function takes the buffers of the inputs, then of the outputs, then `scalars`. `body` computes everything,
    `reduce_init` gives the outputs their first value, and `reduce_update` adds one more part of a reduction to them.
    """

    name: str
    op: ComputeOp
    inputs: tuple[Tensor, ...]
    body: PrimFunc | None
    reduce_init: PrimFunc | None = None
    reduce_update: PrimFunc | None = None
    scalars: tuple[Var, ...] = ()
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", _digest(self))

    @staticmethod
    def get(name: str, digest: str | None = None) -> TensorIntrin:
        """The declared intrinsic of a name; with a digest, the one of just that content, else the last that was declared.

        Raises:
            DeclarationError: if there is none.
        """
        from . import intrinsics  # noqa: F401  that it is loaded declares the built-in ones, which few programs need

        known = _DECLARED.get(name, {})
        # a program may have declared its own of that name: only the digest tells that the built-in one is meant
        if name in _BUILT_IN and (digest not in known if digest is not None else not known):
            _register(_BUILT_IN[name]())
            known = _DECLARED[name]
        if not known:
            raise DeclarationError(
                f"no tensor intrinsic {name!r} is declared; declared are {', '.join(sorted({*_DECLARED, *_BUILT_IN})) or 'none'}: "
                "declare it with te.decl_tensor_intrin, or import the module that does, before the schedule is replayed"
            )
        if digest is not None and digest not in known:
            raise DeclarationError(
                f"the tensor intrinsic {name!r} that is declared is another one than the schedule names "
                f"({', '.join(known)}, not {digest}); declare it as it was when the schedule was recorded"
            )
        return known[digest] if digest is not None else list(known.values())[-1]

    def __call__(self, *args: Any, reduce_axis: Any = None) -> TensorIntrinCall:
        """The intrinsic applied to slices: what the function of a `te.compute` over its leading axes returns.

        Args:
            args: slices such as ``A[i, 0:16]``, one for each input, and values of the scalar parameters.
            reduce_axis: axes over which the results are added up.

        Raises:
            DeclarationError: if they do not fit the intrinsic.
        """
        return call_intrin(self, args, reduce_axis)

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name}: {self.op.body[0]})"


_DECLARED: dict[str, dict[str, TensorIntrin]] = {}
_BUILT_IN: dict[str, Callable[[], TensorIntrin]] = {}


def built_in(name: str) -> Callable[[Callable[[], TensorIntrin]], Callable[[], TensorIntrin]]:
    """Let the intrinsic `name` be declared by the decorated function when it is first asked for."""

    def register(make: Callable[[], TensorIntrin]) -> Callable[[], TensorIntrin]:
        _BUILT_IN[name] = make
        return make

    return register


def _register(intrin: TensorIntrin) -> None:
    """Make an intrinsic the last one of its name."""
    # a key that is set again keeps its place, so it is taken out to become the last
    _DECLARED.setdefault(intrin.name, {}).pop(intrin.digest, None)
    _DECLARED[intrin.name][intrin.digest] = intrin


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Sequence[Var] | None = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """Declare an intrinsic that `stage.tensorize` puts in place of loops.

    Args:
        op: a computation over placeholders: what the intrinsic computes.
        fcompute: called with the buffers of the inputs and of the outputs (and `scalar_params`, if there are any); returns
            the statement that computes all, or (body, reduce_init, reduce_update), of which body may be None.
        name: what recorded schedules call it.
        binds: the buffer to use for a tensor. Its strides and offset, where they are variables, are those of the
            elements that it stands for; where they are numbers, a place with others is refused.
        scalar_params: variables of `op` that stand for any expression that is the same in all of the intrinsic.
        default_buffer_params: arguments of `decl_buffer` for the other tensors.

    Raises:
        DeclarationError: for an `op` that is no computation over placeholders, buffers that do not fit, or statements that
            use what is neither a buffer of theirs nor a scalar.

    Extents may be variables: they take the extents of the loops that are tensorized, or of the slices that the intrinsic is
    applied to.
    """
    described = _described(op, name)
    if not callable(fcompute):
        raise DeclarationError(f"tensor intrinsic {name}: fcompute is a function of the inputs' and outputs' buffers, not {fcompute!r}")
    inputs, scalars = described.input_tensors, tuple(scalar_params or ())
    outputs = tuple(described.output(n) for n in range(described.num_outputs))
    buffers = [_buffer(t, binds or {}, default_buffer_params or {}, name) for t in (*inputs, *outputs)]
    _check_own_variables(buffers, size_variables(described, name), name)
    ins, outs = buffers[: len(inputs)], buffers[len(inputs) :]
    made = fcompute(ins, outs, list(scalars)) if scalars else fcompute(ins, outs)
    body, init, update = _statements(made, name)
    functions = [_function(part, ins, outs, scalars, name) for part in (body, init, update)]
    _check_init(init, ins, name)
    if body is None and update is None:
        raise DeclarationError(f"tensor intrinsic {name}: fcompute gave neither a body nor a reduce_update; one of them does the work")
    if update is not None and not isinstance(described.body[0], Reduce):
        raise DeclarationError(f"tensor intrinsic {name}: {described.name} is no reduction, so a reduce_update has nothing to update")
    intrin = TensorIntrin(name, described, inputs, functions[0], functions[1], functions[2], scalars)
    _register(intrin)
    return intrin


def _described(op: Operation, name: str) -> ComputeOp:
    """The computation of an intrinsic: of placeholders, reading all of each input."""
    where = f"tensor intrinsic {name}"
    if not isinstance(op, ComputeOp):
        raise DeclarationError(f"{where}: it is described by an operation such as C.op, not {op!r}")
    for tensor in op.input_tensors:
        if not isinstance(tensor.op, PlaceholderOp):
            raise DeclarationError(f"{where}: {op.name} reads {tensor.name}, which is computed; describe it over placeholders only")
    size_variables(op, where)
    for axis in op.reduce_axis:
        if axis.dom is None or as_int(axis.dom.min) != 0:
            raise DeclarationError(f"{where}: the reduction axis {axis.name} runs over {axis.dom}; let it start at 0")
    check_reads_all(op, where)
    return op


def _buffer(tensor: Tensor, binds: Mapping[Tensor, Buffer], params: Mapping[str, Any], name: str) -> Buffer:
    """The buffer of a tensor; a fresh one may stand anywhere."""
    buffer = binds.get(tensor)
    if buffer is None:
        return decl_buffer(tensor.shape, tensor.dtype, tensor.name, **{"offset_factor": 1, **params})
    # numbers of other index dtypes are the same extent
    alike = (a is b or as_int(a) == as_int(b) is not None for a, b in zip(buffer.shape, tensor.shape, strict=False))
    same = len(buffer.shape) == len(tensor.shape) and all(alike)
    if buffer.dtype != tensor.dtype or not same:
        have, want = (f"[{', '.join(map(str, t.shape))}] of {t.dtype}" for t in (buffer, tensor))
        raise DeclarationError(f"tensor intrinsic {name}: the buffer bound to {tensor.name} is {have}; the tensor is {want}")
    return buffer


def _check_own_variables(buffers: Sequence[Buffer], sizes: Sequence[Var], name: str) -> None:
    """Each buffer has pointer, strides and offset of its own: they are set one buffer at a time. Sizes are known before."""
    seen: dict[Var, Buffer] = {}
    for buffer in buffers:
        for var in (var for var in dict.fromkeys((buffer.data, *buffer_vars(buffer))) if var not in sizes):
            other = seen.setdefault(var, buffer)
            if other is not buffer:
                raise DeclarationError(
                    f"tensor intrinsic {name}: the buffers {other.name} and {buffer.name} share the variable {var.name}; give each its own"
                )


def _statements(made: Any, name: str) -> tuple[Stmt | None, Stmt | None, Stmt | None]:
    """body, init, update as statements; an expression is evaluated."""
    listed = list(made) if isinstance(made, (list, tuple)) else [made]
    parts = [Evaluate(part) if isinstance(part, PrimExpr) else part for part in listed]
    if not 1 <= len(parts) <= 3 or not all(part is None or isinstance(part, Stmt) for part in parts):
        raise DeclarationError(f"tensor intrinsic {name}: fcompute returns a statement or (body, reduce_init, reduce_update), not {made!r}")
    body, init, update = (*parts, None, None)[:3]
    return body, init, update


def _function(stmt: Stmt | None, ins: Sequence[Buffer], outs: Sequence[Buffer], scalars: Sequence[Var], name: str) -> PrimFunc | None:
    """A statement over its buffers as a function, so that it can be renamed, printed and interpreted."""
    if stmt is None:
        return None
    buffers = (*ins, *outs)
    own = [var for b in buffers for var in (b.data, *buffer_vars(b))]
    unknown = undefined_vars(stmt, (*own, *scalars))
    if unknown:
        raise DeclarationError(
            f"tensor intrinsic {name}: its statement uses {', '.join(v.name for v in unknown)}, which is neither a part of a buffer nor a "
            "scalar parameter; name it in scalar_params"
        )
    for buffer in _written(stmt):
        if any(buffer.data is given.data for given in ins):
            raise DeclarationError(f"tensor intrinsic {name}: its statement writes {buffer.name}, an input; only outputs are written")
    params = {Var(b.name, "handle"): b for b in buffers}
    body = with_flat_views(stmt, buffers, name)
    return PrimFunc((*params, *scalars), body, None, params, FrozenMap({"global_symbol": name, "tir.noalias": True}))


def _written(stmt: Stmt) -> Iterator[Buffer]:
    return (node.buffer for node in walk(stmt) if isinstance(node, BufferStore))


def _check_init(init: Stmt | None, ins: Sequence[Buffer], name: str) -> None:
    """The first value of an accumulator is made before there are inputs."""
    if init is None:
        return
    pointers = {buffer.data: buffer for buffer in ins}
    used = [node.buffer.data for node in walk(init) if isinstance(node, BufferLoad)]
    found = next((pointers[var] for var in (*used, *variables(init)) if var in pointers), None)
    if found is not None:
        raise DeclarationError(f"tensor intrinsic {name}: reduce_init reads the input {found.name}; it may only write the outputs")


def _digest(intrin: TensorIntrin) -> str:
    """16 hexadecimal digits of what an intrinsic computes and how; the same in every process."""
    outputs = [intrin.op.output(n) for n in range(intrin.op.num_outputs)]
    # neither counts names of variables, so that renaming one leaves recorded schedules valid
    parts = [dag_key(outputs)]
    for function in (intrin.body, intrin.reduce_init, intrin.reduce_update):
        parts.append("none" if function is None else f"{structural_hash(function):016x}")
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]

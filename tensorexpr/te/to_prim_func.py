"""From tensors to a function of blocks: one block for each compute, which `tir.Schedule` transforms.

    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0.0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

Intermediate tensors are buffers of the root block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..tir.analysis import undefined_vars
from ..tir.arithmetic import cast
from ..tir.attrs import EMPTY, FrozenMap
from ..tir.block import Block, BlockRealize
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import SizeVar, Var
from ..tir.function import LaterBody, PrimFunc
from ..tir.rewriting import variables
from ..tir.scopes import buffer_vars
from ..tir.stmt import Stmt, seq
from .bounds import refuse_reads_outside
from .dag import post_dfs_order
from .demand import check_demand
from .dependent_axes import dependent_axes
from .extern import ExternOp
from .index_dtype import retyped
from .operation import ComputeOp, Operation, PlaceholderOp
from .tensor import Tensor

_INDEX_DTYPES = ("int32", "int64")


def create_prim_func(ops: Sequence[Tensor | Var] | Tensor, index_dtype_override: str | None = None) -> PrimFunc:
    """The function of blocks that computes tensors.

    Args:
        ops: the parameters in order: inputs, outputs and any intermediate that the caller wants as tensors, and scalar
            variables.
        index_dtype_override: "int32" or "int64" for all loops, shapes and indices; None keeps their own.

    Returns:
        A function with the attributes ``{"global_symbol": "main", "tir.noalias": True}``.

    Raises:
        DeclarationError: if an input is missing, something is given twice, or an operation is no placeholder,
            compute or extern.
    """
    params = [ops] if isinstance(ops, Tensor) else list(ops)
    if index_dtype_override not in (None, *_INDEX_DTYPES):
        raise DeclarationError(f"create_prim_func: index_dtype_override is one of {', '.join(_INDEX_DTYPES)}, not {index_dtype_override!r}")
    return _Builder(params, index_dtype_override).build()


def prim_func_later(ops: Sequence[Tensor | Var], index_dtype: str) -> PrimFunc:
    """As `create_prim_func`, with blocks that are made when somebody looks at the body; at once where making them may fail.

    Args:
        ops: as there; all variables that the tensors use are among them, or sizes of them.
        index_dtype: as there.

    Raises:
        DeclarationError: as there.
    """
    return _Builder(list(ops), index_dtype).build_later()


_LAYOUT_FREE = "layout_free_placeholders"


class UnsupportedOperationError(DeclarationError, TypeError):
    """An operation of a kind that no block computes."""


class _Builder:
    """One function: the buffers of all tensors, and where they are declared."""

    def __init__(self, params: Sequence[Any], index_dtype: str | None) -> None:
        self._index_dtype = index_dtype
        self._sizes: dict[Var, Var] = {}
        self._params: list[Var] = []
        self._buffer_map: dict[Var, Buffer] = {}
        self._buffers: dict[Tensor, Buffer] = {}
        self._given = [param for param in params if isinstance(param, Tensor)]
        # all of them before any tensor is declared: a size that is passed is that size, wherever it stands
        self._scalars = {param for param in params if isinstance(param, Var)}
        for position, param in enumerate(params):
            self._add_param(position, param)
        if not self._given:
            raise DeclarationError("create_prim_func takes the tensors of the function, inputs and outputs, as in [A, B, C]; got none")
        self._order = post_dfs_order([tensor.op for tensor in self._given])
        for op in self._order:
            if not isinstance(op, (PlaceholderOp, ComputeOp, ExternOp)):
                raise UnsupportedOperationError(
                    f"create_prim_func: Unsupported Operation: {type(op).__name__}. {op.name} is no placeholder, te.compute or te.extern, "
                    "of which blocks are made, so lower it through te.create_schedule"
                )
        refuse_reads_outside(self._order)
        check_demand(self._order, self._order)  # blocks compute whole tensors

    def build(self) -> PrimFunc:
        """The whole function."""
        func = PrimFunc(tuple(self._params), self._body(), None, self._buffer_map, self._attrs())
        self._check_defined(func)
        return func

    def build_later(self) -> PrimFunc:
        """The function without its body, if nothing can be wrong with that one."""
        for op in self._order:
            if isinstance(op, PlaceholderOp):
                self._check_given(op)
            # What others say blocks may be unable to do.
            elif type(op) is not ComputeOp or dependent_axes(op):
                return self.build()
        return PrimFunc.of_later_body(tuple(self._params), LaterBody(self._body), self._buffer_map, self._attrs())

    def _body(self) -> Stmt:
        """The root block around those of all operations."""
        # A function that nobody looks into has none.
        from .compute_block import TRUE, BlockNames, ComputeBlocks
        from .extern_block import extern_block

        names, nests, allocated = BlockNames(), [], []
        for op in self._order:
            if isinstance(op, PlaceholderOp):
                self._check_given(op)
                continue
            # what the caller doesn't ask for lives in buffers of the root block
            for tensor in map(op.output, range(op.num_outputs)):
                if tensor not in self._buffers:
                    allocated.append(self._declare(tensor))
            annotations = self._annotations(op)
            if isinstance(op, ExternOp):
                nests.append(extern_block(op, self._buffers, names, annotations))
                continue
            assert isinstance(op, ComputeOp)
            nests.append(ComputeBlocks(op, self._buffers, names, annotations, self._index_dtype, self._sizes).build())
        return BlockRealize((), TRUE, Block((), (), (), "root", seq(*nests), alloc_buffers=tuple(allocated)))

    def _add_param(self, position: int, param: Any) -> None:
        if isinstance(param, Var):
            self._params.append(param)
            return
        if not isinstance(param, Tensor):
            raise DeclarationError(f"create_prim_func: argument {position} is {param!r}; it takes tensors and scalar variables (te.var)")
        if param in self._buffers:
            raise DeclarationError(f"create_prim_func: argument {position}, {param.name}, is given twice; each tensor is one argument")
        handle = Var(f"var_{param.name}", "handle")
        self._params.append(handle)
        self._buffer_map[handle] = self._declare(param)

    def _declare(self, tensor: Tensor) -> Buffer:
        """The buffer of a tensor, with its sizes in the wanted dtype."""
        shape = tensor.shape
        if self._index_dtype is not None:
            wanted = self._index_dtype
            # lazily: a size that stands twice in one shape is in `_sizes` when its second use is looked at
            for var in (v for extent in shape for v in variables(extent) if v not in self._sizes):
                kind = SizeVar if isinstance(var, SizeVar) else Var
                # one new variable for each: buffers that share a size go on sharing it
                self._sizes[var] = var if var in self._scalars or var.dtype == wanted else kind(var.name, wanted)
            shape = tuple(cast(retyped(extent, self._sizes, wanted), wanted) for extent in shape)
        buffer = self._buffers[tensor] = decl_buffer(shape, tensor.dtype, tensor.name)
        return buffer

    def _check_given(self, op: Operation) -> None:
        if op.output(0) not in self._buffers:
            names = ", ".join(tensor.name for tensor in self._given)
            raise DeclarationError(
                f"create_prim_func: placeholder {op.name} is read but missing from the arguments ({names}); pass every input"
            )

    def _annotations(self, op: Operation) -> FrozenMap:
        """The attributes of an operation, with buffers for tensors; the free layouts of arguments are the function's business."""
        found = {key: self._attribute(value) for key, value in op.attrs.items() if key != _LAYOUT_FREE}
        inner = [tensor for tensor in op.attrs.get(_LAYOUT_FREE, ()) if isinstance(tensor, Tensor) and tensor not in self._given]
        if inner:
            found[_LAYOUT_FREE] = self._attribute(inner)
        return FrozenMap(found) if found else EMPTY

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._buffers.get(value, value.name)
        return [self._attribute(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _attrs(self) -> FrozenMap:
        free = {tensor for op in self._order for tensor in op.attrs.get(_LAYOUT_FREE, ())}
        layout_free = [number for number, var in enumerate(self._params) if self._tensor_of(var) in free]
        extra = {"layout_free_buffers": layout_free} if layout_free else {}
        return FrozenMap({"global_symbol": "main", "tir.noalias": True, **extra})

    def _tensor_of(self, param: Var) -> Tensor | None:
        buffer = self._buffer_map.get(param)
        return next((tensor for tensor in self._given if self._buffers[tensor] is buffer), None) if buffer is not None else None

    def _check_defined(self, func: PrimFunc) -> None:
        given: Mapping[Var, None] = dict.fromkeys(
            [*func.params, *(v for b in self._buffer_map.values() for v in (b.data, *buffer_vars(b)))]
        )
        missing = undefined_vars(func.body, given)
        if missing:
            names = ", ".join(var.name for var in missing)
            raise DeclarationError(f"create_prim_func: {names} is neither an argument nor a size of one; add it to the arguments")

"""When two computations are the same: their canonical form, equality and key.

Names of operations, axes and variables don't count, nor do tags and attributes, which are hints. The order of the
given tensors, of axes and of operands does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ..dataclass import dataclass, field, fields
from ..errors import InternalError
from ..tir.attrs import FrozenMap
from ..tir.buffer import Buffer
from ..tir.expr import CommReducer, FloatImm, IterVar, PrimExpr, Range, SizeVar, Var
from ..tir.rewriting import walk
from ..tir.stmt import Stmt
from .dag import post_dfs_order
from .extern import ExternOp
from .operation import ComputeOp, Operation, PlaceholderOp
from .scan_op import ScanOp
from .tensor import Tensor

Form = tuple[Any, ...]


@dataclass(slots=True)
class _Canon:
    """Numbers operations, variables and expressions in order of first appearance."""

    ops: dict[Operation, int] = field(default_factory=dict)
    variables: dict[Var, tuple[str, int]] = field(default_factory=dict)
    free: int = 0
    rows: dict[Form, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    buffers: dict[Buffer, int] = field(default_factory=dict)

    def row(self, form: Form) -> int:
        """The number of a form; equal forms share it."""
        return self.rows.setdefault(form, len(self.rows))

    def bind(self, kind: str, variables: Sequence[Var]) -> None:
        """Name bound variables by their position, so that renamed definitions agree."""
        for position, var in enumerate(variables):
            self.variables[var] = (kind, position)

    def expr(self, root: PrimExpr) -> int:
        """The number of an expression."""
        if id(root) in self.known:
            return self.known[id(root)]
        for node in walk(root):
            if isinstance(node, PrimExpr) and id(node) not in self.known:
                # operands come first, so a form is made of their numbers
                self.known[id(node)] = self.row(self._form(node))
        return self.known[id(root)]

    def buffer(self, buffer: Buffer) -> Form:
        """The form of a buffer, by its number and layout."""
        number = self.buffers.setdefault(buffer, len(self.buffers))
        layout = tuple(tuple(map(self.expr, part)) for part in (buffer.shape, buffer.strides, (buffer.elem_offset,)))
        return ("buffer", number, self.expr(buffer.data), buffer.dtype, buffer.scope(), *layout)

    def _form(self, node: PrimExpr | Stmt) -> Form:
        if isinstance(node, Var):
            if node not in self.variables:
                self.variables[node] = ("size" if isinstance(node, SizeVar) else "free", self.free)
                self.free += 1
            return (*self.variables[node], node.dtype)
        if isinstance(node, FloatImm):
            # exact, and tells -0.0 from 0.0, which compare equal
            return ("FloatImm", node.dtype, float(node).hex())
        names = (f.name for f in fields(node) if f.init)  # type: ignore[arg-type]
        return (type(node).__name__, *(self._value(getattr(node, name)) for name in names))

    def _value(self, value: Any) -> Any:
        match value:
            case None | str() | int():
                return value
            case PrimExpr():
                return ("#", self.expr(value))
            case tuple():
                return tuple(self._value(item) for item in value)
            case Tensor(op=op, value_index=index):
                return ("tensor", self.ops[op], index)
            case IterVar(var=var):
                return ("#", self.expr(var))
            case CommReducer():
                return self._combiner(value)
            case Buffer():
                return self.buffer(value)
            case Stmt():
                return self._form(value)
            case Range():
                return self._range(value)
            case FrozenMap():
                return tuple((key, self._value(value[key])) for key in sorted(value))
        raise InternalError(f"{type(value).__name__} in an expression has no canonical form")

    def _combiner(self, combiner: CommReducer) -> Form:
        self.bind("lhs", combiner.lhs)
        self.bind("rhs", combiner.rhs)
        return (
            "combiner",
            *(tuple(map(self.expr, part)) for part in (combiner.lhs, combiner.rhs, combiner.result, combiner.identity_element)),
        )

    def operation(self, op: Operation) -> Form:
        """The form of an operation whose inputs are numbered."""
        match op:
            case PlaceholderOp(shape=shape, dtype=dtype):
                return ("placeholder", dtype, tuple(map(self.expr, shape)))
            case ComputeOp():
                domains = tuple(self._range(axis.dom) for axis in (*op.axis, *op.reduce_axis))
                self.bind("axis", [axis.var for axis in op.axis])
                self.bind("reduce", [axis.var for axis in op.reduce_axis])
                self.known.clear()  # axes may be shared between operations and stand at other positions there
                return ("compute", len(op.axis), domains, tuple(map(self.expr, op.body)))
            case ExternOp():
                tensors = tuple(self._value(tensor) for tensor in op.inputs)
                placeholders = tuple(self.buffer(b) for b in (*op.input_placeholders, *op.output_placeholders))
                return ("extern", tensors, placeholders, self._form(op.statement))
            case ScanOp():
                parts = (op.init, op.update, op.state_placeholder)
                return ("scan", *(tuple(self._value(tensor) for tensor in part) for part in parts))
        raise InternalError(f"operation {op.name} ({type(op).__name__}) has no canonical form")

    def _range(self, dom: Range | None) -> Form | None:
        return None if dom is None else (self.expr(dom.min), self.expr(dom.extent))


def canonical_form(tensors: Sequence[Tensor]) -> Form:
    """The computation of `tensors` with all names replaced by positions; equal for equal computations only."""
    canon = _Canon()
    forms = []
    for op in post_dfs_order([tensor.op for tensor in tensors]):
        forms.append(canon.operation(op))
        canon.ops[op] = len(canon.ops)
    outputs = tuple((canon.ops[tensor.op], tensor.value_index) for tensor in tensors)
    # rows are in order of their numbers, since dicts keep the order of insertion
    return (tuple(canon.rows), tuple(forms), outputs)


def dag_equal(a: Sequence[Tensor], b: Sequence[Tensor]) -> bool:
    """True if both are the same computation up to names, tags and attributes."""
    return canonical_form(a) == canonical_form(b)


def dag_key(tensors: Sequence[Tensor]) -> str:
    """32 hexadecimal digits that are the same for equal computations, in every process. Confirm a match by `dag_equal`."""
    return hashlib.sha256(repr(canonical_form(tensors)).encode()).hexdigest()[:32]

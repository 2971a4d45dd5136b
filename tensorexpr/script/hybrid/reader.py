"""Statements of hybrid functions, from the syntax tree to loops over buffers. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ...te.hybrid_op import HybridOp, verify_hybrid
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int, cast, convert
from ...tir.attrs import EMPTY
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import IntImm, IterVar, PrimExpr, StringImm, Var
from ...tir.stmt import NOP, Allocate, AssertStmt, BufferStore, For, ForKind, IfThenElse, Stmt, seq
from ...tir.storage_scope import is_storage_scope
from ...tir.thread import HARDWARE_TAGS
from ..parser.source import Source
from .values import Rows, Scalar, Values, plain

_KINDS = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
}
_TRUE = IntImm("bool", 1)


class HybridReader:
    """One function over given arguments."""

    def __init__(self, source: Source, function: ast.FunctionDef, captured: Mapping[str, Any]) -> None:
        self._source, self._function = source, function
        self._names: dict[str, Any] = dict(captured)
        self._values = Values(source, self._names)
        self._outputs: dict[str, Buffer] = {}
        self._assigned = _assignments(function)
        self.returned: list[Buffer] = []

    def read(self, args: Sequence[Any]) -> HybridOp:
        """The operation that the function is for these arguments: tensors, variables, numbers, and sequences of such."""
        tensors: dict[Tensor, Buffer] = {}
        body = self.bound([_as_buffers(arg, tensors) for arg in args])
        op = HybridOp(self._function.name, "", EMPTY, tuple(tensors), tuple(tensors.values()), tuple(self.returned), body)
        unreturned = [name for name, buffer in self._outputs.items() if buffer not in self.returned]
        if unreturned:
            raise self._values.fail(self._function, f"the output_tensor {unreturned[0]} is not returned; return it, or allocate it")
        verify_hybrid(op)
        return op

    def bound(self, args: Sequence[Any]) -> Stmt:
        """The body with the parameters standing for `args`; afterwards `returned` has the buffers that it returns."""
        names = [arg.arg for arg in self._function.args.args]
        if len(names) != len(args):
            raise self._values.fail(
                self._function, f"{self._function.name} takes {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        self._names.update(zip(names, args, strict=True))
        return self._block(self._function.body)

    def _block(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """Statements in order, whose names mean nothing after it but for output tensors."""
        outer = dict(self._names)
        body = self._rest(nodes)
        kept = {name: value for name, value in self._names.items() if name in self._outputs}
        self._names.clear()
        self._names.update({**outer, **kept})
        return body

    def _rest(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """Statements in order; what one allocates exists for those after it."""
        found: list[Stmt] = []
        for place, node in enumerate(nodes):
            made, storage = self._statement(node)
            if not storage:
                found.append(made)
                continue
            rest = seq(made, self._rest(nodes[place + 1 :]))
            for buffer in reversed(storage):
                rest = Allocate(buffer.data, buffer.dtype, buffer.shape, _TRUE, rest, EMPTY)
            return seq(*found, rest)
        return seq(*found)

    def _statement(self, node: ast.stmt) -> tuple[Stmt, Sequence[Buffer]]:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return NOP, ()
            case ast.Return():
                self._return(node)
                return NOP, ()
            case ast.Assign(targets=[target], value=value):
                return self._assign(node, target, value)
            # The target reads its old value as the left operand.
            case ast.AugAssign(target=target, op=op, value=value):
                return self._store(target, ast.copy_location(ast.BinOp(target, op, value), node)), ()
            case ast.For(orelse=[]):
                return self._loop(node), ()
            case ast.If(test=test, body=body, orelse=orelse):
                return self._branch(test, body, orelse), ()
            case ast.Assert(test=test, msg=message):
                words = message.value if isinstance(message, ast.Constant) else "assertion failed"
                condition = plain(self._values.value(test))
                return (NOP if condition is True else AssertStmt(convert(condition), StringImm(str(words)), NOP)), ()
        raise self._values.fail(node, "a hybrid function is made of for, if, assignments, assert and return")

    def _return(self, node: ast.Return) -> None:
        items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value is not None else []
        for item in items:
            found = self._names.get(item.id) if isinstance(item, ast.Name) else None
            if not isinstance(found, Buffer) or found not in self._outputs.values():
                raise self._values.fail(node, "a hybrid function returns the names of its output_tensors")
            self.returned.append(found)

    def _assign(self, node: ast.Assign, target: ast.expr, value: ast.expr) -> tuple[Stmt, Sequence[Buffer]]:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Call) and self._callee(value) is not None:
            return self._inlined(node, [_identifier(item) for item in target.elts], value)
        if not isinstance(target, ast.Name):
            return self._store(target, value), ()
        name = target.id
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id in ("output_tensor", "allocate"):
                return self._declared(name, value)
            if self._callee(value) is not None:
                return self._inlined(node, [name], value)
        if isinstance(self._names.get(name), Scalar):
            return self._store(target, value), ()
        found = self._values.value(value)
        if self._assigned.get(name, 0) == 1 and not isinstance(found, PrimExpr):
            self._names[name] = found  # a constant
            return NOP, ()
        if isinstance(found, (Buffer, Rows, tuple, list, str)):
            raise self._values.fail(node, f"{name} is assigned more than once, so it holds a number, not {ast.unparse(value)}")
        # An expression, or assigned again somewhere: an element of memory, which each assignment stores to.
        held = convert(found)
        buffer = decl_buffer((1,), held.dtype, name)
        self._names[name] = Scalar(buffer)
        return BufferStore(buffer, held, (IntImm("int32", 0),)), (buffer,)

    def _declared(self, name: str, call: ast.Call) -> tuple[Stmt, Sequence[Buffer]]:
        assert isinstance(call.func, ast.Name)
        given = [self._values.value(arg) for arg in call.args]
        named = {str(word.arg): self._values.value(word.value) for word in call.keywords}
        parameters = ("shape", "dtype", "scope")
        options = {**dict(zip(parameters, given, strict=False)), **named}
        shape = options.get("shape", ())
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if call.func.id == "output_tensor":
            self._outputs[name] = self._names[name] = decl_buffer(shape, options.get("dtype", "float32"), name)
            return NOP, ()
        scope = str(options.get("scope", "global"))
        if not is_storage_scope(scope):
            raise self._values.fail(call, f"{scope!r} is no storage scope")
        buffer = decl_buffer(shape, options.get("dtype", "float32"), name, scope=scope)
        self._names[name] = buffer
        return NOP, (buffer,)

    def _store(self, target: ast.expr, value: ast.expr) -> Stmt:
        stored = self._values.scalar(value)
        indices: tuple[PrimExpr, ...]
        if isinstance(target, ast.Name) and isinstance(self._names.get(target.id), Scalar):
            buffer, indices = self._names[target.id].buffer, (IntImm("int32", 0),)
        elif isinstance(target, ast.Subscript):
            owner, index = self._values.value(target.value), self._values.value(target.slice)
            items = index if isinstance(index, tuple) else (index,)
            buffer, items = (owner.buffer, (*owner.indices, *items)) if isinstance(owner, Rows) else (owner, items)
            if not isinstance(buffer, Buffer) or len(items) != len(buffer.shape):
                raise self._values.fail(target, f"{ast.unparse(target)} is no element of a tensor")
            indices = tuple(map(convert, items))
        else:
            raise self._values.fail(target, f"{ast.unparse(target)} can't be assigned")
        return BufferStore(buffer, cast(stored, buffer.dtype), indices)

    def _loop(self, node: ast.For) -> Stmt:
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise self._values.fail(call, f"a loop runs over {', '.join((*_KINDS, 'const_range', 'grid', 'bind'))}")
        word, args = call.func.id, [self._values.value(arg) for arg in call.args]
        if word == "grid":
            names = [_identifier(item) for item in node.target.elts] if isinstance(node.target, ast.Tuple) else [_identifier(node.target)]
            return self._nest(node, list(zip(names, args, strict=True)))
        name = _identifier(node.target)
        low, high = (0, args[-1]) if len(args) == 1 or word == "bind" else (args[0], args[1])
        if word == "const_range":
            first, last = as_int(low), as_int(high)
            if first is None or last is None:
                raise self._values.fail(call, "const_range takes constants; use range")
            # The body is read anew for each number, so constants in it fold.
            return seq(*(self._with(node, {name: number}) for number in range(first, last)))
        extent = convert(high) - convert(low)
        var = Var(name, extent.dtype)
        body = self._with(node, {name: var})
        if word == "bind":
            if args[0] not in HARDWARE_TAGS:
                raise self._values.fail(call, f"bind takes a tag of threads, not {args[0]!r}; tags: {', '.join(HARDWARE_TAGS)}")
            axis = IterVar(None, Var(str(args[0]), extent.dtype), IterVar.THREAD_INDEX, str(args[0]))
            return For(var, IntImm(extent.dtype, 0), extent, ForKind.THREAD_BINDING, body, axis)
        if word not in _KINDS:
            raise self._values.fail(call, f"a loop runs over {', '.join((*_KINDS, 'const_range', 'grid', 'bind'))}, not {word}")
        return For(var, cast(convert(low), extent.dtype), extent, _KINDS[word], body)

    def _nest(self, node: ast.For, axes: list[tuple[str, Any]]) -> Stmt:
        extents = [convert(extent) for _, extent in axes]
        variables = [Var(name, extent.dtype) for (name, _), extent in zip(axes, extents, strict=True)]
        body = self._with(node, {var.name: var for var in variables})
        for var, extent in reversed(list(zip(variables, extents, strict=True))):
            body = For(var, IntImm(extent.dtype, 0), extent, ForKind.SERIAL, body)
        return body

    def _with(self, node: ast.For, bound: Mapping[str, Any]) -> Stmt:
        outer = {name: self._names[name] for name in bound if name in self._names}
        self._names.update(bound)
        body = self._block(node.body)
        for name in bound:
            self._names.pop(name, None)
        self._names.update(outer)
        return body

    def _branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> Stmt:
        condition = plain(self._values.value(test))
        if isinstance(condition, (bool, int)):
            return self._block(body if condition else orelse)
        return IfThenElse(convert(condition), self._block(body), self._block(orelse) if orelse else None)

    def _callee(self, call: ast.Call) -> Any:
        found = self._names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        return found if hasattr(found, "hybrid_reader") else None

    def _inlined(self, node: ast.Assign, names: Sequence[str], call: ast.Call) -> tuple[Stmt, Sequence[Buffer]]:
        """Another hybrid function in place of its call: its outputs are allocated here."""
        reader: HybridReader = self._callee(call).hybrid_reader()
        body = reader.bound([self._values.value(arg) for arg in call.args])
        if len(reader.returned) != len(names):
            raise self._values.fail(node, f"{ast.unparse(call.func)} returns {len(reader.returned)} tensors, for {len(names)} names")
        self._names.update(zip(names, reader.returned, strict=True))
        # its outputs are no outputs here, so they get memory of their own
        return body, tuple(reader.returned)


def _as_buffers(arg: Any, tensors: dict[Tensor, Buffer]) -> Any:
    if isinstance(arg, Tensor):
        return tensors.setdefault(arg, decl_buffer(arg.shape, arg.dtype, arg.op.name))
    return tuple(_as_buffers(item, tensors) for item in arg) if isinstance(arg, (list, tuple)) or _is_array(arg) else plain(arg)


def _is_array(arg: Any) -> bool:
    return type(arg).__name__ == "Array"


def _identifier(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _assignments(function: ast.FunctionDef) -> dict[str, int]:
    """How often each name is assigned."""
    counts: dict[str, int] = {}
    for node in ast.walk(function):
        # Twice, as it changes what an assignment before it set: a name with `x += 1` is no constant.
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] * 2 if isinstance(node, ast.AugAssign) else []
        for target in targets:
            if isinstance(target, ast.Name):
                counts[target.id] = counts.get(target.id, 0) + 1
    return counts

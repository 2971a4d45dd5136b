"""A lowered schedule as the text of a hybrid function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...errors import LoweringError
from ...tir.arithmetic import is_const_int
from ...tir.buffer import Buffer
from ...tir.expr import BinaryExpr, BufferLoad, Call, Cast, CmpExpr, FloatImm, IntImm, LogicalExpr, Not, PrimExpr, Select, Var
from ...tir.stmt import Allocate, AssertStmt, AttrStmt, BufferRealize, BufferStore, For, ForKind, IfThenElse, SeqStmt, Stmt
from ...tir.thread import bound_tag

_SIGNS = {
    **{"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "FloorMod": "%"},
    **{"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!=", "And": "and", "Or": "or"},
}
_LOOPS = {ForKind.SERIAL: "range", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize", ForKind.UNROLLED: "unroll"}
_CALLS = ("sqrt", "rsqrt", "log", "exp", "tanh", "sigmoid", "power", "popcount", "round", "abs", "floor")


class HybridPrinter:
    """Names of the variables and buffers of one function, and its lines."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._lines: list[str] = []

    def function(self, name: str, inputs: Sequence[Var | Buffer], outputs: Sequence[Buffer], body: Stmt) -> str:
        """The text of the function of these inputs that returns these outputs."""
        parameters = ", ".join(self.name(item) for item in inputs)
        self._lines = [f"def {name}({parameters}):"]
        for buffer in outputs:
            shape = "".join(f"{self.expr(extent)}, " for extent in buffer.shape)
            self._line(1, f'{self.name(buffer)} = output_tensor(({shape}), "{buffer.dtype}")')
        self._stmt(body, 1)
        self._line(1, f"return {', '.join(self.name(buffer) for buffer in outputs)}")
        return "\n".join(self._lines) + "\n"

    def name(self, thing: Var | Buffer) -> str:
        """A name of its own for a variable or a buffer."""
        # By the pointer: `_buffer_of` makes a buffer of its own, which loads of the same memory don't name.
        key = thing.data if isinstance(thing, Buffer) else thing
        if key not in self._names:
            wanted = re.sub(r"\W", "_", thing.name) or "v"
            taken, number, found = set(self._names.values()), 0, wanted
            while found in taken:
                number += 1
                found = f"{wanted}_{number}"
            self._names[key] = found
        return self._names[key]

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _stmt(self, stmt: Stmt, depth: int) -> None:
        match stmt:
            case SeqStmt(seq=parts):
                for part in parts:
                    self._stmt(part, depth)
            case For():
                self._loop(stmt, depth)
            case IfThenElse(condition=condition, then_case=yes, else_case=no):
                self._line(depth, f"if {self.expr(condition)}:")
                self._stmt(yes, depth + 1)
                if no is not None:
                    self._line(depth, "else:")
                    self._stmt(no, depth + 1)
            case BufferRealize(buffer=buffer, bounds=bounds, body=body):
                if any(not is_const_int(bound.min, 0) for bound in bounds):
                    raise LoweringError(
                        f"hybrid text: {buffer.name} is computed in parts, which have no form there; compute it at the root"
                    )
                self._allocated(buffer, [bound.extent for bound in bounds], depth)
                self._stmt(body, depth)
            case Allocate(body=body):
                buffer = _buffer_of(stmt)
                self._allocated(buffer, stmt.extents, depth)
                self._stmt(body, depth)
            case AssertStmt(condition=condition, body=body):
                self._line(depth, f"assert {self.expr(condition)}")
                self._stmt(body, depth)
            case AttrStmt(body=body):
                self._stmt(body, depth)
            case BufferStore(buffer=buffer, value=value, indices=indices):
                self._line(depth, f"{self._element(buffer, indices)} = {self.expr(value)}")
            case _:
                if str(stmt).strip():
                    self._line(depth, "pass")

    def _allocated(self, buffer: Buffer, extents: Sequence[PrimExpr], depth: int) -> None:
        shape = "".join(f"{self.expr(extent)}, " for extent in extents)
        self._line(depth, f'{self.name(buffer)} = allocate(({shape}), "{buffer.dtype}", "{buffer.scope()}")')

    def _loop(self, loop: For, depth: int) -> None:
        tag = bound_tag(loop)
        ends = self.expr(loop.extent) if is_const_int(loop.min, 0) else f"{self.expr(loop.min)}, {self.expr(loop.min + loop.extent)}"
        word = f'bind("{tag}", {ends})' if tag is not None else f"{_LOOPS[loop.kind]}({ends})"
        self._line(depth, f"for {self.name(loop.loop_var)} in {word}:")
        before = len(self._lines)
        self._stmt(loop.body, depth + 1)
        # A body that wrote no line, as of an empty sequence: Python wants a statement.
        if len(self._lines) == before:
            self._line(depth + 1, "pass")

    def _element(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
        return f"{self.name(buffer)}[{', '.join(map(self.expr, indices)) or '()'}]"

    def expr(self, expr: PrimExpr) -> str:
        """An expression in Python's syntax."""
        match expr:
            case IntImm(value=value):
                return str(bool(value)) if expr.dtype == "bool" else str(value) if expr.dtype == "int32" else f"{expr.dtype}({value})"
            case FloatImm(value=value):
                return repr(float(value)) if expr.dtype == "float32" else f"{expr.dtype}({float(value)!r})"
            case Var():
                return self.name(expr)
            case BufferLoad(buffer=buffer, indices=indices):
                return self._element(buffer, indices)
            case Cast(value=value):
                return f"{expr.dtype}({self.expr(value)})"
            case Not(a=a):
                return f"(not {self.expr(a)})"
            # Reads back as if_then_else, which computes one arm: the value is the same, as arms have no effects.
            case Select(condition, yes, no) | Call(op="tir.if_then_else", args=(condition, yes, no)):
                return f"({self.expr(yes)} if {self.expr(condition)} else {self.expr(no)})"
            case Call(op="tir.likely", args=(value,)):
                return self.expr(value)
            case Call(op=str() as op, args=args) if op.removeprefix("tir.").removeprefix("pow") in ("", *_CALLS):
                word = {"pow": "power"}.get(op.removeprefix("tir."), op.removeprefix("tir."))
                return f"{word}({', '.join(map(self.expr, args))})"
            case BinaryExpr(a=a, b=b) | CmpExpr(a=a, b=b) | LogicalExpr(a=a, b=b):
                kind = type(expr).__name__
                if kind in ("Min", "Max"):
                    return f"{kind.lower()}({self.expr(a)}, {self.expr(b)})"
                if kind in _SIGNS:
                    return f"({self.expr(a)} {_SIGNS[kind]} {self.expr(b)})"
        raise LoweringError(f"hybrid text: {expr} has no form there")


def _buffer_of(stmt: Allocate) -> Buffer:
    return Buffer(stmt.buffer_var, stmt.dtype, tuple(stmt.extents), name=stmt.buffer_var.name)

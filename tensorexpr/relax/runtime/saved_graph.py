"""Functions of graphs as rows of JSON, each referring to rows before it, for the files of executables.

    {"exprs": [...], "rows": [["Tensor", [0, 1], "float32", 2], ["Var", "x", 0], ...], "functions": {"main": 17}}

`exprs` are the rows of `tir.serialize`. Constants are numbers, whose arrays stand elsewhere. What is known of results is written, so
that reading asks no rule of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import RecordError, TensorExprError
from ...tir.attrs import FrozenMap
from ...tir.expr import PrimExpr
from ...tir.function import GlobalVar
from ...tir.global_info import VDevice
from ...tir.op_registry import Op
from ...tir.serialize import ExprReader, ExprWriter
from .. import expr as ex
from .. import struct_info as si
from ..struct_info import RelaxExpr, StructInfo

JSON = Any
_BLOCKS = {"BindingBlock": ex.BindingBlock, "DataflowBlock": ex.DataflowBlock}
_VARS = {"Var": ex.Var, "DataflowVar": ex.DataflowVar}


class _Writer:
    """Collects rows."""

    def __init__(self, constant: Callable[[Any], int]) -> None:
        self.exprs = ExprWriter()
        self.rows: list[JSON] = []
        self._constant = constant
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are keys, so what they belong to must live

    def node(self, node: Any) -> int:
        """The number of the row of a node."""
        found = self._numbers.get(id(node))
        if found is None:
            # The operands' rows come before its own, so that a reader makes all in one go.
            row = self._row(node)
            found = self._numbers[id(node)] = len(self.rows)
            self._kept.append(node)
            self.rows.append(row)
        return found

    def _all(self, nodes: Sequence[Any]) -> list[int]:
        return [self.node(one) for one in nodes]

    def _maybe(self, node: Any) -> int | None:
        return None if node is None else self.node(node)

    def _extents(self, values: Sequence[PrimExpr] | None) -> list[int] | None:
        return None if values is None else [self.exprs.expr(one) for one in values]

    def _row(self, node: Any) -> JSON:
        match node:
            case Op():
                return ["Op", str(node)]
            case GlobalVar():
                return ["GlobalVar", node.name_hint]
            case ex.Var():
                return [type(node).__name__, node.name_hint, self._maybe(node.struct_info_annotation)]
            case ex.Constant():
                return ["Constant", self._constant(node.data), self._maybe(node.stated)]
            case ex.PrimValue():
                return ["PrimValue", self.exprs.expr(node.value)]
            case ex.StringImm() | ex.DataTypeImm():
                return [type(node).__name__, node.value]
            case ex.ExternFunc():
                return ["ExternFunc", node.global_symbol, self._maybe(node.stated)]
            case si.ShapeExpr():
                return ["ShapeExpr", self._extents(node.values)]
            case ex.Tuple():
                return ["Tuple", self._all(node.fields)]
            case ex.TupleGetItem():
                return ["TupleGetItem", self.node(node.tuple_value), node.index]
            case ex.Call():
                head = [self.node(node.op), self._all(node.args), self.plain(node.attrs), self._all(node.sinfo_args)]
                return ["Call", *head, self.node(node.struct_info)]
            case ex.If():
                return ["If", *self._all((node.cond, node.true_branch, node.false_branch))]
            case ex.VarBinding():
                return ["VarBinding", self.node(node.var), self.node(node.value)]
            case ex.MatchCast():
                return ["MatchCast", self.node(node.var), self.node(node.value), self.node(node.struct_info)]
            case ex.BindingBlock():
                return [type(node).__name__, self._all(node.bindings)]
            case ex.SeqExpr():
                return ["SeqExpr", self._all(node.blocks), self.node(node.body)]
            case ex.Function():
                params, body, info = self._all(node.params), self.node(node.body), self.node(node.ret_struct_info)
                return ["Function", params, body, info, node.is_pure, self.plain(node.attrs)]
            case StructInfo():
                return self._info(node)
        raise RecordError(f"a {type(node).__name__} has no place in a file: {str(node)[:60]}")

    def _info(self, info: StructInfo) -> JSON:
        match info:
            case si.TensorStructInfo():
                device = None if info.vdevice is None else [str(info.vdevice.target), info.vdevice.vdevice_id]
                # Extents say all of a shape; a variable that is one is written as such.
                shape = None if info.extents is not None or info.shape is None else self.node(info.shape)
                return ["Tensor", self._extents(info.extents), info.dtype, info.ndim, device, shape]
            case si.ShapeStructInfo():
                return ["Shape", self._extents(info.values), info.ndim]
            case si.PrimStructInfo():
                return ["Prim", info.dtype, None if info.value is None else self.exprs.expr(info.value)]
            case si.TupleStructInfo():
                return ["TupleInfo", self._all(info.fields)]
            case si.FuncStructInfo():
                return ["Func", None if info.params is None else self._all(info.params), self._maybe(info.ret), info.purity]
            case si.ObjectStructInfo():
                return ["Object"]
        raise RecordError(f"a {type(info).__name__} has no place in a file")

    def plain(self, value: Any) -> JSON:
        """A value of an attribute."""
        # bool before int, which True is, too. Also makes plain numbers and texts of their subclasses.
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return kind(value)
        if value is None:
            return None
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (list, tuple)):
            return [self.plain(one) for one in value]
        if isinstance(value, Mapping):
            return {"map": [[str(key), self.plain(one)] for key, one in value.items()]}
        if isinstance(value, PrimExpr):
            return {"expr": self.exprs.expr(value)}
        if isinstance(value, (RelaxExpr, StructInfo)):
            return {"node": self.node(value)}
        raise RecordError(f"an attribute that is a {type(value).__name__} has no place in a file")


def write_functions(functions: Mapping[str, ex.Function], constant: Callable[[Any], int]) -> JSON:
    """Functions as JSON values.

    Args:
        functions: by name.
        constant: the number of an array.

    Raises:
        RecordError: for what has no place in a file.
    """
    writer = _Writer(constant)
    places = {name: writer.node(func) for name, func in functions.items()}
    return {"exprs": writer.exprs.rows, "rows": writer.rows, "functions": places}


class _Reader:
    """Makes nodes of rows; a row refers to earlier ones."""

    def __init__(self, exprs: JSON, rows: JSON, constant: Callable[[int], Any]) -> None:
        self._exprs = ExprReader(exprs)
        self._array = constant
        self.made: list[Any] = []
        for number, row in enumerate(rows):
            try:
                kind, *fields = row
                self.made.append(getattr(self, f"_{kind.lower()}")(kind, *fields))
            except (AttributeError, TypeError, ValueError, IndexError, KeyError, TensorExprError) as error:
                raise RecordError(f"row {number} of a saved graph can't be read: {str(error)[:200]}") from None

    def node(self, number: JSON) -> Any:
        """The node of a row."""
        # True is an int, too, and no row.
        if type(number) is not int or not 0 <= number < len(self.made):
            raise RecordError(f"{str(number)[:20]} is no earlier row")
        return self.made[number]

    def _all(self, numbers: JSON) -> tuple[Any, ...]:
        return tuple(self.node(one) for one in numbers)

    def _maybe(self, number: JSON) -> Any:
        return None if number is None else self.node(number)

    def _extents(self, numbers: JSON) -> Any:
        return None if numbers is None else tuple(self._exprs.expr(one) for one in numbers)

    def plain(self, value: JSON) -> Any:
        """A value of an attribute."""
        if isinstance(value, list):
            return tuple(self.plain(one) for one in value)
        if not isinstance(value, dict):
            return value
        if "map" in value:
            return FrozenMap({key: self.plain(one) for key, one in value["map"]})
        return self._exprs.expr(value["expr"]) if "expr" in value else self.node(value["node"])

    def _op(self, kind: str, name: str) -> Any:
        return Op.of(name)

    def _globalvar(self, kind: str, name: str) -> Any:
        return GlobalVar(name)

    def _var(self, kind: str, name: str, info: JSON) -> Any:
        return _VARS[kind](name, self._maybe(info))

    _dataflowvar = _var

    def _constant(self, kind: str, number: int, info: JSON) -> Any:
        return ex.Constant(self._array(number), self._maybe(info))

    def _primvalue(self, kind: str, number: JSON) -> Any:
        return ex.PrimValue(self._exprs.expr(number))

    def _stringimm(self, kind: str, text: str) -> Any:
        return ex.StringImm(text)

    def _datatypeimm(self, kind: str, text: str) -> Any:
        return ex.DataTypeImm(text)

    def _externfunc(self, kind: str, name: str, info: JSON) -> Any:
        return ex.ExternFunc(name, self._maybe(info))

    def _shapeexpr(self, kind: str, values: JSON) -> Any:
        return si.ShapeExpr(self._extents(values))

    def _tuple(self, kind: str, fields: JSON) -> Any:
        return ex.Tuple(self._all(fields))

    def _tuplegetitem(self, kind: str, value: JSON, index: int) -> Any:
        return ex.TupleGetItem(self.node(value), int(index))

    def _call(self, kind: str, op: JSON, args: JSON, attrs: JSON, infos: JSON, info: JSON) -> Any:
        return ex.Call(self.node(op), self._all(args), self.plain(attrs), self._all(infos), self.node(info))

    def _if(self, kind: str, cond: JSON, yes: JSON, no: JSON) -> Any:
        return ex.If(self.node(cond), self.node(yes), self.node(no))

    def _varbinding(self, kind: str, var: JSON, value: JSON) -> Any:
        return ex.VarBinding(self.node(var), self.node(value))

    def _matchcast(self, kind: str, var: JSON, value: JSON, info: JSON) -> Any:
        return ex.MatchCast(self.node(var), self.node(value), self.node(info))

    def _bindingblock(self, kind: str, bindings: JSON) -> Any:
        return _BLOCKS[kind](self._all(bindings))

    _dataflowblock = _bindingblock

    def _seqexpr(self, kind: str, blocks: JSON, body: JSON) -> Any:
        return ex.SeqExpr(self._all(blocks), self.node(body))

    def _function(self, kind: str, params: JSON, body: JSON, info: JSON, is_pure: JSON, attrs: JSON) -> Any:
        return ex.Function(self._all(params), self.node(body), self.node(info), bool(is_pure), self.plain(attrs))

    def _tensor(self, kind: str, extents: JSON, dtype: str, ndim: int, device: JSON, shape: JSON) -> Any:
        where = None if device is None else VDevice(device[0], device[1])
        return si.TensorStructInfo(self._maybe(shape) if extents is None else self._extents(extents), dtype, where, ndim)

    def _shape(self, kind: str, values: JSON, ndim: int) -> Any:
        return si.ShapeStructInfo(self._extents(values), ndim)

    def _prim(self, kind: str, dtype: str, value: JSON) -> Any:
        return si.PrimStructInfo(dtype, None if value is None else self._exprs.expr(value))

    def _tupleinfo(self, kind: str, fields: JSON) -> Any:
        return si.TupleStructInfo(self._all(fields))

    def _func(self, kind: str, params: JSON, ret: JSON, purity: JSON) -> Any:
        return si.FuncStructInfo(None if params is None else self._all(params), self._maybe(ret), bool(purity))

    def _object(self, kind: str) -> Any:
        return si.ObjectStructInfo()


def read_functions(saved: JSON, constant: Callable[[int], Any]) -> dict[str, ex.Function]:
    """The functions of what `write_functions` made.

    Args:
        saved: JSON values.
        constant: the array of a number.

    Raises:
        RecordError: for anything else.
    """
    if not isinstance(saved, dict) or not all(isinstance(saved.get(key), (list, dict)) for key in ("exprs", "rows", "functions")):
        raise RecordError("a saved graph has exprs, rows and functions")
    reader = _Reader(saved["exprs"], saved["rows"], constant)
    found = {str(name): reader.node(number) for name, number in saved["functions"].items()}
    if any(not isinstance(func, ex.Function) for func in found.values()):
        raise RecordError("a saved graph names what is no function")
    return found

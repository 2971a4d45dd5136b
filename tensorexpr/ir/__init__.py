"""What all programs share, by the names that users of TVM look for here; it is made in `tir`."""

from typing import TYPE_CHECKING

from ..later import later
from ..tir.expr import FuncType, PointerType, PrimExpr, PrimType, Range, TupleType, Type
from ..tir.function import GlobalVar
from ..tir.global_info import DummyGlobalInfo, GlobalInfo, VDevice
from ..tir.op_registry import Op, register_intrin_lowering, register_op_attr
from . import attrs, base, container, diagnostics, expr, function, module, op, type
from .attrs import Attrs, DictAttrs
from .base import Node, assert_structural_equal, load_json, make_node, save_json, structural_equal, structural_hash
from .container import Array, Map
from .env_func import EnvFunc
from .expr import BaseExpr
from .function import BaseFunc, CallingConv
from .module import IRModule
from .source import SequentialSpan, SourceMap, SourceName, Span

if TYPE_CHECKING:
    from . import instrument, transform

# What lives in a higher row: loaded on first use.
_HIGHER = ("instrument", "transform")

__all__ = [
    "Array",
    "Attrs",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "DictAttrs",
    "DummyGlobalInfo",
    "EnvFunc",
    "FuncType",
    "GlobalInfo",
    "GlobalVar",
    "IRModule",
    "Map",
    "Node",
    "Op",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "SequentialSpan",
    "SourceMap",
    "SourceName",
    "Span",
    "TupleType",
    "Type",
    "VDevice",
    "assert_structural_equal",
    "attrs",
    "base",
    "container",
    "diagnostics",
    "expr",
    "function",
    "instrument",
    "load_json",
    "make_node",
    "module",
    "op",
    "register_intrin_lowering",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
    "type",
]

_RELAY = {
    "tensorexpr.relay.references": "RelayRefType=RefType",
    "tensorexpr.relay.adt": "Constructor GlobalTypeVar TypeCall TypeData TypeKind TypeVar",
    "tensorexpr.relay.ty": "IncompleteType TensorType TypeRelation",
}
__getattr__, __dir__ = later(__name__, _RELAY, submodules="instrument transform")

"""AlterOpImpl: tensor functions that stand for an operator become others, whose arguments and results have other layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import te
from ...arith.index_map import IndexMap
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..analysis import remove_all_unused
from ..block_builder import BlockBuilder
from ..expr import Call, Function, Tuple, TupleGetItem
from ..struct_info import TensorStructInfo, TupleStructInfo
from .canonicalize import canonical
from .passes import each_function
from .rewriting import Rewriter

KIND = "operator_name"
_CALL = "relax.call_tir"


def _relaid(x: Any, layout: IndexMap) -> Any:
    """A tensor whose elements stand where an index map says; one to one."""
    back = layout.inverse(x.shape)
    return te.compute(layout.map_shape(x.shape), lambda *index: x[tuple(back.map_indices(index))], name="layout_transform")


class _Altered(Rewriter):
    """Rewrites calls in one function."""

    def __init__(
        self, mod: IRModule, builder: BlockBuilder, functions: Mapping[str, PrimFunc], layouts: Mapping[str, Sequence[Any]]
    ) -> None:
        super().__init__({})
        self._mod, self._builder, self._functions, self._layouts = mod, builder, functions, layouts

    def rewrite(self, expr: Any) -> Any:
        """A call of the other function, between changes of layouts."""
        func: Any = self._mod[expr.args[0]] if isinstance(expr, Call) and expr.op == _CALL and isinstance(expr.args[0], GlobalVar) else None
        kind = str(func.attrs.get(KIND, "")) if isinstance(func, PrimFunc) else ""
        # The new function stands for the same operator, and isn't altered again.
        if kind not in self._functions or func.attrs.get("relax.altered"):
            return expr
        infos = expr.struct_info.fields if isinstance(expr.struct_info, TupleStructInfo) else (expr.struct_info,)
        given = expr.args[1].fields
        layouts = list(self._layouts.get(kind) or [None] * (len(given) + len(infos)))
        if len(layouts) != len(given) + len(infos):
            raise DeclarationError(f"AlterOpImpl: {kind} has {len(given) + len(infos)} arguments and results, and {len(layouts)} layouts")
        maps = [self._map(layout, info) for layout, info in zip(layouts, [*(arg.struct_info for arg in given), *infos], strict=True)]
        args = [arg if layout is None else self._changed(arg, layout) for arg, layout in zip(given, maps, strict=False)]
        outs = [self._info(info, layout) for info, layout in zip(infos, maps[len(given) :], strict=True)]
        callee = self._builder.add_func(
            self._functions[kind].with_attr({KIND: kind, "relax.altered": True}), f"{kind.rpartition('.')[2]}_altered"
        )
        out = outs[0] if len(outs) == 1 else TupleStructInfo(tuple(outs))
        made = self.leaf(Call(expr.op, (callee, Tuple(tuple(args)), *expr.args[2:]), expr.attrs, out))
        values = [made] if len(outs) == 1 else [TupleGetItem(made, n) for n in range(len(outs))]
        back = [
            value if layout is None else self._changed(self.leaf(value), layout.inverse(info.extents))
            for value, layout, info in zip(values, maps[len(given) :], infos, strict=True)
        ]
        return back[0] if len(outs) == 1 else Tuple(tuple(back))

    def _map(self, layout: Any, info: Any) -> IndexMap | None:
        if layout is None or isinstance(layout, IndexMap):
            return layout
        return IndexMap.from_func(layout, ndim=info.ndim)

    def _info(self, info: Any, layout: IndexMap | None) -> TensorStructInfo:
        return info if layout is None else TensorStructInfo(layout.map_shape(info.extents), info.dtype)

    def _changed(self, value: Any, layout: IndexMap) -> Any:
        return self._builder.call_te(_relaid, value, layout, primfunc_name_hint="layout_transform")


def AlterOpImpl(
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Sequence[IndexMap | Callable[..., Any] | None]],
    op_buffer_axis_separators: Mapping[str, Any] | None = None,
    op_buffer_input_axis_separators: Mapping[str, Any] | None = None,
) -> ModulePass:
    """A pass: tensor functions with the attribute "operator_name" become others of that name.

    Args:
        op_impl_map: names -> functions of the same arguments in other layouts.
        op_buffer_transforms: names -> for each argument and result the map from indices to those in the other layout; None if it stays.
            Maps are one to one.
        op_buffer_axis_separators, op_buffer_input_axis_separators: accepted; memory of a CPU has one axis.

    Raises:
        DeclarationError: for another number of layouts than arguments and results, and maps that are not one to one.
    """

    def run(func: Function, mod: IRModule) -> Function:
        return remove_all_unused(canonical(_Altered(mod, BlockBuilder.over(mod), op_impl_map, op_buffer_transforms).function(func)))

    return each_function("AlterOpImpl", run)

"""AlterOpImpl: tensor functions that stand for an operator become others, whose arguments and results have other layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...arith.index_map import IndexMap
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.structural import structural_equal
from .. import op
from ..analysis import remove_all_unused
from ..block_builder import BlockBuilder
from ..expr import Call, Function, Tuple, TupleGetItem
from ..relations import same_extents
from ..struct_info import TensorStructInfo, TupleStructInfo
from .passes import each_function
from .rewriting import Rewriter

KIND = "operator_name"
_CALL = "relax.call_tir"


@dataclass(frozen=True)
class _Layout:
    """Where elements stand, and between which axes of that no memory is shared."""

    map: IndexMap
    separators: Sequence[int]


class _Altered(Rewriter):
    """Rewrites calls in one function."""

    def __init__(
        self, mod: IRModule, builder: BlockBuilder, functions: Mapping[str, PrimFunc], layouts: Mapping[str, Sequence[Any]]
    ) -> None:
        super().__init__({})
        self._mod, self._builder, self._functions, self._layouts = mod, builder, functions, layouts
        self._plain = {kind: func.with_attrs({}) for kind, func in functions.items()}

    def rewrite(self, expr: Any) -> Any:
        """A call of the other function, between changes of layouts."""
        func: Any = self._mod[expr.args[0]] if isinstance(expr, Call) and expr.op == _CALL and isinstance(expr.args[0], GlobalVar) else None
        kind = str(func.attrs.get(KIND, "")) if isinstance(func, PrimFunc) else ""
        # The new function stands for the same operator, and isn't altered again.
        if kind not in self._functions or structural_equal(func.with_attrs({}), self._plain[kind]):
            return expr
        infos = expr.struct_info.fields if isinstance(expr.struct_info, TupleStructInfo) else (expr.struct_info,)
        given = expr.args[1].fields
        layouts = list(self._layouts.get(kind) or [None] * (len(given) + len(infos)))
        if len(layouts) != len(given) + len(infos):
            raise DeclarationError(f"AlterOpImpl: {kind} has {len(given) + len(infos)} arguments and results, and {len(layouts)} layouts")
        maps = [self._map(layout, info) for layout, info in zip(layouts, [*(arg.struct_info for arg in given), *infos], strict=True)]
        args = [arg if layout is None else self._changed(arg, layout) for arg, layout in zip(given, maps, strict=False)]
        outs = [self._info(info, layout) for info, layout in zip(infos, maps[len(given) :], strict=True)]
        callee = self._builder.add_func(self._functions[kind].with_attr(KIND, kind), f"{kind.replace('.', '_')}_replacement")
        out = outs[0] if len(outs) == 1 else TupleStructInfo(tuple(outs))
        made = self.leaf(Call(expr.op, (callee, Tuple(tuple(args)), *expr.args[2:]), expr.attrs, out))
        values = [made] if len(outs) == 1 else [TupleGetItem(made, n) for n in range(len(outs))]
        back = [
            value if layout is None else self._changed_back(self.leaf(value), layout, info)
            for value, layout, info in zip(values, maps[len(given) :], infos, strict=True)
        ]
        return back[0] if len(outs) == 1 else Tuple(tuple(back))

    def _map(self, layout: Any, info: Any) -> _Layout | None:
        given, separators = layout if isinstance(layout, tuple) else (layout, ())
        if given is None:
            return None
        return _Layout(
            given if isinstance(given, IndexMap) else IndexMap.from_func(given, ndim=info.ndim, index_dtype="int64"), tuple(separators)
        )

    def _info(self, info: Any, layout: _Layout | None) -> TensorStructInfo:
        return info if layout is None else TensorStructInfo(layout.map.map_shape(info.extents), info.dtype)

    def _changed(self, value: Any, layout: _Layout) -> Any:
        return op.layout_transform(value, layout.map, axis_separators=layout.separators or None)

    def _changed_back(self, value: Any, layout: _Layout, info: TensorStructInfo) -> Any:
        """The result in its own layout, without what the other one padded it by."""
        assert info.extents is not None
        inverse, _ = layout.map.non_surjective_inverse(info.extents)
        made: Any = op.layout_transform(value, inverse, input_axis_separators=layout.separators or None)
        longer = [n for n, (a, b) in enumerate(zip(made.struct_info.extents, info.extents, strict=True)) if same_extents(a, b) is not True]
        if not longer:
            return made
        return op.strided_slice(made, longer, [0] * len(longer), [info.extents[n] for n in longer])


def AlterOpImpl(
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Sequence[IndexMap | Callable[..., Any] | None]],
    op_buffer_axis_separators: Mapping[str, Any] | None = None,
    op_buffer_input_axis_separators: Mapping[str, Any] | None = None,
) -> ModulePass:
    """A pass: tensor functions with the attribute "operator_name" become others of that name.

    Args:
        op_impl_map: names -> functions of the same arguments in other layouts.
        op_buffer_transforms: names -> for each argument and result the map from indices to those in the other layout, or a pair of it and
            its axis separators; None if it stays. Each element has a place of its own; what is left of the new layout is padding.
        op_buffer_axis_separators, op_buffer_input_axis_separators: accepted; memory of a CPU has one axis.

    Layouts change by `R.layout_transform`, so that `OptimizeLayoutTransform` takes out those that cancel.

    Raises:
        DeclarationError: for another number of layouts than arguments and results, and maps of two elements to one place.
    """

    def run(func: Function, mod: IRModule) -> Function:
        return remove_all_unused(_Altered(mod, BlockBuilder.over(mod), op_impl_map, op_buffer_transforms).function(func))

    return each_function("AlterOpImpl", run)

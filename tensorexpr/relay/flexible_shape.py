"""A network for several sizes of an axis, each with a function of its own, and one for all others; a network for another size.

main(%x: Tensor[(8, 3), float32])    main(%x: Tensor[(?, 3), float32]): main_1 if it has 1 row, main_8 if 8, else main_any
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError, DeclarationError
from ..lower.passes import ModulePass
from ..relax import expr as graph
from ..tir.function import GlobalVar, IRModule
from ..tir.types import TupleType
from . import op
from .expr import Function, If, Tuple, TupleGetItem, Var, const
from .transform import InferType
from .ty import Any as Unknown
from .ty import TensorType
from .visitor import substitute


def _with_extent(typ: Any, axis: int, extent: Any) -> Any:
    """A type of tensors with another extent of an axis."""
    if isinstance(typ, TupleType):
        return TupleType(tuple(_with_extent(one, axis, extent) for one in typ.fields))
    if not isinstance(typ, TensorType) or not -len(typ.shape) <= axis < len(typ.shape):
        raise DeclarationError(f"{typ} has no axis {axis} to be of another size")
    shape = list(typ.shape)
    shape[axis] = extent() if callable(extent) else extent
    return TensorType(tuple(shape), typ.dtype)


class FlexibleShapeDispatch:
    """A pass that lets "main" take several sizes of an axis.

    Args:
        buckets: the sizes that have a function of their own.
        axis: of the inputs, and of what is returned.
        auto_pad: whether other sizes are padded to the next larger bucket, and results cut; else, and beyond the largest bucket, the
            function for sizes that aren't known runs.
        pad_value: with this value.
        input_indices: which inputs have the axis; the first without.
        affects_output: whether results have it, too.

    Raises:
        ArgumentError: without a bucket, or for one that isn't positive.
        DeclarationError: (called) for an input or result without such an axis.
    """

    def __init__(
        self, buckets: Sequence[int], axis: int = 0, auto_pad: bool = False, pad_value: float = 0,
        input_indices: Sequence[int] | None = None, affects_output: bool = True,
    ) -> None:  # fmt: skip
        self.buckets, self.axis = sorted(int(one) for one in buckets), axis
        if not self.buckets or self.buckets[0] < 1:
            raise ArgumentError(
                f"FlexibleShapeDispatch: buckets are sizes of an axis, at least one and each at least 1, not {list(buckets)}"
            )
        self.auto_pad, self.pad_value, self.affects_output = auto_pad, pad_value, affects_output
        self.input_indices = [0] if input_indices is None else list(input_indices)

    def __call__(self, mod: IRModule) -> IRModule:
        """The module with a dispatching "main", and the functions that it calls."""
        made = InferType()(mod)
        main: Any = made["main"]
        if not all(-len(main.params) <= n < len(main.params) for n in self.input_indices):
            raise DeclarationError(f'FlexibleShapeDispatch: input_indices {self.input_indices}; "main" has {len(main.params)} parameters')
        params = [
            Var(one.name_hint, _with_extent(one.checked_type, self.axis, Unknown) if n in self.input_indices else one.checked_type)
            for n, one in enumerate(main.params)
        ]
        size = op.take(op.shape_of(params[self.input_indices[0]], "int64"), const(self.axis, "int64"))
        body = self._special(made, main, "any", Unknown)(*params)
        for bucket in reversed(self.buckets):
            taken = self._padded(params, main, bucket, size)
            result = self._special(made, main, str(bucket), bucket)(*taken)
            if self.auto_pad and self.affects_output:
                result = self._cut(result, main.ret_type, size)
            fits = op.less_equal if self.auto_pad else op.equal
            body = If(fits(size, const(bucket, "int64")), result, body)
        ret = _with_extent(main.ret_type, self.axis, Unknown) if self.affects_output else main.ret_type
        made.update_func(made.get_global_var("main"), replace(main, params=tuple(params), body=body, ret_type=ret))
        return InferType()(made)

    def _special(self, mod: IRModule, main: Function, suffix: str, extent: Any) -> GlobalVar:
        """A function of the module for one size."""
        params = list(main.params)
        for n in self.input_indices:
            params[n] = Var(params[n].name_hint, _with_extent(params[n].checked_type, self.axis, extent))
        body = substitute(main.body, dict(zip(main.params, params, strict=True)))
        ret = _with_extent(main.ret_type, self.axis, extent) if self.affects_output else main.ret_type
        var = GlobalVar(f"main_{suffix}")
        mod.update_func(var, replace(main, params=tuple(params), body=body, ret_type=ret))  # type: ignore[arg-type]
        return var

    def _padded(self, params: list[Var], main: Function, bucket: int, size: Any) -> list[Any]:
        """Arguments of the function of a bucket."""
        taken: list[Any] = list(params)
        for n in self.input_indices:
            shape = list(main.params[n].checked_type.shape)
            axis = self.axis % len(shape)
            shape[axis] = bucket
            if self.auto_pad:
                behind = op.subtract(const(bucket, "int64"), size)
                widths = [op.reshape(behind if k == 2 * axis + 1 else const(0, "int64"), (1,)) for k in range(2 * len(shape))]
                width = op.reshape(op.concatenate(Tuple(widths), 0), (len(shape), 2))
                taken[n] = op.nn.pad(taken[n], width, self.pad_value)
            taken[n] = op.reshape(taken[n], tuple(int(one) for one in shape))
        return taken

    def _cut(self, result: Any, typ: Any, size: Any) -> Any:
        """Results without what was padded."""
        if isinstance(typ, TupleType):
            return Tuple([self._cut(TupleGetItem(result, n), one, size) for n, one in enumerate(typ.fields)])
        rows: graph.Expr = op.arange(const(0, "int64"), size, const(1, "int64"), "int64")
        return op.take(result, rows, axis=self.axis)


def ChangeBatch(data: Mapping[Any, int], batch_size: int = 16) -> ModulePass:
    """Another size of some axes of parameters, such as a batch; what operators state as numbers stays as it is.

    Args:
        data: the axis by the parameter, or its name.
        batch_size: the size.

    Raises:
        DeclarationError: (the pass) for a parameter without that axis.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                axes = [data.get(one, data.get(one.name_hint)) for one in func.params]
                params = [
                    one if axis is None else Var(one.name_hint, _with_extent(one.checked_type, axis, batch_size))
                    for one, axis in zip(func.params, axes, strict=True)
                ]
                body = substitute(func.body, dict(zip(func.params, params, strict=True)))
                made.update_func(var, replace(func, params=tuple(params), body=body, ret_type=None))
        return InferType()(made)

    return ModulePass("ChangeBatch", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


__all__ = ["ChangeBatch", "FlexibleShapeDispatch"]

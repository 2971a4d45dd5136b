"""StaticQuantization: products and convolutions of float32 between pairs of quantize and dequantize, by ranges that are known.

    conv(x, w)  ->  conv(dequantize(quantize(x)), dequantize(w8))         w8: int8, a scale for each result
    y + b       ->  y + b'                                                b': b in whole units of the sums

`FakeQuantizationToInteger`, with which a build begins, makes integer kernels of that. What reads a quantised value besides, as a
sum of two branches does, reads the dequantised one, so that bytes are what is written and read between kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dataclass import dataclass, replace
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ..analysis import remove_all_unused
from ..expr import Binding, BindingBlock, Call, Constant, DataflowBlock, Function, If, Tuple, Var, VarBinding, const
from ..ops.quantized import dequantize, quantize
from ..ops.row import Pattern, row_of
from ..quantization.ranges import scale_and_zero, weight_scales
from ..struct_info import TensorStructInfo
from ..visitor import walk
from .fold_scale import ANCHORS, CONVOLUTIONS, along
from .passes import each_function
from .rewriting import Rewriter

Ranges = Mapping[Any, tuple[float, float]]


@dataclass(frozen=True)
class Site:
    """A product or convolution of a function.

    Args:
        var: what it is bound to.
        data: the variable of its data.
        operator: "nn.conv2d".
        shapes: of data and weights.
        reason: why it stays in floats; "" if it needn't.
    """

    var: Var
    data: Any
    operator: str
    shapes: str
    reason: str = ""


def sites(func: Function, operators: Any = None) -> list[Site]:
    """The products and convolutions of a function, in order.

    Args:
        func: of a graph, whose constants are folded.
        operators: which of them may be quantised, such as {"nn.conv2d", "matmul"}; all if None.
    """
    found = []
    for binding in func.body.bindings():
        call = binding.value
        if isinstance(call, Call) and call.op in ANCHORS:
            name = str(call.op).removeprefix("relax.")
            shapes = " and ".join(_shape(arg) for arg in call.args[:2])
            excluded = operators is not None and name not in operators
            reason = f"{name} isn't asked for" if excluded else _refusal(call)
            found.append(Site(binding.var, call.args[0], name, shapes, reason))
        elif isinstance(call, (If, Function)):
            inner = sum(isinstance(node, Call) and node.op in ANCHORS for node in walk(call))
            if inner:
                found.append(
                    Site(binding.var, None, "branch", f"{inner} inside", "what branches and inner functions compute stays in floats")
                )
    return found


def _shape(arg: Any) -> str:
    extents = getattr(arg.struct_info, "extents", None)
    return "?" if extents is None else "x".join(str(one if as_int(one) is None else as_int(one)) for one in extents) or "()"


def _refusal(call: Call) -> str:
    """Why there is no integer kernel for a call; "" if there is one."""
    data, weight = call.args[:2]
    infos = [one.struct_info for one in (data, weight)]
    if any(not isinstance(info, TensorStructInfo) or info.dtype != "float32" or info.extents is None for info in infos):
        return "operands aren't float32 of known rank"
    sums = call.struct_info
    if not isinstance(sums, TensorStructInfo) or sums.dtype != "float32":
        return f"it sums in {getattr(sums, 'dtype', sums)}"
    if not isinstance(weight, Constant):
        return "the right operand isn't constant"
    if not isinstance(data, Var):
        return "the data is constant"
    values = weight.view()
    if not np.isfinite(values).all():
        return "weights aren't finite"
    if call.op == "relax.matmul":
        return "" if values.ndim == 2 and infos[0].ndim >= 2 else "weights aren't a matrix"
    if call.op not in CONVOLUTIONS:
        return "transposed convolutions have no integer kernel"
    plane = "DHW"[-(values.ndim - 2) :]
    layouts = [str(call.attrs[name] or "NC" + plane) for name in ("data_layout", "kernel_layout", "out_layout")]
    if layouts != ["NC" + plane, "OI" + plane, "NC" + plane]:
        return f"the layouts are {', '.join(layouts)}"
    # Integers of eight bits pay by instructions that sum several products.
    return "each window is of one channel" if values.shape[1] == 1 else ""


class _Quantiser(Rewriter):
    """Rewrites one function; `_pairs` are the variables that are known as dequantised ones, too."""

    def __init__(self, func: Function, chosen: Mapping[Any, Site], ranges: Ranges, dtype: str, per_channel: bool) -> None:
        super().__init__({}, func)
        self._chosen, self._ranges, self._dtype, self._per_channel = chosen, ranges, dtype, per_channel
        self._data = {site.data for site in chosen.values()}
        self._params = [param for param in func.params if param in self._data]
        self._pairs: dict[Any, Any] = {}
        self._scales: dict[Any, tuple[Any, int]] = {}

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten; the pairs of a dataflow block end with it."""
        outer = dict(self._pairs)
        made = super().block(block)
        if isinstance(block, DataflowBlock):
            self._pairs = outer
        return made

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding on dequantised operands, and the pair for its own value behind it."""
        for param in self._params:
            self._pair(param, self._variables.get(param, param))
        self._params = []
        value = self._flat(self.visit(binding.value))
        if isinstance(value, Call) and isinstance(binding, VarBinding):
            value = self._rewritten(binding, value)
        made = [*self._taken(), *super().binding(replace(binding, value=value))]  # type: ignore[type-var]
        new = self._variables.get(binding.var, binding.var)
        if binding.var in self._chosen and new in self.bound:
            self._scales[new] = self._scales.pop(binding.var)
        if binding.var in self._data:
            self._pair(binding.var, new)
        return [*made, *self._taken()]

    def _pair(self, old: Any, new: Any) -> None:
        scale, zero = scale_and_zero(*self._ranges[old], self._dtype)
        factors = const(np.float32(scale)), const(np.array(zero, self._dtype))
        self._pairs[new] = self.emit(dequantize(self.emit(quantize(new, *factors, -1, self._dtype)), *factors, -1))

    def _rewritten(self, binding: VarBinding, call: Call) -> Call:
        site = self._chosen.get(binding.var)
        if site is not None:
            return self._anchor(binding.var, site, call)
        row = row_of(call)
        if row is None or (row.pattern > Pattern.INJECTIVE and "pool" not in row.name):
            return call  # a softmax of bytes would lose, and gain nothing
        args = [self._paired(arg) for arg in self._with_whole_bias(call).args]
        return Call(call.op, args, call.attrs, call.sinfo_args)

    def _paired(self, arg: Any) -> Any:
        if isinstance(arg, Tuple):
            return Tuple(tuple(map(self._paired, arg.fields)))
        return self._pairs.get(arg, arg)

    def _anchor(self, var: Any, site: Site, call: Call) -> Call:
        axis = 1 if call.op == "relax.matmul" else 0
        whole, scales = weight_scales(call.args[1].view(), axis if self._per_channel else None)
        weights = self.emit(dequantize(const(whole), const(scales), const(np.zeros(len(scales), np.int8)), axis))
        own, _ = scale_and_zero(*self._ranges[site.data], self._dtype)
        info = call.struct_info
        assert isinstance(info, TensorStructInfo)  # `_refusal` has seen to it
        result_axis = info.ndim - 1 if call.op == "relax.matmul" else 1
        self._scales[var] = np.float32(own) * scales, result_axis
        return Call(call.op, (self._paired(call.args[0]), weights, *call.args[2:]), call.attrs, call.sinfo_args)

    def _with_whole_bias(self, call: Call) -> Call:
        """`y + b` with a bias of whole units of the sums, as int32 would hold it."""
        if call.op != "relax.add":
            return call
        for sums, other in (call.args, call.args[::-1]):
            if sums in self._scales and isinstance(other, Constant):
                scales, axis = self._scales[sums]
                values = other.view()
                vector = along(values, sums.struct_info.ndim, axis)
                if vector is None:
                    return call
                shape = [1] * sums.struct_info.ndim
                shape[axis] = max(np.size(vector), len(scales))
                units = np.rint((vector.astype(np.float64) / scales).reshape(shape))
                made = const((units * scales.reshape([-1 if n == axis else 1 for n in range(len(shape))])).astype(np.float32))
                return Call(call.op, (sums, made) if sums is call.args[0] else (made, sums), call.attrs)
        return call


def StaticQuantization(ranges: Ranges, dtype: str = "uint8", per_channel: bool = True, operators: Any = None) -> ModulePass:
    """A pass: pairs of quantize and dequantize around products and convolutions with constant weights; see the module.

    Args:
        ranges: least and largest numbers by variable of data; products of others stay in floats.
        dtype: of activations: "uint8" or "int8"; weights are int8.
        per_channel: whether weights have a scale for each result, or one.
        operators: which operators, such as {"nn.conv2d"}; all if None.

    Raises:
        DeclarationError: for another dtype, or ranges that aren't finite.
    """
    if dtype not in ("uint8", "int8"):
        raise DeclarationError(f'StaticQuantization: dtype is "uint8" or "int8", not {dtype!r}')

    def run(func: Function, mod: Any) -> Function:
        chosen = {site.var: site for site in sites(func, operators) if not site.reason and site.data in ranges}
        return remove_all_unused(_Quantiser(func, chosen, ranges, dtype, per_channel).function(func)) if chosen else func

    return each_function("StaticQuantization", run)

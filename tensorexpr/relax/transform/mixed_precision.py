"""ToMixedPrecision: products and convolutions of half precision, and what follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ..analysis import remove_all_unused
from ..expr import Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, Function, SeqExpr, Tuple, Var, VarBinding, const
from ..ops.elementwise import astype
from ..ops.row import Pattern, row_of
from ..struct_info import StructInfo, TensorStructInfo
from .fold_scale import ANCHORS
from .passes import each_function
from .rewriting import Rewriter

WIDE = "float32"
# Functions whose values or sums leave the range of half precision, or lose too much of it.
_NEVER = frozenset(
    f"relax.{name}"
    for name in (
        "exp",
        "log",
        "power",
        "sqrt",
        "rsqrt",
        "square",
        "erf",
        "tan",
        "sinh",
        "cosh",
        "full",
        "ones",
        "zeros",
        "astype",
        "cumsum",
    )
)


def _is_wide(expr: Any) -> bool:
    info = getattr(expr, "struct_info", None)
    return isinstance(info, TensorStructInfo) and info.dtype == WIDE


class _Mixed(Rewriter):
    """Rewrites one function; `_narrow` are the variables of float32 that are known in half precision too."""

    def __init__(self, func: Function, dtype: str, out_dtype: str, names: Sequence[str], anchors: Sequence[str]) -> None:
        super().__init__({}, func)
        self._dtype, self._out_dtype, self._names, self._anchors = dtype, out_dtype, names, anchors
        self._narrow: dict[Any, Any] = {}
        self._wide: dict[Any, Any] = {}

    def define(self, var: Var, info: StructInfo) -> Var:
        """The variable; a parameter that shall be one of half precision as such."""
        if var.name_hint in self._names and _is_wide(var) and self._in_params:
            assert isinstance(info, TensorStructInfo)
            made = super().define(var, TensorStructInfo(info.shape, self._dtype, info.vdevice, info.ndim))
            self._narrow[made] = made
            return made
        return super().define(var, info)

    # Until the first binding is met: parameters are defined before, those of inner functions after it.
    _in_params = True

    def _halved(self, arg: Any) -> Any:
        """An operand in half precision."""
        if isinstance(arg, Tuple):
            return Tuple(tuple(map(self._halved, arg.fields)))
        # Converted here, so that no cast of a constant is left to fold.
        if isinstance(arg, Constant) and _is_wide(arg):
            return const(arg.data.numpy(), self._dtype)
        if arg in self._narrow:
            return self._narrow[arg]
        if not _is_wide(arg):
            return arg
        self._narrow[arg] = self.emit(astype(arg, self._dtype))
        return self._narrow[arg]

    def _widened(self, arg: Any) -> Any:
        """An operand in float32 where there is a half of it only."""
        if isinstance(arg, Tuple):
            return Tuple(tuple(map(self._widened, arg.fields)))
        if not isinstance(arg, Var) or self._narrow.get(arg) is not arg:
            return arg
        if arg not in self._wide:
            self._wide[arg] = self.emit(astype(arg, WIDE))
        return self._wide[arg]

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding in the precision that its value has."""
        self._in_params = False
        value = self.visit(binding.value)
        if not isinstance(value, Call) or not isinstance(binding, VarBinding) or not _is_wide(binding.var):
            return self._kept(binding, value)
        if value.op in self._anchors and value.attrs["out_dtype"] in (None, "", WIDE):
            args = [self._halved(arg) for arg in value.args]
            made: Any = Call(value.op, args, {**value.attrs, "out_dtype": self._out_dtype})
            return self._half(binding, made if self._out_dtype == self._dtype else astype(self.emit(made), self._dtype))
        if self._follows(value):
            return self._half(binding, Call(value.op, [self._halved(arg) for arg in value.args], value.attrs, value.sinfo_args))
        return self._kept(binding, value)

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten; the casts of a dataflow block end with it."""
        outer = dict(self._narrow), dict(self._wide)
        made = super().block(block)
        if isinstance(block, DataflowBlock):
            self._narrow, self._wide = outer
        return made

    def _mapped(self, expr: Any) -> Any:
        """An expression rewritten; the casts of a branch, or of an inner function, aren't there outside of it."""
        outer = dict(self._narrow), dict(self._wide)
        made = super()._mapped(expr)
        if isinstance(expr, SeqExpr):
            # if c: h = half(x); conv(h, ..)   else: conv(h, ..) would read what the other branch never made.
            self._narrow, self._wide = outer
        return made

    def _follows(self, call: Call) -> bool:
        """Whether a call is computed in the precision of its operands, which all are halves or constants."""
        row = row_of(call)
        named = row is not None and (row.pattern <= Pattern.INJECTIVE or "pool" in row.name)
        fields = [field for arg in call.args for field in (arg.fields if isinstance(arg, Tuple) else (arg,))]
        tensors = [field for field in fields if isinstance(getattr(field, "struct_info", None), TensorStructInfo)]
        halves = [one for one in tensors if self._narrow.get(one) is one]
        rest = [one for one in tensors if self._narrow.get(one) is not one and not isinstance(one, Constant) and _floating(one)]
        return named and call.op not in _NEVER and bool(halves) and not rest

    def _half(self, binding: Binding, value: Any) -> list[Binding]:
        """A value of half precision; what outlives its block is what it was."""
        made = self._flat(value)
        outlives = not isinstance(binding.var, DataflowVar)
        var = (DataflowVar if outlives and self._in_dataflow else type(binding.var))(binding.var.name_hint, made.struct_info)
        self._narrow[var] = var
        self.bound[var] = made
        bindings: list[Binding] = [*self._taken(), VarBinding(var, made)]
        self._variables[binding.var] = var
        if outlives:
            bindings.append(VarBinding(self.define(binding.var, binding.var.struct_info), astype(var, WIDE)))
        return bindings

    def _kept(self, binding: Binding, value: Any) -> list[Binding]:
        """A value as it was, of operands as they were."""
        if isinstance(value, Call):
            args = [self._widened(arg) for arg in value.args]
            if any(a is not b for a, b in zip(args, value.args, strict=True)):
                value = Call(value.op, args, value.attrs, value.sinfo_args)
        else:
            value = self._widened(value)
        return super().binding(replace(binding, value=value))  # type: ignore[type-var]


def _floating(expr: Any) -> bool:
    return str(expr.struct_info.dtype).startswith("float")


def _anchors(operators: Sequence[str] | None) -> Sequence[str]:
    """Products and convolutions by the names of graphs or of Relay, whose `dense` and `batch_matmul` are products, too."""
    named = {name.removeprefix("relax."): name for name in ANCHORS}
    known = {**named, **dict.fromkeys(("nn.dense", "nn.batch_matmul", "nn.matmul"), "relax.matmul")}
    asked = [name.removeprefix("relax.") for name in operators or named]
    if wrong := [name for name in asked if name not in known]:
        raise DeclarationError(f"ToMixedPrecision: {wrong[0]} isn't among the operators of half precision: {', '.join(known)}")
    return [known[name] for name in asked]


def ToMixedPrecision(
    out_dtype: str = "float32", fp16_input_names: Sequence[str] | None = None, *, dtype: str = "float16",
    operators: Sequence[str] | None = None,
) -> ModulePass:  # fmt: skip
    """A pass: products and convolutions of half precision, and moves and elementwise operators of their results.

    Functions whose values leave its range, reductions and norms are computed in float32; so is what parameters of float32 are added to.

    Args:
        out_dtype: in which products and convolutions sum: "float32" or half precision.
        fp16_input_names: parameters that are passed in half precision.
        dtype: half precision: "float16" or "bfloat16".
        operators: which products and convolutions, such as "nn.conv2d"; by default all.

    Raises:
        DeclarationError: for other dtypes, and operators that are neither.
    """
    if dtype not in ("float16", "bfloat16") or out_dtype not in (WIDE, dtype):
        raise DeclarationError(
            f'ToMixedPrecision: dtype is "float16" or "bfloat16" and out_dtype "float32" or that, not {dtype}, {out_dtype}'
        )
    names, anchors = list(fp16_input_names or ()), _anchors(operators)

    def run(func: Function, mod: Any) -> Function:
        return remove_all_unused(_Mixed(func, dtype, out_dtype, names, anchors).function(func))

    return each_function("ToMixedPrecision", run)

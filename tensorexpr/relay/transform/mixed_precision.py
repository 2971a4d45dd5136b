"""ToMixedPrecision: products and convolutions in half precision, with float32 sums, and what follows them.

    softmax(relu(dense(x, w)))   ->   softmax(cast(relu(cast(dense(cast(x), cast(w), out_dtype="float32"), "float16")), "float32"))

What an operator does say programs by `relay.op.register_mixed_precision_conversion("nn.dense", f)`: f(call, dtype) returns one of the three
kinds and the dtypes of sums and of the result. Others: products are of half precision; what is elementwise, or moves elements, follows its
operands; what sums, or leaves the range of half precision soon, is computed as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.context import PassContext
from ...lower.passes import ModulePass, deep_recursion
from ...relax import expr as graph
from ...relax.ops.row import Pattern
from ...relax.struct_info import TensorStructInfo, TupleStructInfo
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..expr import Call, Function, If, Let, Tuple, TupleGetItem, Var
from ..inference import typed
from ..kinds import kind_of
from ..lets import known_info
from ..ops.elementwise import cast
from ..visitor import ExprMutator, remade

MIXED_PRECISION_ALWAYS, MIXED_PRECISION_FOLLOW, MIXED_PRECISION_NEVER = 0, 1, 2
_RULE = "FTVMMixedPrecisionConversionType"
_KEEP = "relay.ToMixedPrecision.keep_orig_output_dtype"
_WIDE = "float32"
_LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38}

_PRODUCTS = {
    *(f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")), "nn.dense", "nn.matmul", "nn.batch_matmul",
}  # fmt: skip
_FOLLOWING = {
    *(f"nn.{kind}_pool{n}d" for n in (1, 2, 3) for kind in ("max", "avg", "adaptive_max", "global_max")), "nn.batch_norm", "nn.bias_add",
    "max", "min",
}  # fmt: skip
_WIDE_ALWAYS = {
    *("cosh", "erf", "exp", "fast_erf", "fast_exp", "fast_tanh", "log", "log10", "log2", "power", "rsqrt", "sinh", "sqrt", "tan"),
    *("cast", "cast_like", "reinterpret", "full", "full_like", "ones", "zeros", "arange", "cumsum", "cumprod"),
}


def _kind(call: Any, dtype: str) -> int:
    """What is done about an operator that programs say nothing of."""
    name = str(call.op)
    if name in _PRODUCTS:
        return MIXED_PRECISION_ALWAYS
    if name in _WIDE_ALWAYS or (name == "clip" and max(abs(call.attrs["a_min"]), abs(call.attrs["a_max"])) > _LARGEST[dtype]):
        return MIXED_PRECISION_NEVER
    kind = kind_of(call.op)
    follows = name in _FOLLOWING or (kind is not None and kind <= Pattern.INJECTIVE and not name.startswith(("qnn.", "relax.")))
    return MIXED_PRECISION_FOLLOW if follows else MIXED_PRECISION_NEVER


def _is_float(info: Any) -> bool:
    return isinstance(info, TensorStructInfo) and info.dtype.startswith(("float", "bfloat"))


class _Mixed(ExprMutator):
    def __init__(self, dtype: str) -> None:
        super().__init__()
        self._dtype = dtype
        self._casts: dict[tuple[Any, str], Any] = {}

    def cast(self, value: Any, dtype: str) -> Any:
        """A value in another dtype, where it is of floats: cast once, and not back and forth."""
        info = known_info(value)
        if isinstance(info, TupleStructInfo):
            fields = value.fields if isinstance(value, graph.Tuple) else [TupleGetItem(value, n) for n in range(len(info.fields))]
            made = [self.cast(one, dtype) for one in fields]
            return value if all(_dtype(one) == _dtype(a) for one, a in zip(info.fields, made, strict=True)) else Tuple(made)
        if not _is_float(info) or _dtype(info) == dtype:
            return value
        if (value, dtype) not in self._casts:
            made_value = self._casts[value, dtype] = cast(value, dtype)
            self._casts[made_value, _dtype(info)] = value
        return self._casts[value, dtype]

    def like(self, value: Any, old: Any) -> Any:
        """What stands for a value in the dtype that this has."""
        info = known_info(old)
        if isinstance(info, TupleStructInfo):
            floats = {_dtype(one) for one in info.fields if _is_float(one)}
            return self.cast(value, floats.pop()) if len(floats) == 1 else value
        return self.cast(value, _dtype(info)) if _is_float(info) else value

    def _as_before(self, call: Any, op: Any, args: Sequence[Any]) -> Any:
        args = [self.like(made, old) for made, old in zip(args, call.args, strict=True)]
        same = op is call.op and all(a is b for a, b in zip(args, call.args, strict=True))
        return call if same else remade(call, op, args)

    def visit_call(self, call: Any) -> Any:
        """An operator by its rule; functions get and return what they did."""
        op, args = self.visit(call.op), [self.visit(one) for one in call.args]
        if not isinstance(op, Op):
            return self._as_before(call, op, args)
        by_user = op.get_attr(_RULE)
        # Sums of half precision lose what they add when there are many.
        kind, *dtypes = (_kind(call, self._dtype), _WIDE, self._dtype) if by_user is None else by_user(call, self._dtype)
        sums, result = dtypes or (_WIDE, self._dtype)
        if kind == MIXED_PRECISION_FOLLOW:
            fits = all(self._is_half(made, old) for made, old in zip(args, call.args, strict=True))
            kind = MIXED_PRECISION_ALWAYS if fits else MIXED_PRECISION_NEVER
        if kind == MIXED_PRECISION_NEVER or not any(map(_has_floats, call.args)):
            return self._as_before(call, op, args)
        attrs = {**call.attrs, "out_dtype": sums} if "out_dtype" in call.attrs else call.attrs
        made = Call(op, [self.cast(one, self._dtype) for one in args], attrs, span=getattr(call, "span", None))
        return self.cast(made, result) if "out_dtype" in attrs else made

    def _is_half(self, made: Any, old: Any) -> bool:
        """Whether an operand has, or may as well have, half precision."""
        if isinstance(made, graph.Tuple):
            return all(self._is_half(one, one) for one in made.fields)
        info = known_info(made)
        fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
        return isinstance(old, (graph.Var, graph.Constant)) or all(not _is_float(one) or _dtype(one) == self._dtype for one in fields)

    def visit_let(self, let: Let) -> Any:
        """A variable has the type of its value."""
        value = self.visit(let.value)
        if not isinstance(let.value, Function) and known_info(value) != known_info(let.value):
            self.memo_map[let.var] = Var(let.var.name_hint, known_info(value))
        return super().visit_let(let)

    def visit_if(self, ite: Any) -> Any:
        """Branches return what they did."""
        yes, no = (self.like(self.visit(one), one) for one in (ite.true_branch, ite.false_branch))
        cond = self.visit(ite.cond)
        return ite if (cond, yes, no) == (ite.cond, ite.true_branch, ite.false_branch) else If(cond, yes, no)

    def visit_function(self, fn: Function) -> Any:
        """A function in a function returns what it did."""
        body = self.like(self.visit(fn.body), fn.body)
        return fn if body is fn.body else replace(fn, body=body)

    def _others(self, expr: Any) -> Any:
        return self._as_before(expr, expr.op, [self.visit(one) for one in expr.args])

    visit_ref_create = visit_ref_read = visit_ref_write = _others


def _dtype(value: Any) -> str:
    return str(getattr(value if isinstance(value, TensorStructInfo) else known_info(value), "dtype", ""))


def _has_floats(value: Any) -> bool:
    info = known_info(value)
    return any(map(_is_float, info.fields if isinstance(info, TupleStructInfo) else (info,)))


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> ModulePass:
    """Products and convolutions in half precision, with float32 sums, and what follows them.

    Args:
        mixed_precision_type: "float16" or "bfloat16".
        missing_op_mode: accepted: every operator has a rule.

    With "relay.ToMixedPrecision.keep_orig_output_dtype" of the context's configuration functions return what they did.

    Raises:
        DeclarationError: for another type.
    """
    if mixed_precision_type not in _LARGEST:
        raise DeclarationError(f'ToMixedPrecision: the type is "float16" or "bfloat16", not {mixed_precision_type!r}')

    def on_module(mod: IRModule, ctx: PassContext) -> IRModule:
        made = typed(mod)
        with deep_recursion:
            for var, func in made.functions_items():
                if isinstance(func, Function):
                    mutator = _Mixed(mixed_precision_type)
                    body = mutator.visit(func.body)
                    # What other functions call returns what they count on.
                    keeps = ctx.config.get(_KEEP, False) or var.name_hint != "main"
                    made.update_func(var, replace(func, body=mutator.like(body, func.body) if keeps else body, ret_type=None))
        return typed(made)

    return ModulePass("ToMixedPrecision", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


__all__ = ["MIXED_PRECISION_ALWAYS", "MIXED_PRECISION_FOLLOW", "MIXED_PRECISION_NEVER", "ToMixedPrecision"]

"""Passes on Relay's modules by their names. None is needed to build: `relay.build` has passes of its own, those on graphs.

Rewrites of single calls are made here, on Relay's expressions; what looks at a whole network is the pass on graphs of the same purpose,
between `to_graph` and `from_graph`: operators that Relay has no word for are those of graphs (`relax.nn.gelu`) behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..later import later, stand_for
from ..lower.context import PassContext as PassContext
from ..lower.instruments import PassInstrument as PassInstrument
from ..lower.passes import ModulePass, deep_recursion
from ..lower.transform import Sequential as Sequential
from ..lower.transform import module_pass as module_pass
from ..relax import expr as graph
from ..relax import transform as on_graphs
from ..relax.transform.passes import pass_decorator
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .alter_layout import AlterOpLayout, as_sum, in_blocks
from .atrous import flattened
from .blocks import with_basic_blocks
from .build_module import build_config
from .closures import EtaExpand, LambdaLift
from .constants import chosen, folded, static
from .cps import to_cps, un_cps
from .expr import Call, Function, If, Let, Tuple, Var, const
from .external import outlined
from .from_graph import from_graph
from .fuse import FuseOps
from .generics import is_generic
from .gradient import FirstOrderGradient, gradient
from .inline import Inline
from .lazy_gradient import without_fills
from .lets import known_info
from .lifetimes import with_kills
from .ops.elementwise import add, divide, multiply, negative, ones_like, sqrt
from .ops.transform import expand_dims
from .parameter_types import with_parameter_types
from .parser import parse
from .partial_eval import PartialEvaluate
from .partitioning import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from .recast import recast
from .split_args import split_concatenation
from .text import module_text
from .to_graph import reachable, to_graph
from .ty import FuncType, type_of
from .unused import acts, inlined, without_dead_values
from .visitor import ExprMutator, SameTypes, free_vars, has_effects, substitute

stand_for(__name__, "transform=.transform")
__getattr__, __dir__ = later(__name__, {".flexible_shape": "ChangeBatch FlexibleShapeDispatch", ".defunctionalize": "Defunctionalization"})
Rewrite = Callable[[Any], Any]
function_pass = pass_decorator("transform_function", lambda transform, called: transform, Function)
function_pass.__doc__ = """A decorator that makes a pass of f(func, mod, ctx), or of a class with a method `transform_function` of these."""


def _each(name: str, run: Callable[[Function, IRModule], Any], opt_level: int = 0) -> ModulePass:
    """A pass on each function of Relay."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        with deep_recursion:
            for var, func in mod.functions_items():
                if isinstance(func, Function):
                    made.update_func(var, run(func, mod))
        return made

    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=on_module)


def _calls(name: str, rewrite: Rewrite, opt_level: int = 0, choose: Rewrite = lambda choice: choice) -> ModulePass:
    """A pass that puts another expression in place of calls: what `rewrite` returns, unless it is None; `choose` is for choices."""

    class _Calls(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            found = rewrite(made) if isinstance(made, graph.Call) and isinstance(made.op, Op) else None
            return made if found is None else found

        def visit_if(self, ite: Any) -> Any:
            return choose(super().visit_if(ite))

    return _each(name, lambda func, mod: _Calls().visit(func), opt_level)


def on_graph(name: str, opt_level: int, *passes: Any) -> ModulePass:
    """A pass of Relay that is one of graphs, or several.

    Args:
        name: of it.
        opt_level: of it.
        passes: on modules of graphs, in order.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = to_graph(mod)
        for one in passes:
            made = one(made)
        return from_graph(made)

    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=on_module)


class _Typed(SameTypes):
    """States the types of variables that Lets bind, those of their values, and of functions of the module.

    Args:
        functions: types by name.
    """

    def __init__(self, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self._functions = functions

    def visit_global_var(self, gvar: GlobalVar) -> GlobalVar:
        """A function of the module, with its type."""
        found = self._functions.get(gvar.name_hint)
        return gvar if found is None or gvar.type_annotation == found else GlobalVar(gvar.name_hint, found)

    def visit_let(self, let: Let) -> Any:
        """The value first, whose own variables have types then; but a function that is bound may use the variable."""
        uses_itself = isinstance(let.value, Function) and let.var in free_vars(let.value)
        value = let.value if uses_itself else self.visit(let.value)
        found = type_of(known_info(value)) if let.var.struct_info_annotation is None else None
        if found is not None:
            self.memo_map[let.var] = Var(let.var.name_hint, found)
        return super().visit_let(let)


def _returned(signatures: dict[str, Any], known: IRModule, name: str) -> Any:
    """What a function returns: as its graph knows it, but where that is an object of a type of the module."""
    info, stated = known[name].ret_struct_info, signatures[name].ret  # type: ignore[attr-defined]
    return stated if is_generic(stated) else info


def _signature(func: Function) -> Any:
    """The type of a function; None where parts of it aren't known."""
    types = *(type_of(param.struct_info) for param in func.params), func.ret_type
    return None if None in types else FuncType(types[:-1], types[-1], func.type_params)


def InferType() -> ModulePass:
    """Types: of each function's result, and of variables. The text of the module shows those of all values, then.

    Raises:
        DeclarationError, TypeMismatchError: (the pass) for operands that don't fit.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        signatures: dict[str, Any] = {}
        made, known = mod.clone(), to_graph(mod, None, signatures)
        with deep_recursion:
            functions: dict[str, Any] = {}
            for var, func in mod.functions_items():
                if isinstance(func, Function):
                    returned = func.ret_type or type_of(_returned(signatures, known, var.name_hint))
                    functions[var.name_hint] = replace(with_parameter_types(func), ret_type=returned)
            typed = _Typed({name: _signature(func) for name, func in functions.items()})
            for name, func in functions.items():
                made.update_func(name, replace(typed.visit(func), ret_type=func.ret_type))
        return made

    return ModulePass("InferType", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def InferTypeLocal(expr: Any) -> Any:
    """The type of an expression, of which those of its operands are known."""
    return expr.checked_type


def AnnotateSpans() -> ModulePass:
    """Places of nodes in the text of the module, whose name is "GeneratedSource": the functions as they are read back from it."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        constants: list[Any] = []
        own: dict[Any, Any] = {var: func for var, func in mod.functions_items() if isinstance(func, Function)}
        text = module_text(IRModule(own, type_definitions=mod.type_definitions), None, False, constants)
        made = mod.clone()
        made.update(parse(text, "GeneratedSource", None, {"relay.Constant": constants}))
        return made

    return ModulePass("AnnotateSpans", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def FoldConstant(fold_qnn: bool = False) -> ModulePass:
    """Calls of constants as their values.

    Args:
        fold_qnn: whether those of quantized tensors are folded, too.
    """
    return _calls("FoldConstant", lambda call: folded(call) if fold_qnn or not str(call.op).startswith("qnn.") else None, 2, chosen)


FoldConstantExpr = FoldConstant


def DynamicToStatic() -> ModulePass:
    """Operators that are told shapes by tensors as those of attributes, where constants, or shapes of tensors, say them."""
    return _calls("DynamicToStatic", static, 2, chosen)


def _normalised(call: Any) -> Any:
    """`batch_norm` as a product and a sum for each channel; `dropout` as its operand. Both numbers are made as TVM's pass makes them."""
    if call.op == "nn.dropout":
        return Tuple((call.args[0], ones_like(call.args[0])))
    if call.op != "nn.batch_norm":
        return None
    data, gamma, beta, mean, variance = call.args
    given = call.attrs
    ndim = len(data.checked_type.shape)
    dtype = data.checked_type.dtype
    scale = divide(const(1.0, dtype), sqrt(add(variance, const(given["epsilon"], dtype))))
    scale = multiply(scale, gamma) if given["scale"] else scale
    shift = multiply(negative(mean), scale)
    shift = add(shift, beta) if given["center"] else shift
    behind = ndim - 1 - given["axis"] % ndim
    scale, shift = (expand_dims(one, 1, behind) if behind else one for one in (scale, shift))
    return Tuple((add(multiply(data, scale), shift), mean, variance))


def SimplifyInference() -> ModulePass:
    """Batch norms of fixed statistics as a product and a sum, and no dropout."""
    return _calls("SimplifyInference", _normalised)


def CanonicalizeOps() -> ModulePass:
    """`bias_add` as a sum."""
    return _calls("CanonicalizeOps", lambda call: as_sum(call) if call.op == "nn.bias_add" else None, 3)


_FAST = {"exp": "fast_exp", "erf": "fast_erf", "tanh": "fast_tanh", "nn.softmax": "nn.fast_softmax"}


def FastMath() -> ModulePass:
    """Exponentials, error functions and hyperbolic tangents by the operators that are allowed a few last digits."""
    return _calls("FastMath", lambda call: Call(Op.of(_FAST[call.op]), call.args, call.attrs) if call.op in _FAST else None, 4)


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> ModulePass:
    """What programs registered in place of calls: `relay.op.register_legalize("nn.dense", f)`; f(attrs, inputs, types) or None."""

    def rewrite(call: Any) -> Any:
        own = call.op.get_attr(legalize_map_attr_name)
        if own is None:
            return None
        return own(call.attrs, call.args, [*(type_of(one.struct_info) for one in call.args), type_of(call.struct_info)])

    return _calls("Legalize", rewrite, 1)


def EliminateCommonSubexpr(fskip: Callable[[Any], bool] | None = None) -> ModulePass:
    """Calls of the same operator, operands and attributes once.

    Args:
        fskip: true for calls that stay.
    """

    def run(func: Function, mod: IRModule) -> Any:
        known: dict[Any, Any] = {}

        class _Shared(ExprMutator):
            def _known(self, key: Any, made: Any) -> Any:
                return known.setdefault(key, made)

            def visit_call(self, call: Any) -> Any:
                made = super().visit_call(call)
                if not isinstance(made.op, Op) or (fskip is not None and fskip(made)):
                    return made
                return self._known((made.op, made.args, tuple(made.attrs.items())), made)

            def visit_tuple_getitem(self, op: Any) -> Any:
                made = super().visit_tuple_getitem(op)
                return self._known((made.tuple_value, made.index), made) if isinstance(made, graph.TupleGetItem) else made

        return _Shared().visit(func)

    return _each("EliminateCommonSubexpr", run, 3)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> ModulePass:
    """No variables that nothing uses.

    Args:
        inline_once: values that are used are put where their variables stand, too; values are shared, so that nothing is computed twice.
        ignore_impurity: variables that nothing uses go also where they are bound to references, or to calls that may change them.
    """

    def run(func: Function, mod: IRModule) -> Any:
        made = without_dead_values(func, acts(mod) and not ignore_impurity)
        return inlined(made, has_effects(made) if ignore_impurity else acts(mod)) if inline_once else made

    return _each("DeadCodeElimination", run, 1)


def ToGraphNormalForm() -> ModulePass:
    """No Lets: each value stands where it is used."""
    return _each("ToGraphNormalForm", lambda func, mod: inlined(func, acts(mod), across=True))


def _named(root: Any) -> Any:
    """An expression in which each value has a name, bound in the order in which they are computed."""
    lets: list[tuple[Var, Any]] = []
    atoms: dict[Any, Any] = {}

    class _Atoms(ExprMutator):
        def visit(self, expr: Any) -> Any:
            if expr in atoms:
                return atoms[expr]
            if isinstance(expr, If):
                # Branches are sequences of their own: what they compute isn't computed in front of them.
                made: Any = If(self.visit(expr.cond), _named(expr.true_branch), _named(expr.false_branch))
            elif isinstance(expr, Function):
                return replace(expr, body=_named(expr.body))
            elif isinstance(expr, Let):
                value = (
                    self.visit(expr.value) if not isinstance(expr.value, Function) else replace(expr.value, body=_named(expr.value.body))
                )
                lets.append((expr.var, value))
                return self.visit(expr.body)
            else:
                made = super().visit(expr)
            if isinstance(expr, (graph.Var, graph.Constant, GlobalVar, Op)):
                return made
            var = Var(f"x{len(lets)}")
            lets.append((var, made))
            atoms[expr] = var
            return var

    found = _Atoms().visit(root)
    for var, value in reversed(lets):
        found = Let(var, value, found)
    return found


def ToANormalForm() -> ModulePass:
    """A Let for each value, in the order in which they are computed; a value that both branches of an If use stands in both."""
    return _each("ToANormalForm", lambda func, mod: replace(func, body=_named(func.body)), 1)


def ToANormalFormExpr(e: Any) -> Any:
    """An expression with a Let for each value; see `ToANormalForm`."""
    with deep_recursion:
        return _named(e)


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> ModulePass:
    """Functions for code generators that stand where they are called as functions of the module; builds do that, too.

    Args:
        compiler_filter: the name of a generator; all without.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        return outlined(mod, compiler_filter)

    name = "OutlineCompilerFunctionsWithExistingGlobalSymbols"
    return ModulePass(name, lambda func, ctx: func, 0, by_user=False, module_func=on_module)


def ToBasicBlockNormalForm() -> ModulePass:
    """Names, in the innermost block around them, for values that several blocks use; others stay where they are used."""
    return _each("ToBasicBlockNormalForm", lambda func, mod: with_basic_blocks(func), 1)


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> ModulePass:
    """No functions that the entry functions, "main" without any, don't call."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        return reachable(mod, entry_functions or ("main",))

    return ModulePass("RemoveUnusedFunctions", lambda func, ctx: func, 1, by_user=False, module_func=on_module)


def DefuseOps() -> ModulePass:
    """Functions that are called where they stand, such as fused ones, as their values."""

    class _Flat(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            if not isinstance(made.op, Function):
                return made
            return substitute(made.op.body, dict(zip(made.op.params, made.args, strict=True)))

    return _each("DefuseOps", lambda func, mod: _Flat().visit(func), 3)


def FoldExplicitPadding() -> ModulePass:
    """Borders as the padding of convolutions and pools that read them."""
    return on_graph("FoldExplicitPadding", 0, on_graphs.Normalize(), on_graphs.FoldPads())


def _by_product(call: Any) -> Any:
    divisor: Any = call.args[1] if call.op == "divide" else None
    if not isinstance(divisor, graph.Constant):
        return None
    known = np.asarray(divisor.data.numpy())
    return multiply(call.args[0], const(1 / known, str(divisor.data.dtype))) if known.dtype.kind == "f" and known.all() else None


def LazyGradientInit() -> ModulePass:
    """Sums and products with zeros and ones, of which derivatives are full, as what they are; zero times anything is zero, as in TVM."""
    return _calls("LazyGradientInit", without_fills)


def FlattenAtrousConv() -> ModulePass:
    """Convolutions between `space_to_batch_nd` and `batch_to_space_nd` as those with dilation."""
    return _calls("FlattenAtrousConv", flattened)


def SplitArgs(max_function_args: int) -> ModulePass:
    """Concatenations in several steps, each of which takes and returns no more than so many arguments; 0 is any number."""
    return _calls("SplitArgs", lambda call: split_concatenation(call, max_function_args), 1)


def ManifestLifetimes() -> ModulePass:
    """`memory.kill` behind the last use of each value of functions in A-normal form, which `ToANormalForm` makes."""
    return _each("ManifestLifetimes", lambda func, mod: with_kills(func))


def DivToMul() -> ModulePass:
    """Quotients by constants of floats as products."""
    return _calls("DivToMul", _by_product)


def FoldScaleAxis() -> ModulePass:
    """Factors of channels into the weights of convolutions and products before or behind them."""
    return on_graph("FoldScaleAxis", 3, on_graphs.Normalize(), on_graphs.FoldScaleAxis())


BackwardFoldScaleAxis = ForwardFoldScaleAxis = FoldScaleAxis


def SimplifyExpr() -> ModulePass:
    """Reshapes, transposes and casts that undo each other, and sums and products with 0 and 1."""
    return on_graph("SimplifyExpr", 0, on_graphs.SimplifyExpr(), on_graphs.OptimizeLayoutTransform(), on_graphs.RemoveRedundantReshape())


# What has no layout to ask for: it takes that of the convolutions around it, or keeps its own between transposes.
_GO_ALONG = {
    *(f"nn.{kind}_pool{n}d" for kind in ("avg", "max", "global_avg", "global_max", "adaptive_avg", "adaptive_max") for n in (1, 2, 3)),
    "image.resize2d", "nn.batch_norm", "nn.bias_add", "nn.deformable_conv2d", "nn.upsampling", "qnn.avg_pool2d", "vision.roi_align",
    "vision.roi_pool",
}  # fmt: skip


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> ModulePass:
    """Convolutions in other layouts, with as few transposes as possible.

    Args:
        desired_layouts: {"nn.conv2d": ["NHWC", "default"]}: layouts of data and weights. Those of `qnn.conv2d` are those of the convolution
            of integers that it is; pools and resizes take the layout that is around them. With blocks of channels, such as
            ["NCHW16c", "OIHW16i16o"], both are stated.
    """
    blocked = {name: list(layouts) for name, layouts in desired_layouts.items() if name not in _GO_ALONG and not layouts[0].isalpha()}
    if blocked:
        left = {name: layouts for name, layouts in desired_layouts.items() if name not in blocked}
        behind = _each("ConvertLayout", lambda func, mod: in_blocks(with_parameter_types(func), blocked), 3)

        def both(mod: IRModule, ctx: Any) -> IRModule:
            return behind.transform(ConvertLayout(left).transform(mod, ctx), ctx)

        return ModulePass("ConvertLayout", lambda func, ctx: func, 3, by_user=False, module_func=both) if left else behind
    asked = {
        f"relax.{name.replace('qnn.', 'nn.')}": list(layouts)
        for name, layouts in sorted(desired_layouts.items(), reverse=True)  # "qnn" first: what is said of "nn.conv2d" itself counts
        if name not in _GO_ALONG
    }
    return on_graph("ConvertLayout", 3, on_graphs.Normalize(), on_graphs.ConvertLayout(asked))


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> ModulePass:
    """Products of one operand with several weights as one product.

    Args:
        min_num_branches, to_batch: accepted: whether it pays is decided by sizes, and weights stand beside each other.
    """
    return on_graph("CombineParallelDense", 4, on_graphs.CombineParallelMatmul())


CombineParallelBatchMatmul = CombineParallelConv2D = CombineParallelDense


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> ModulePass:
    """Products and convolutions in half precision, with float32 sums.

    Args:
        mixed_precision_type: "float16" or "bfloat16".
        missing_op_mode: accepted: operators without a rule stay in float32.
    """
    made = on_graphs.ToMixedPrecision("float32", dtype=mixed_precision_type)
    return on_graph("ToMixedPrecision", 0, made)


def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Any = None) -> ModulePass:
    """Operators between quantize and dequantize on integers.

    Args:
        hard_fail, use_qat, optional_qnn_ops: accepted: what has no integer form stays as it is.
    """
    return on_graph("FakeQuantizationToInteger", 0, on_graphs.FakeQuantizationToInteger())


__all__ = [
    "AlterOpLayout",
    "AnnotateSpans",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "CanonicalizeOps",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "ConvertLayout",
    "DeadCodeElimination",
    "DefuseOps",
    "DivToMul",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "EtaExpand",
    "FakeQuantizationToInteger",
    "FastMath",
    "FirstOrderGradient",
    "FlattenAtrousConv",
    "FoldConstant",
    "FoldConstantExpr",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FuseOps",
    "InferType",
    "InferTypeLocal",
    "Inline",
    "LambdaLift",
    "LazyGradientInit",
    "Legalize",
    "ManifestLifetimes",
    "MergeCompilerRegions",
    "MergeComposite",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
    "PartialEvaluate",
    "PartitionGraph",
    "PassContext",
    "PassInstrument",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "SplitArgs",
    "ToANormalForm",
    "ToANormalFormExpr",
    "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "build_config",
    "function_pass",
    "gradient",
    "module_pass",
    "recast",
    "to_cps",
    "un_cps",
]  # fmt: skip

"""Exported programs of PyTorch as modules of graphs: its graph of `aten` operators, node by node.

ExportedProgram -> functional operators (PyTorch's own pass) -> those without a converter in PyTorch's simpler ones -> a function
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

import numpy as np

from ... import relax
from ...arith.deduce import detect_linear_equation
from ...arith.sympy_bridge import Translation
from ...errors import DeclarationError, TypeMismatchError
from ...runtime.ndarray import NDArray, array
from ...tir.arithmetic import floordiv
from ...tir.expr import IntImm, PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.function import IRModule
from ...tir.rewriting import variables
from . import (
    complexes,
    control,
    creation,
    elementwise,
    fast_paths,
    images,
    linear_algebra,
    losses,
    manipulation,
    nn,
    order,
    quantized,
    random,
    recurrent,
    special,
)
from .complexes import Complex
from .simplified import READS, calls_of, converter_of, is_fixed, is_training, simplified, torch_module
from .table import Context, Converter, bound, dtype_name

# They fill the table.
_FAMILIES = (
    complexes, control, creation, elementwise, fast_paths, images, linear_algebra, losses, manipulation, nn, order, quantized, random,
    recurrent, special,
)  # fmt: skip
_ON_FLOATS: Mapping[Any, str] = {
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide", operator.pow: "power",
    operator.neg: "negative",
}  # fmt: skip


def ndarray_of(tensor: Any) -> NDArray:
    """The values of a tensor of PyTorch; they share no memory with it."""
    value = tensor.detach().contiguous()
    if dtype_name(value.dtype) == "bfloat16":
        import ml_dtypes

        # NumPy has no bfloat16, so PyTorch exports none: the bits go across as integers.
        return array(value.view(torch_module().int16).numpy().view(ml_dtypes.bfloat16))
    return array(value.numpy())


def _constant(tensor: Any) -> Any:
    """The values of a tensor; of a complex one those of its parts."""
    if tensor.is_complex():
        whole = tensor.resolve_conj()
        return Complex(*(relax.const(ndarray_of(part)) for part in (whole.real, whole.imag)))
    return relax.const(ndarray_of(tensor))


def from_exported_program(
    exported_program: Any,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, Converter] | None = None,
) -> IRModule:
    """A module of graphs with the function "main" of what `torch.export.export` made.

    A complex tensor that goes in or out is one of floats with its two parts along a last axis, as `torch.view_as_real` has it. A program
    that draws random numbers has a last input "seed", an int64 of rank 0, of which its numbers are a function. Buffers that a program
    writes to, such as a cache of keys, are inputs behind the others, with the values that they begin with as the function's attribute
    "states"; what they and inputs that are written to become are results behind the others, and the numbers of their parameters the
    attribute "writes".

    Args:
        exported_program: a `torch.export.ExportedProgram`.
        keep_params_as_input: weights are parameters behind the inputs, and their values the function's attribute "params".
        unwrap_unit_return_tuple: a program of one result returns it, and not a tuple of it.
        no_bind_return_tuple: the tuple of results isn't bound to a variable.
        custom_convert_map: names of operators such as "relu" or "relu.default" -> converters, as of `frontend.torch.table`.

    Raises:
        DeclarationError: for operators without a converter, all of them by name; for norms of batches in training.
        TypeMismatchError: for inputs that are no tensors, or dtypes that there aren't here.
    """
    own = {str(name).removeprefix("aten."): work for name, work in (custom_convert_map or {}).items()}
    if any(is_training(node) for node in calls_of(exported_program)):
        raise DeclarationError(
            "a norm of batches takes statistics of each batch in training; export it in evaluation mode, with module.eval()"
        )
    program = simplified(exported_program, own)
    made = _Importer(program, own, keep_params_as_input).function(unwrap_unit_return_tuple, no_bind_return_tuple)
    return made


class _Importer:
    """Makes the function."""

    def __init__(self, program: Any, own: Mapping[str, Converter], keeps_params: bool) -> None:
        self._program, self._own, self._keeps_params = program, own, keeps_params
        self._builder = relax.BlockBuilder()
        self._context = Context(self._builder, self.size, self._inlined)
        self._values: dict[Any, Any] = {}
        self._sizes = Translation()
        self._params: list[relax.Var] = []
        self._kept: list[tuple[relax.Var, NDArray]] = []
        self._pairs: list[Any] = []  # complex inputs
        self._multiples: list[tuple[Any, list[Any], list[Any]]] = []  # inputs, and what PyTorch and we say of their extents
        self._alone: set[Symbol] = set()  # symbols that are extents of inputs
        self._states: list[tuple[relax.Var, NDArray]] = []
        mutations = ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
        self._written = [spec.target for spec in program.graph_signature.output_specs if spec.kind.name in mutations]

    def function(self, unwraps: bool, is_unbound: bool) -> IRModule:
        """The module with the function."""
        self._inputs()
        self._params += [var for var, _ in self._states]
        if any(random.draws(node) for node in calls_of(self._program)):
            self._context.seed = relax.Var("seed", relax.TensorStructInfo((), "int64"))
            self._params.append(self._context.seed)
        attrs: dict[str, Any] = {}
        if self._keeps_params:
            attrs = {"num_input": len(self._params), "params": [value for _, value in self._kept]}
        if self._states:
            attrs["states"] = [value for _, value in self._states]
        if self._written:
            places = {node.name: node for node in self._program.graph.nodes if node.op == "placeholder"}
            of_target = {spec.target: places[spec.arg.name] for spec in self._program.graph_signature.input_specs if spec.target}
            nodes = [of_target.get(target) or places[target] for target in self._written]
            attrs["writes"] = [self._params.index(self._values[node]) for node in nodes]
        # A dataflow block holds no branches.
        has_functions = any(isinstance(node.target, torch_module()._ops.HigherOrderOperator) for node in calls_of(self._program))
        with self._builder.function("main", [*self._params, *(var for var, _ in self._kept)], attrs):
            with nullcontext() if has_functions else self._builder.dataflow():
                for node, stated, shape in self._multiples:
                    self._values[node] = self._matched(self._values[node], stated, shape)
                for node in self._pairs:
                    self._values[node] = complexes.parted(self._context, self._values[node])
                self._nodes(self._program.graph_module)
                bind = self._builder.emit if has_functions else self._builder.emit_output
                result = self._result(unwraps)
                if not (isinstance(result, relax.Tuple) and is_unbound):
                    result = bind(result)
                else:
                    result = relax.Tuple(tuple(bind(one) for one in result.fields))
            self._builder.emit_func_output(result)
        return self._builder.get()

    def _nodes(self, graph_module: Any) -> None:
        """What a graph computes; its placeholders have values."""
        for node in graph_module.graph.nodes:
            if node.op == "get_attr":
                held = attrgetter(node.target)(graph_module)
                self._values[node] = _constant(held) if isinstance(held, torch_module().Tensor) else held
            elif node.op == "call_function":
                self._node(node)

    def _inlined(self, graph_module: Any, operands: Sequence[Any]) -> list[Any]:
        """The results of a function that an operator takes."""
        places = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        self._values.update(zip(places, operands, strict=True))
        self._nodes(graph_module)
        (output,) = [node for node in graph_module.graph.nodes if node.op == "output"]
        found = self._value(output.args[0])
        return found if isinstance(found, list) else [found]

    def _inputs(self) -> None:
        """Parameters for inputs, constants for weights."""
        torch = torch_module()
        kinds = torch.export.graph_signature.InputKind
        places = [node for node in self._program.graph.nodes if node.op == "placeholder"]
        extents = [one for node in places for one in getattr(node.meta.get("val"), "shape", ())]
        self._alone = {one for one in map(self.size, extents) if isinstance(one, Symbol)}
        for node, spec in zip(places, self._program.graph_signature.input_specs, strict=True):
            if spec.kind == kinds.USER_INPUT:
                self._values[node] = self._input(node)
            elif spec.kind == kinds.TOKEN:  # the order of effects, of which checks are the only ones here
                self._values[node] = None
            elif spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
                held = self._program.state_dict if spec.target in self._program.state_dict else self._program.constants
                if held[spec.target].is_complex():
                    self._values[node] = _constant(held[spec.target])
                    continue
                value = ndarray_of(held[spec.target])
                if self._keeps_params or spec.target in self._written:
                    self._values[node] = relax.Var(node.name, relax.TensorStructInfo(value.shape, str(value.dtype)))
                    (self._states if spec.target in self._written else self._kept).append((self._values[node], value))
                else:
                    self._values[node] = relax.const(value)
            else:
                raise TypeMismatchError(f"input {node.name} is a {spec.kind}, where tensors and numbers are expected")

    def _input(self, node: Any) -> Any:
        """A parameter for a tensor; a number that the export has fixed is itself."""
        value = node.meta.get("val")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch_module().SymInt):  # a number that the export leaves open
            size = self.size(value)
            if isinstance(size, Symbol):
                self._params.append(relax.Var(node.name, relax.PrimStructInfo("int64", size)))
            return size
        if not hasattr(value, "shape"):
            raise TypeMismatchError(
                f"input {node.name} is {type(value).__name__}; inputs are tensors, integers, or numbers that the export fixes"
            )
        stated: list[Any] = [self.size(one) for one in value.shape]
        # Of a multiple such as n * 4 the extent says what n is, unless n is an extent itself.
        hidden = {n for n, one in enumerate(stated) if not isinstance(one, (int, Symbol)) and not variables(one) <= self._alone}
        shape = [Symbol(f"{node.name}_{n}", "int64") if n in hidden else one for n, one in enumerate(stated)]
        if hidden:
            self._multiples.append((node, stated, shape))
        if complexes.is_complex(value):
            self._pairs.append(node)
            shape.append(2)
        var = relax.Var(node.name, relax.TensorStructInfo(shape, dtype_name(value.dtype.to_real())))
        self._params.append(var)
        return var

    def _matched(self, value: Any, stated: Sequence[Any], shape: Sequence[Any]) -> Any:
        """An input whose extents are multiples of symbols, which get their values: n is m // 4 where m is n * 4."""
        for extent, found in zip(stated, shape, strict=False):
            unknown = [] if extent is found else [one for one in variables(extent) if one not in self._alone]
            if len(unknown) > 1 or (unknown and not detect_linear_equation(extent, unknown)):
                raise DeclarationError(
                    f"the extent {extent} of an input doesn't say what {unknown[0]} is; export with a size that is a symbol"
                )
            if unknown:
                factor, rest = detect_linear_equation(extent, unknown)
                known = relax.ShapeExpr((floordiv(found - rest, factor),))
                self._builder.match_cast(self._builder.emit(known), relax.ShapeStructInfo(unknown))
                self._alone.update(unknown)
        whole = [*stated, *shape[len(stated) :]]  # a complex input has an axis more
        return self._builder.match_cast(value, relax.TensorStructInfo(whole, value.struct_info.dtype))

    def size(self, value: Any) -> Any:
        """A size of PyTorch as an integer or an expression of symbols."""
        if isinstance(value, (int, PrimExpr)):
            return value
        return self._of_sympy(value.node.expr)

    def _of_sympy(self, expr: Any) -> Any:
        if expr.is_Integer:
            return int(expr)
        for free in expr.free_symbols:
            # One symbol for each of PyTorch's, so that equal sizes of inputs are equal here.
            self._sizes.atoms.setdefault(free, Symbol(str(free), "int64"))
        try:
            return self._sizes.from_sympy(expr, "int64")
        except KeyError as error:
            raise DeclarationError(
                f"the size {expr} has a {error.args[0]}, which sizes can't have here; export with a fixed size"
            ) from None

    def _value(self, arg: Any) -> Any:
        """An argument: what was made of a node, a dtype's name, or itself."""
        torch = torch_module()
        if isinstance(arg, torch.fx.Node):
            return self._values[arg]
        if isinstance(arg, (list, tuple)):
            return [self._value(one) for one in arg]
        if isinstance(arg, torch.dtype):
            return arg if arg.is_complex else dtype_name(arg)
        return arg

    def _node(self, node: Any) -> None:
        if node.target is operator.getitem:
            value, index = self._value(node.args[0]), node.args[1]
            # Several results are a list where a converter made them one by one, else a tuple of the graph.
            picked = value[index] if isinstance(value, (list, tuple)) else self._builder.emit(relax.TupleGetItem(value, index))
            self._values[node] = picked
            return
        found = node.meta.get("val")
        is_size = hasattr(found, "node") and not hasattr(found, "shape")
        # Sizes are taken from what the export knows of them, whatever operators they came by.
        if isinstance(found, torch_module().SymBool):
            # Most are checks, which the export has made; a branch takes the others.
            if any(isinstance(user.target, torch_module()._ops.HigherOrderOperator) for user in node.users):
                self._values[node] = control.of_relation(self._context, found.node.expr, self._of_sympy)
            return
        if isinstance(found, torch_module().SymFloat):
            self._values[node] = self._number(node)
            return
        if isinstance(found, torch_module().SymInt) and str(node.target) in READS:
            # Its value is one of the symbol that the export has for it.
            value = self._context.reshape(self._context.cast(self._value(node.args[0]), "int64"), [1])
            shape = self._builder.emit(relax.op.tensor_to_shape(value))
            self._builder.match_cast(shape, relax.ShapeStructInfo([self.size(found)]))
        if is_size or isinstance(found, int):
            self._values[node] = self.size(found)
            return
        work = converter_of(node.target, self._own)
        if work is None and is_fixed(node):
            with torch_module()._subclasses.fake_tensor.unset_fake_temporarily():
                self._values[node] = _constant(node.target(*node.args, **node.kwargs))
            return
        if work is None:  # a check of sizes, which the export has made already
            return
        picked = {user.args[1] for user in node.users if user.target is operator.getitem}
        self._context.result, self._context.picked = found, picked
        self._context.operand = getattr(node.args[0], "meta", {}).get("val") if node.args else None
        try:
            args, named = [self._value(one) for one in node.args], {key: self._value(one) for key, one in node.kwargs.items()}
            # Operators that take functions have no schema.
            given = args if isinstance(node.target, torch_module()._ops.HigherOrderOperator) else bound(node.target, args, named)
            pairs = complexes.is_complex(found) or complexes.has_complex(given)
            made = complexes.convert(self._context, node.target, work, given) if pairs else work(self._context, *given)
            self._values[node] = self._of_known_shape(made, found)
        except (TypeMismatchError, DeclarationError) as error:
            where = (node.meta.get("stack_trace") or "").strip().rpartition("File ")[2].replace("\n", " ")
            raise type(error)(f"node {node.name} ({node.target}): {error}{f'; made at {where}' if where else ''}") from None

    def _of_known_shape(self, made: Any, described: Any) -> Any:
        """A tensor with the extents that the export knows where an operator leaves them open."""
        info = getattr(made, "struct_info", None)
        if not isinstance(info, relax.TensorStructInfo) or info.extents is not None or not hasattr(described, "shape"):
            return made
        return self._builder.match_cast(made, relax.TensorStructInfo(self._context.sizes_of(described), info.dtype))

    def _number(self, node: Any) -> Any:
        """A float that only a run knows, as a tensor of rank 0."""
        c, args = self._context, [self._value(one) for one in node.args]
        if str(node.target) in READS:
            return c.cast(c.reshape(args[0], []), "float64")
        name = _ON_FLOATS.get(node.target)
        if node.target is torch_module().sym_float:
            return c.cast(args[0], "float64")
        if name is None:
            raise DeclarationError(
                f"node {node.name}: {node.target} of a float that only a run knows has no counterpart; compute with tensors"
            )
        return c.op(name, *(c.cast(one, "float64") for one in args))

    def _result(self, unwraps: bool) -> Any:
        """What the function returns."""
        torch = torch_module()
        kinds = torch.export.graph_signature.OutputKind
        (output,) = [node for node in self._program.graph.nodes if node.op == "output"]
        results: list[Any] = []
        written: list[Any] = []
        for node, spec in zip(output.args[0], self._program.graph_signature.output_specs, strict=True):
            if spec.kind == kinds.TOKEN:
                continue
            value = self._value(node)
            if isinstance(value, Complex):
                value = complexes.joined(self._context, value)
            if isinstance(value, (bool, int, float, PrimExpr)) and not isinstance(value, IntImm):
                value = relax.PrimValue(value)  # type: ignore[arg-type]
            elif value is None:
                value = relax.Tuple(())
            (results if spec.kind == kinds.USER_OUTPUT else written).append(value)
        results += written
        return results[0] if len(results) == 1 and unwraps else relax.Tuple(tuple(results))


def example(shape: Any, dtype: str) -> Any:
    """A tensor of PyTorch of zeros."""
    torch = torch_module()
    return torch.zeros([int(one) for one in shape], dtype=getattr(torch, np.dtype(dtype).name if dtype != "bfloat16" else dtype))

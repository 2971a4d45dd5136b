"""Gradient: a function that returns the derivatives of its result by its parameters too (reverse mode; Griewank and Walther 2008, 3.2).

Each operator of the table says what its operands' adjoints are by that of its result. Adjoints of a value are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...runtime.registry import get_global_func
from ...tir.function import IRModule
from ...tir.op_registry import Op
from .. import op
from ..analysis import contains_impure_call, remove_all_unused
from ..block_builder import BlockBuilder
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..ops.grad_marks import BARRIER, END, NO_GRAD, START
from ..struct_info import StructInfo, TupleStructInfo
from ..utils import copy_with_new_vars
from ..visitor import Mutator, bindings_of, walk
from .gradient_computation import by_computation
from .gradient_marks import Plain, plain_call
from .gradient_rows import TABLE, extents
from .passes import graph_pass
from .rewriting import Rewriter

WITH_GRAD = "relax.call_tir_with_grad"
TE_GRADIENT = "tvm.relax.te_grad._register."
"""Registered functions with this in front of their names derive tensor functions; `relax.training.utils` makes them."""


class _Reverse(Rewriter):
    """Goes through the bindings of a block from the last one on, and emits adjoints.

    Adjoints of tuples are lists of those of their elements, None where there is none yet.
    """

    def __init__(self, bindings: Sequence[Binding], wanted: set[Var], builder: BlockBuilder) -> None:
        super().__init__({})
        self._in_dataflow = True
        self._bindings = bindings
        self._builder = builder
        # What depends on no wanted parameter gets no adjoint, and its operators need no row in the table.
        self._needed = set(wanted)
        for binding in bindings:
            if any(node in self._needed for node in walk(binding.value)) and not _is_call(binding.value, NO_GRAD):
                self._needed.add(binding.var)
        self._again = _Again(self, bindings)
        self.adjoints: dict[Any, Any] = {}

    def give(self, value: Any, adjoint: Any) -> None:
        """Add to the adjoint of a value, if somebody wants it."""
        if adjoint is None or _is_call(adjoint, NO_GRAD):
            return
        match value:
            case Tuple(fields):
                for n, field in enumerate(fields):
                    self.give(field, _element(adjoint, n))
            case TupleGetItem(whole, index):
                info: Any = whole.struct_info
                self.give(whole, [adjoint if n == index else None for n in range(len(info.fields))])
            case Var() if value in self._needed:
                self.adjoints[value] = self._sum(self.adjoints.get(value), adjoint, value.struct_info, f"{value.name_hint}_adjoint")
            case Call() | If() | SeqExpr() if any(node in self._needed for node in walk(value)):
                raise DeclarationError(f"Gradient: operands are values with names, not {value}: Normalize makes them so")

    def _sum(self, known: Any, adjoint: Any, info: StructInfo, name: str) -> Any:
        if isinstance(info, TupleStructInfo):
            old = known or [None] * len(info.fields)
            new = [_element(adjoint, n) for n in range(len(info.fields))]
            parts = zip(old, new, info.fields, strict=True)
            return [a if b is None else self._sum(a, b, one, name) for a, b, one in parts]
        return self._named(adjoint if known is None else op.add(known, adjoint), name)

    def _named(self, adjoint: Any, name: str) -> Var:
        """A variable for an adjoint, also where it is that of another value: each can be found by its name."""
        value = self._flat(adjoint)
        var = DataflowVar(name, value.struct_info)
        self._pending.append(VarBinding(var, value))
        return var

    def whole(self, adjoint: Any, like: Any) -> Any:
        """An adjoint as an expression, with zeros where there is none."""
        info: Any = like.struct_info
        if isinstance(adjoint, list) or (adjoint is None and isinstance(info, TupleStructInfo)):
            parts = adjoint or [None] * len(info.fields)
            return Tuple(tuple(self.whole(one, TupleGetItem(like, n)) for n, one in enumerate(parts)))
        return self.emit(op.zeros(tuple(extents(like)), info.dtype)) if adjoint is None else adjoint

    def run(self, target: Var) -> list[Binding]:
        """The bindings of the adjoints, of which that of the target is one.

        Raises:
            DeclarationError: for an operator without a row in the table.
        """
        info: Any = target.struct_info
        self.adjoints[target] = self.emit(op.ones(tuple(extents(target)), info.dtype), f"{target.name_hint}_adjoint")
        self.spread()
        return self.taken()

    def spread(self) -> None:
        """Emit the adjoints of all that those that are known depend on."""
        # All that reads a value stands behind it, so its adjoint is whole when its binding's turn comes.
        for binding in reversed(self._bindings):
            adjoint, value = self.adjoints.get(binding.var), binding.value
            if adjoint is None or not any(node in self._needed for node in walk(value)):
                continue
            if isinstance(value, (Var, Tuple, TupleGetItem)):
                self.give(value, adjoint)
            elif isinstance(value, If):
                self._of_choice(value, self.whole(adjoint, binding.var))
            elif _is_call(value, START, END, BARRIER):
                self.give(value.args[0], adjoint)
            else:
                adjoints = self._of_operands(value, binding.var, self.whole(adjoint, binding.var))
                for arg, own in zip(value.args, adjoints, strict=False):
                    self.give(arg, own)

    def _of_choice(self, choice: If, adjoint: Any) -> None:
        """The adjoints of what the branches read, each computed in the branch that is taken."""
        branches = [_as_sequence(one) for one in (choice.true_branch, choice.false_branch)]
        inside = {binding.var for one in branches for binding in bindings_of(one)}
        read = dict.fromkeys(node for one in branches for node in walk(one) if isinstance(node, Var) and node in self._needed)
        caught = [one for one in read if one not in inside]
        made = [self._of_branch(one, caught, adjoint) for one in branches]
        whole = self.emit(If(choice.cond, made[0], made[1]))
        for n, one in enumerate(caught):
            self.give(one, TupleGetItem(whole, n))

    def _of_branch(self, branch: SeqExpr, caught: Sequence[Var], adjoint: Any) -> SeqExpr:
        """A branch that returns the adjoints of what it read, and computes for them what it computed."""
        again: Any = _Fresh({}).visit(branch)
        own = list(again.bindings())
        inner = _Reverse(own, set(caught), self._builder)
        inner.give(again.body, adjoint)
        inner.spread()
        result = Tuple(tuple(inner.whole(inner.adjoints.get(one), one) for one in caught))
        return SeqExpr((BindingBlock((*own, *inner.taken())),), result)

    def _of_operands(self, call: Any, result: Var, adjoint: Any) -> Sequence[Any]:
        own, known = self._again.visit(call), self._again.visit(result)
        if _is_call(call, WITH_GRAD):
            return None, self._registered(own, known, adjoint)
        derive = call.op.get_attr("FPrimalGradient") if isinstance(call, Call) and isinstance(call.op, Op) else None
        if derive is None:
            computed = self._with_bindings(lambda: by_computation(own, adjoint, self._builder))
            if computed is None:
                raise DeclarationError(
                    f"Gradient: no derivative is known of {call}; there are those of {', '.join(sorted(TABLE))}, of tensor computations "
                    'of known shapes with one result, and what ir.register_op_attr(name, "FPrimalGradient", function) adds'
                )
            return computed  # type: ignore[no-any-return]
        found: Sequence[Any] = self._with_bindings(lambda: list(derive(known, own, adjoint, self._builder)))
        return found

    def taken(self) -> list[Binding]:
        """The bindings that wait."""
        return self._taken()

    def _with_bindings(self, run: Callable[[], Any]) -> Any:
        """What a function returns that may emit bindings by the builder."""
        self._builder.begin_block(True)
        found = run()
        self._pending += self._builder.end_block().bindings
        return found

    def _registered(self, call: Any, result: Any, adjoint: Any) -> Any:
        """What the function registered under the name of a call says of its operands."""
        name = str(call.attrs["te_grad_name"])
        handler = get_global_func(TE_GRADIENT + name, allow_missing=True)
        if handler is None:
            raise DeclarationError(
                f"Gradient: no derivative is registered under {name!r}: register_te_gradient({name!r}, function) does it"
            )
        found = self._with_bindings(lambda: handler(result, call, adjoint, self._builder))
        count = len(call.args[1].fields)
        info = found.struct_info
        several = len(info.fields) if isinstance(info, TupleStructInfo) else 1
        if several != count:
            raise DeclarationError(f"Gradient: {name!r} gives {several} tensors, and {call.args[0].name_hint} has {count} operands")
        return self.emit(found) if isinstance(info, TupleStructInfo) else Tuple((self.emit(found),))


def _as_sequence(expr: Any) -> SeqExpr:
    return expr if isinstance(expr, SeqExpr) else SeqExpr((), expr)


def _is_call(expr: Any, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) in names


def _element(adjoint: Any, index: int) -> Any:
    if isinstance(adjoint, list):
        return adjoint[index]
    return adjoint.fields[index] if isinstance(adjoint, Tuple) else TupleGetItem(adjoint, index)


class _Again(Mutator):
    """Values as the derivatives read them: what lies between marks is computed again, when it is first read."""

    def __init__(self, reverse: _Reverse, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._reverse = reverse
        self._of = {binding.var: binding.value for binding in bindings}
        inside = set[Any]()  # what depends on a start
        for binding in bindings:
            if _is_call(binding.value, START) or any(node in inside for node in walk(binding.value)):
                inside.add(binding.var)
        self._starts = {binding.var for binding in bindings if _is_call(binding.value, START)}
        self._behind: dict[Any, Any] = {}  # starts as they are read again: without a barrier passes would find both times equal
        self._dropped, read = set[Any](), set[Any]()  # of these what an end depends on
        for binding in reversed(bindings):
            value = binding.value
            if binding.var in inside and not _is_call(value, START) and (binding.var in read or _is_call(value, END)):
                self._dropped.add(binding.var)
                read.update(node for node in walk(value) if isinstance(node, Var))

    def visit(self, expr: Any) -> Any:
        """An expression of values that are kept, or computed again."""
        if isinstance(expr, Var) and expr not in self._variables and expr in self._dropped:
            value = plain_call(_Behind(self).visit(self._of[expr]))
            self._variables[expr] = self._reverse.emit(value, f"{expr.name_hint}_cp")
        return super().visit(expr)

    def behind(self, var: Any) -> Any:
        """A value as what is computed again reads it."""
        if var not in self._starts:
            return self.visit(var)
        if var not in self._behind:
            self._behind[var] = self._reverse.emit(op.grad.optimization_barrier(var), f"{var.name_hint}_again")
        return self._behind[var]


class _Behind(Mutator):
    """Rewrites a value that is computed again."""

    def __init__(self, again: _Again) -> None:
        super().__init__()
        self._again = again

    def visit(self, expr: Any) -> Any:
        """Variables as they are read again."""
        return self._again.behind(expr) if isinstance(expr, Var) else super().visit(expr)


class _Fresh(Mutator):
    """A copy with variables of its own."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """A new variable."""
        self._variables[var] = made = type(var)(var.name_hint, info)
        return made


class _Outside(_Fresh):
    """A copy without variables of dataflow blocks."""

    def define(self, var: Var, info: StructInfo) -> Var:
        """A new variable."""
        self._variables[var] = made = Var(var.name_hint, info)
        return made


def with_gradient(func: Function, name: str, mod: IRModule, require_grads: Any = None, target_index: int = 0) -> Function:
    """A function that returns what `func` does, and a tuple of the derivatives of one result by parameters; see `Gradient`.

    Tensor functions of registered derivatives are added to the module.
    """
    given = require_grads if isinstance(require_grads, (list, tuple)) else func.params if require_grads is None else [require_grads]
    chooses = any(isinstance(binding.value, If) for binding in func.body.bindings())
    if not chooses and (len(func.body.blocks) != 1 or not isinstance(func.body.blocks[0], DataflowBlock)):
        raise DeclarationError(f"Gradient: {name} is more than one dataflow block; ConvertToDataflow makes one of what has no effects")
    if contains_impure_call(func):
        raise DeclarationError(f"Gradient: {name} has effects, which have no derivative")
    wrong = [one for one in given if one not in func.params and all(one is not binding.var for binding in func.body.bindings())]
    if wrong:
        names = ", ".join(param.name_hint for param in func.params)
        raise DeclarationError(f"Gradient: {wrong[0]} is no parameter of {name}, which has {names}, and no value in it")
    params = {param: Var(param.name_hint, param.struct_info) for param in func.params}
    fresh = _Fresh(params)
    body: Any = fresh.visit(func.body)
    results = body.body.fields if isinstance(body.body, Tuple) else (body.body,)
    if not 0 <= target_index < len(results) or not isinstance(results[target_index], Var):
        raise DeclarationError(f"Gradient: result {target_index} of {name}, which returns {len(results)}, is to be derived")
    target = results[target_index]
    if extents(target):
        raise DeclarationError(
            f"Gradient: what is derived is a number, a tensor without axes; result {target_index} is {target.struct_info}"
        )
    wanted = [fresh.visit(one) for one in given]
    own = list(body.bindings())
    reverse = _Reverse(own, set(wanted), BlockBuilder.over(mod))
    bindings = [*own, *reverse.run(target)]
    outputs: list[Var] = []
    for one in wanted:
        # Zeros for one that the result doesn't depend on.
        value = reverse.whole(reverse.adjoints.get(one), one)
        outputs.append(Var(f"{one.name_hint}_adjoint_out", one.struct_info))
        bindings += [*reverse.taken(), VarBinding(outputs[-1], value)]
    block = Plain().block(DataflowBlock(tuple(bindings)))
    result = SeqExpr((block,), Tuple((body.body, Tuple(tuple(outputs)))))
    if chooses:  # choices stand between dataflow blocks, and so what they read is a variable of both
        result = _Outside({}).visit(replace(result, blocks=(BindingBlock(block.bindings),)))
    return remove_all_unused(Function(tuple(params.values()), result, result.struct_info, func.is_pure, func.attrs))


def Gradient(func_name: str, require_grads: Any = None, target_index: int = 0) -> ModulePass:
    """A pass: beside a function of one dataflow block there is `<name>_adjoint`, which returns its result and derivatives of it.

    Args:
        func_name: of the function; it returns a number, or a tuple with one.
        require_grads: the parameters, or other variables of the function, by which is derived, or one of them; all parameters if None.
        target_index: which element of a tuple is derived.

    Raises:
        DeclarationError: for functions that there aren't or of another form, and operators without a derivative.
    """

    def run(mod: IRModule) -> IRModule:
        func: Any = {var.name_hint: one for var, one in mod.functions_items()}.get(func_name)
        if not isinstance(func, Function):
            raise DeclarationError(f"Gradient: the module has no function {func_name!r} of a graph")
        made = mod.clone()
        name = f"{func_name}_adjoint"
        attrs = {"global_symbol": name} if "global_symbol" in func.attrs else {}
        new: Any = copy_with_new_vars(with_gradient(func, func_name, made, require_grads, target_index))
        made.update_func(name, new.with_attr(attrs) if attrs else new)
        return made

    return graph_pass("Gradient", run)

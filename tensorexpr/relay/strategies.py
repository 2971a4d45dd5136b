"""Strategies: how programs say which computation and which schedule an operator has, and how builds follow what they say.

    @relay.op.register_strategy("nn.dense", level=15)
    def mine(attrs, inputs, out_type, target):
        strategy = relay.op.OpStrategy()
        strategy.add_implementation(wrap_compute_dense(compute), wrap_topi_schedule(schedule), name="mine")
        return strategy

A call of an operator with a strategy of its own is built as the implementation that is chosen; the others are fused and scheduled by rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import te
from ..autotvm.task.dispatcher import current_query
from ..autotvm.task.topi_integration import get_workload
from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..lower import lower
from ..relax import expr as graph
from ..relax.ops.row import row_of
from ..relax.struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from ..relax.tensor_function import plain_tensors, tensor_function
from ..relax.transform.legalize import computation
from ..target import Target
from ..te.specialized_condition import SpecializedCondition
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from ..topi.schedules import default_schedule
from .expr import Call, Function
from .ops.row import ROWS, Computed
from .ty import type_of
from .visitor import ExprMutator

STRATEGY, COMPUTE = "FTVMStrategy", "FTVMCompute"


@dataclass(frozen=True)
class OpImplementation:
    """A computation of an operator with its schedule.

    Args:
        fcompute: `f(attrs, inputs, out_type)`, the tensors of the results.
        fschedule: `f(attrs, outs, target)`, a schedule of these.
        name: of it.
        plevel: of several that hold, the one with the highest level is taken.
    """

    fcompute: Callable[..., Any]
    fschedule: Callable[..., Any]
    name: str
    plevel: int = 10

    def compute(self, attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        """The tensors of the results."""
        made = self.fcompute(attrs, list(inputs), out_type)
        return [made] if isinstance(made, Tensor) else list(made)

    def schedule(self, attrs: Any, outs: Sequence[Tensor], target: Target) -> Any:
        """A schedule of what `compute` returned."""
        return self.fschedule(attrs, list(outs), target)


@dataclass(frozen=True)
class OpSpecialization:
    """Implementations that hold under a condition, or always if it is None."""

    condition: SpecializedCondition | None
    implementations: list[OpImplementation] = field(default_factory=list)

    def holds(self) -> bool:
        """Whether the condition is known to hold."""
        return self.condition is None or all(as_int(clause) for clause in self.condition.clauses)


class OpStrategy:
    """The implementations of an operator, which `add_implementation` adds."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self, compute: Callable[..., Any], schedule: Callable[..., Any], name: str = "default", plevel: int = 10
    ) -> None:
        """Add one, which holds under the `te.SpecializedCondition` in force; arguments as of `OpImplementation`."""
        condition = SpecializedCondition.current()
        found = next((one for one in self.specializations if one.condition is condition), None)
        if found is None:
            found = OpSpecialization(condition)
            self.specializations.append(found)
        found.implementations.append(OpImplementation(compute, schedule, name, plevel))


def get_valid_implementations(op: Any, attrs: Any, inputs: Sequence[Tensor], out_type: Any, target: Any) -> list[OpImplementation]:
    """The implementations of an operator that hold for some operands.

    Args:
        op: the operator, or its name.
        attrs: of the call.
        inputs: tensors in place of the operands.
        out_type: the type of the result.
        target: what for.

    Returns:
        those of the strategy that was registered for it; else one: what it means, scheduled by rules.

    Raises:
        DeclarationError: for an operator that there isn't, or a strategy that returns something else.
    """
    known = Op.of(op)
    strategy = known.get_attr(STRATEGY)
    if strategy is None:
        return [OpImplementation(meaning_on_tensors(known), scheduled_by_rules, f"{known}.generic", 0)]
    with Target.target_or_current(target) as chosen:
        made = strategy(attrs, list(inputs), out_type, chosen)
    if not isinstance(made, OpStrategy):
        raise DeclarationError(f"the strategy of {known} returns a relay.op.OpStrategy, not {type(made).__name__}")
    return [one for part in made.specializations if part.holds() for one in part.implementations]


def select_implementation(
    op: Any, attrs: Any, inputs: Sequence[Tensor], out_type: Any, target: Any, use_autotvm: bool = True
) -> tuple[OpImplementation, list[Tensor]]:
    """The implementation that a build takes, and the tensors that it computes.

    Args:
        op, attrs, inputs, out_type, target: as of `get_valid_implementations`.
        use_autotvm: whether the log of AutoTVM that is applied has a say: of implementations that it knows the fastest is taken.

    Raises:
        DeclarationError: as there, and if no implementation holds.
    """
    found = get_valid_implementations(op, attrs, inputs, out_type, target)
    if not found:
        raise DeclarationError(f"the strategy of {op} has no implementation for {', '.join(map(str, inputs))} on {target}")
    with Target.target_or_current(target):
        best = max(found, key=lambda one: one.plevel)
        if not use_autotvm:
            return best, best.compute(attrs, inputs, out_type)
        made = [(one, one.compute(attrs, inputs, out_type)) for one in found]
        costs = [_recorded_cost(outs) for _, outs in made]
    known = [n for n, cost in enumerate(costs) if cost is not None]
    return made[min(known, key=lambda n: costs[n])] if known else made[found.index(best)]


def _recorded_cost(outs: Sequence[Tensor]) -> Any:
    """What the log in force says that tensors take; None if it doesn't know them."""
    workload = get_workload(list(outs))
    config = None if workload is None else current_query(workload)
    return None if config is None or config.is_fallback else config.cost


def scheduled_by_rules(attrs: Any, outs: Sequence[Tensor], target: Target) -> Any:
    """The schedule that tensors get by default."""
    return default_schedule(list(outs), target)


def meaning_on_tensors(op: Op) -> Callable[..., list[Tensor]]:
    """The computation of an operator by what it means: `f(attrs, inputs, out_type)`.

    Raises:
        DeclarationError: for an operator that there isn't; when it is called, for one that is no tensor computation.
    """
    if op not in ROWS:
        raise DeclarationError(f"no operator {str(op)!r}; relay.op.list_op_names() lists those that there are")
    row = ROWS[op]

    def compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
        infos = [TensorStructInfo(one.shape, one.dtype) for one in inputs]
        operands: list[Any] = [graph.Var(f"x{n}", info) for n, info in enumerate(infos)]
        known = dict(zip(operands, inputs, strict=True))
        takes_tuple = list(row.arguments.values())[:1] == ["Exprs"]
        meaning = row.meant(row.bound(Call(op, [graph.Tuple(tuple(operands))] if takes_tuple else operands, attrs)))
        made = _on_tensors(meaning, known, op)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    return compute


def _on_tensors(value: Any, known: Mapping[Any, Tensor], op: Op) -> Any:
    """A value of a graph as tensors, where its variables are `known`."""
    if isinstance(value, Computed):
        attrs = {name: _on_tensors(one, known, op) for name, one in value.attrs.items()}
        return value.function(*(_on_tensors(one, known, op) for one in value.args), **attrs)
    if isinstance(value, (list, tuple)):
        return type(value)(_on_tensors(one, known, op) for one in value)
    match value:
        case graph.Var():
            return known[value]
        case graph.Tuple(fields):
            return [_on_tensors(one, known, op) for one in fields]
        case graph.TupleGetItem(whole, index):
            return _on_tensors(whole, known, op)[index]
        case ShapeExpr(values):
            return tuple(values)
        case graph.PrimValue(number):
            return number
        case graph.Constant() if value.data.ndim == 0:
            constant = te.const(value.data.numpy().item(), value.data.dtype)
            return te.compute((), lambda: constant, name="constant")
    row = row_of(value)
    if row is not None and row.te is not None:
        return computation(row)(**{name: _on_tensors(one, known, op) for name, one in row.bound(value).items()})
    if isinstance(value, graph.RelaxExpr):
        raise DeclarationError(f"{op} has no computation on tensors: {value} has none")
    return value


class _Chosen(ExprMutator):
    """Calls of tensor functions in place of calls of operators with strategies of their own."""

    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__()
        self._mod, self._target = mod, target

    def visit_call(self, call: Any) -> Any:
        """What a strategy is registered for, where all shapes are known; else what it means."""
        made = super().visit_call(call)
        if not isinstance(made.op, Op) or made.op.get_attr(STRATEGY) is None or made.op not in ROWS:
            return made
        operands = [part for one in made.args for part in (one.fields if isinstance(one, graph.Tuple) else (one,))]
        # A tuple that isn't written where it is passed has no tensors that a computation could take.
        if any(isinstance(one.struct_info, TupleStructInfo) or _is_open(one.struct_info) for one in operands) or _is_open(made.struct_info):
            return made
        return self._built(made, operands)

    def _built(self, call: Any, operands: list[Any]) -> Any:
        out_type = type_of(call.struct_info)
        chosen: list[OpImplementation] = []

        def compute(*inputs: Tensor) -> list[Tensor]:
            one, outs = select_implementation(call.op, call.attrs, inputs, out_type, self._target)
            chosen.append(one)
            return outs

        found = tensor_function(compute, operands, {})
        tensors, count = plain_tensors(found.func), len(found.args)
        name = f"{call.op.name.replace('.', '_')}_{''.join(c if c.isalnum() else '_' for c in chosen[-1].name)}"
        with self._target:
            schedule = chosen[-1].schedule(call.attrs, tensors[count:], self._target)
            func = lower(schedule, tensors, name)[name]
        callee = self._named(name, func.with_attr({"tir.is_scheduled": True, "schedule.origin": f"strategy: {chosen[-1].name}"}))
        return graph.Call(Op.of("relax.call_tir"), (callee, graph.Tuple(tuple(found.args))), None, (found.result,))

    def _named(self, name: str, func: Any) -> GlobalVar:
        taken = {var.name_hint for var, _ in self._mod.functions_items()}
        free = next(one for one in (name, *(f"{name}_{n}" for n in range(1, len(taken) + 2))) if one not in taken)
        self._mod.update_func(GlobalVar(free), func.with_attr("global_symbol", free))
        return self._mod.get_global_var(free)


def _is_open(info: Any) -> bool:
    """Whether a value is no tensor, or tuple of them, whose extents are numbers."""
    if isinstance(info, TupleStructInfo):
        return any(map(_is_open, info.fields))
    return not isinstance(info, TensorStructInfo) or info.extents is None or any(as_int(one) is None for one in info.extents)


def with_strategies(mod: IRModule, target: Target) -> IRModule:
    """A module in which operators with strategies of their own are calls of tensor functions, scheduled as these say.

    Raises:
        DeclarationError: as `select_implementation`.
        ScheduleError, LoweringError: for a schedule that is none.
    """
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function):
            made.update_func(var, _Chosen(made, target).visit(func))
    return made


__all__ = [
    "OpImplementation", "OpSpecialization", "OpStrategy", "get_valid_implementations", "meaning_on_tensors",
    "scheduled_by_rules", "select_implementation", "with_strategies",
]  # fmt: skip

"""Expressions as straight-line NumPy programs: compiled once, run on whole index grids.

A guard is the mask of the points at which a subexpression counts (the arm of an `if_then_else`). Values elsewhere are
computed but never used; only loads look at the mask, to tell a read that is out of bounds from one that never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    ProducerLoad,
    Select,
    StringImm,
    Sub,
    Var,
)
from ..tir.foreign import LIBM_FUNCTIONS, TRACE, PackedCalls
from ..tir.intrin import intrinsic_of
from ..tir.rewriting import Node, walk, without_lets
from ..tir.rewriting import children as all_children

Array = Any  # np.ndarray of any dtype, or a NumPy scalar that broadcasts
Load = Callable[[ProducerLoad, Sequence[Array], Array], Array]


def _truncated_quotient(a: Array, b: Array) -> Array:
    # towards zero, as in C: -7 / 2 is (-7 - -1) // 2 == -3, where -7 // 2 would be -4
    return np.true_divide(a, b) if np.asarray(a).dtype.kind not in "iu" else (a - np.fmod(a, b)) // b


_BINARY: dict[type[PrimExpr], Callable[[Array, Array], Array]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: _truncated_quotient,
    Mod: np.fmod,
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
    # as compiled code chooses: of a NaN and a number the second operand, where np.minimum gives the NaN
    Min: lambda a, b: np.where(a < b, a, b),
    Max: lambda a, b: np.where(a > b, a, b),
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
    And: np.logical_and,
    Or: np.logical_or,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One value: `node` from the values in slots `inputs`; `guard` is the slot of the mask, -1 for none.

    `node` None makes a mask: inputs[0], negated if `negated`, and the mask of `guard`.
    """

    node: PrimExpr | None
    inputs: tuple[int, ...]
    guard: int = -1
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order; `results` are the slots of the roots. `releases[i]` are the slots last used by step i."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]
    releases: tuple[tuple[int, ...], ...]
    peak: int

    def run(self, env: Mapping[Var, Array], load: Load | None = None) -> list[Array]:
        """The values of the roots, with variables as in `env` (arrays that broadcast) and elements from `load`."""
        values: list[Array] = [None] * len(self.steps)
        # points behind a guard may divide by zero: nobody uses their values
        with np.errstate(all="ignore"):
            for slot, step in enumerate(self.steps):
                values[slot] = _execute(step, values, env, load)
                for dead in self.releases[slot]:
                    values[dead] = None
        return [values[slot] for slot in self.results]


def _execute(step: Step, values: list[Array], env: Mapping[Var, Array], load: Load | None) -> Array:
    inputs = [values[i] for i in step.inputs]
    mask = values[step.guard] if step.guard >= 0 else None
    match step.node:
        case None:
            condition = np.logical_not(inputs[0]) if step.negated else inputs[0]
            return condition if mask is None else np.logical_and(mask, condition)
        case Var() as var:
            if var not in env:
                raise DeclarationError(f"the variable {var.name} has no value; give it one among the inputs")
            return env[var]
        case ProducerLoad() as node if load is not None:
            return load(node, inputs, mask)
        case node:
            return apply_node(node, inputs)


def apply_node(node: PrimExpr, inputs: Sequence[Array]) -> Array:
    """The value of an operator, constant or call from the values of its operands."""
    dtype = to_numpy(node.dtype)
    match node:
        case IntImm(value=value) | FloatImm(value=value):
            return dtype.type(value)
        case StringImm(value=text):
            return text
        case Not():
            return np.logical_not(inputs[0])
        case Cast():
            return np.asarray(inputs[0]).astype(dtype)
        case Select():
            # both arms are computed everywhere; what an arm holds where the other one counts isn't picked
            return np.where(*inputs)
        case Call():
            return _call(node, inputs)
    operator = _BINARY.get(type(node))
    if operator is None:
        raise DeclarationError(f"{type(node).__name__} ({node}) has no value in a tensor computation")
    return operator(*inputs)


def _call(node: Call, inputs: Sequence[Array]) -> Array:
    dtype = to_numpy(node.dtype)
    if node.op == "tir.if_then_else":
        return np.where(*inputs)
    if node.op == "tir.reinterpret":
        # ascontiguousarray makes one dimension out of none
        return np.ascontiguousarray(inputs[0]).view(dtype).reshape(np.shape(inputs[0]))
    if node.op == TRACE:
        return _trace(inputs, dtype)
    if node.op in ("tir.call_extern", "tir.call_pure_extern") and inputs[0] in LIBM_FUNCTIONS:
        return np.asarray(LIBM_FUNCTIONS[inputs[0]](*inputs[1:])).astype(dtype)
    evaluate = intrinsic_of(node).evaluate
    if evaluate is None:
        raise DeclarationError(f"{node.op} ({node}) can't be evaluated without compiling it")
    # functions of 16 bit floats are evaluated in float32, and rounded once
    half = parse_dtype(node.args[0].dtype).is_float and parse_dtype(node.args[0].dtype).bits == 16
    operands = [np.asarray(a).astype(np.float32) for a in inputs] if half else inputs
    return np.asarray(evaluate(*operands)).astype(dtype)


def _trace(inputs: Sequence[Array], dtype: Any) -> Array:
    """The traced values with the registered function called at every point, those included whose value nobody uses."""
    name, *values = inputs
    traced = np.broadcast_arrays(*values)
    result = np.empty(traced[-1].shape, dtype)
    for at in np.ndindex(result.shape):
        found = PackedCalls.run(str(name), [value[at].item() for value in traced])
        result[at] = traced[-1][at] if found is None else found
    return result


def children(node: Node) -> tuple[PrimExpr, ...]:
    """The operands of an expression."""
    return tuple(child for child in all_children(node) if isinstance(child, PrimExpr))


@dataclass(slots=True)
class _Compiler:
    """Gives each (node, mask) its slot, operands first."""

    steps: list[Step] = field(default_factory=list)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    masks: dict[tuple[int, bool, int], int] = field(default_factory=dict)
    sensitive: dict[int, bool] = field(default_factory=dict)

    def emit(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def mask(self, condition: int, negated: bool, guard: int) -> int:
        key = (condition, negated, guard)
        if key not in self.masks:
            self.masks[key] = self.emit(Step(None, (condition,), guard, negated))
        return self.masks[key]

    def key(self, node: PrimExpr, guard: int) -> tuple[int, int]:
        """Only what holds a load depends on its mask."""
        return (id(node), guard if self.sensitive[id(node)] else -1)

    def compile(self, root: PrimExpr, guard: int = -1) -> int:
        """The slot of `root` under a mask; without recursion, since expressions may be deep."""
        self._mark(root)
        stack = [(root, self.key(root, guard)[1])]
        while stack:
            node, mask = stack[-1]
            if self.key(node, mask) in self.slots:
                stack.pop()
                continue
            pending = self._pending(node, mask)
            if pending is not None:
                stack.append(pending)
                continue
            inputs = tuple(self.slots[self.key(child, m)] for child, m in self._operands(node, mask))
            self.slots[self.key(node, mask)] = self.emit(Step(node, inputs, mask))
            stack.pop()
        return self.slots[self.key(root, guard)]

    def _mark(self, root: PrimExpr) -> None:
        # operands come first, so what they hold is known when a node is reached
        for node in walk(root):
            if id(node) not in self.sensitive and isinstance(node, PrimExpr):
                self.sensitive[id(node)] = isinstance(node, ProducerLoad) or any(self.sensitive.get(id(c), False) for c in children(node))

    def _pending(self, node: PrimExpr, mask: int) -> tuple[PrimExpr, int] | None:
        """The first operand without a slot; conditions come first, so that the masks of the rest exist."""
        for child, child_mask in self._operands(node, mask):
            if self.key(child, child_mask) not in self.slots:
                return child, self.key(child, child_mask)[1]
        return None

    def _operands(self, node: PrimExpr, mask: int) -> Iterator[tuple[PrimExpr, int]]:
        match node:
            case Select(condition, yes, no) | Call(op="tir.if_then_else", args=(condition, yes, no)):
                yield condition, mask
                test = self.slots[self.key(condition, mask)]
                yield yes, self._arm(yes, test, False, mask)
                yield no, self._arm(no, test, True, mask)
            case And(a, b) | Or(a, b):
                yield a, mask
                # b counts where a holds, or for `or` where it doesn't
                yield b, self._arm(b, self.slots[self.key(a, mask)], isinstance(node, Or), mask)
            case _:
                for child in children(node):
                    yield child, mask

    def _arm(self, node: PrimExpr, test: int, negated: bool, mask: int) -> int:
        return self.mask(test, negated, mask) if self.sensitive[id(node)] else -1


def compile_program(roots: Sequence[PrimExpr], guard: PrimExpr | None = None) -> Program:
    """The program of `roots`; where `guard` is given, its value is the first result and it guards the others."""
    compiler = _Compiler()
    # kept until the end: slots go by `id`, which a node made later could share with a dead one
    roots = list(map(without_lets, roots))
    results: list[int] = []
    mask = -1
    if guard is not None:
        results.append(compiler.compile(guard))
        mask = compiler.mask(results[0], False, -1)
    results.extend(compiler.compile(root, mask) for root in roots)
    return _with_lifetimes(tuple(compiler.steps), tuple(results))


# a slot is freed after the last step that reads it, so that only live temporaries take memory
def _with_lifetimes(steps: tuple[Step, ...], results: tuple[int, ...]) -> Program:
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        for slot in (*step.inputs, *((step.guard,) if step.guard >= 0 else ())):
            last[slot] = number
    kept = set(results)
    releases: list[list[int]] = [[] for _ in steps]
    for slot, number in last.items():
        if slot not in kept:
            releases[number].append(slot)
    live = peak = 0
    for released in releases:
        # the inputs that a step releases are alive while it runs
        live += 1
        peak = max(peak, live)
        live -= len(released)
    return Program(steps, results, tuple(map(tuple, releases)), peak)

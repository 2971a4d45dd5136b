"""The steps of recurrent layers: what comes from the inputs is given for all steps at once, and states go from step to step.

Weights are read in panels: all gates of a few units, one row behind the other, so that their sums stay in registers and what the units
become is computed while these are at hand. `recurrent_loops` has the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...arith.index_map import IndexMap
from ...arith.index_map_graph import index_map_to_json
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import as_int, const, maximum, minimum
from ...tir.expr import PrimExpr
from ...tir.ir_builder import IRBuilder
from ..rows import in_loops
from ..utils import get_const_int, need_rank
from .recurrent_loops import GROUP, Operands, Panels, Sizes, in_steps

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
# An operation with this attribute holds elements of its only input in another order, which the text of an index map says: whoever knows
# the input when a program is built may pass them so.
PACKED = "packed_layout"


def _number(x: PrimExpr, value: float) -> PrimExpr:
    return const(value, x.dtype)


# Functions of gates and cells by the names of ONNX, lower case, with their two parameters.
ACTIVATIONS: Mapping[str, Callable[[PrimExpr, float, float], PrimExpr]] = {
    "sigmoid": lambda x, a, b: intrin.sigmoid(x),
    "tanh": lambda x, a, b: intrin.tanh(x),
    "relu": lambda x, a, b: maximum(x, _number(x, 0)),
    "affine": lambda x, a, b: x * _number(x, a) + _number(x, b),
    "leakyrelu": lambda x, a, b: intrin.select(x < 0, x * _number(x, a), x),
    "thresholdedrelu": lambda x, a, b: intrin.select(x > _number(x, a), x, _number(x, 0)),
    "scaledtanh": lambda x, a, b: intrin.tanh(x * _number(x, b)) * _number(x, a),
    "hardsigmoid": lambda x, a, b: maximum(_number(x, 0), minimum(_number(x, 1), x * _number(x, a) + _number(x, b))),
    "elu": lambda x, a, b: intrin.select(x < 0, (intrin.exp(x) - _number(x, 1)) * _number(x, a), x),
    "softsign": lambda x, a, b: x / (intrin.abs(x) + _number(x, 1)),
    "softplus": lambda x, a, b: maximum(x, _number(x, 0)) + intrin.log1p(intrin.exp(-intrin.abs(x))),
}


@dataclass(frozen=True)
class Cell:
    """What a step does.

    Args:
        kind: "lstm", "gru" or "rnn".
        activations: names of its functions: of gates, of new states, and for "lstm" of cells that go out.
        alphas, betas: their parameters.
        clip: the greatest distance from 0 of what the functions get; 0 for any.
        reverse: whether the last step comes first; of two directions the second one is reversed, whatever this says.
        coupled: of "lstm": the forget gate is 1 less the input gate; of "gru": the reset gate works on products.
    """

    kind: str
    activations: Sequence[str]
    alphas: Sequence[float]
    betas: Sequence[float]
    clip: float
    reverse: bool
    coupled: bool

    def __post_init__(self) -> None:
        wanted = {"lstm": 3, "gru": 2, "rnn": 1}[self.kind]
        if not len(self.activations) == len(self.alphas) == len(self.betas) == wanted:
            raise DeclarationError(f"{self.kind}: {wanted} activations with their parameters, not {list(self.activations)}")
        missing = [name for name in self.activations if name.lower() not in ACTIVATIONS]
        if missing:
            raise DeclarationError(f"{self.kind}: no activation {', '.join(missing)}; there are {', '.join(ACTIVATIONS)}")

    def apply(self, number: int, x: PrimExpr) -> PrimExpr:
        """One of its functions."""
        if self.clip:
            x = minimum(maximum(x, _number(x, -self.clip)), _number(x, self.clip))
        return ACTIVATIONS[self.activations[number].lower()](x, self.alphas[number], self.betas[number])


def recurrent_steps(
    cell: Cell,
    gates: Tensor,
    weights: Tensor,
    states: Sequence[Tensor],
    bias: Tensor | None = None,
    peepholes: Tensor | None = None,
    lengths: Tensor | None = None,
    levels: Sequence[Tensor] = (),
) -> list[Tensor]:
    """The states of a sequence.

    A layer of one direction leaves out the axis of directions everywhere; of two the second one goes from the last step to the first.

    Args:
        cell: what a step does.
        gates: [time, batch, directions * gates * hidden], what the inputs and biases add to the gates: of "lstm" input, output and
            forget gate, and cells; of "gru" update and reset gate, and states.
        weights: [directions, hidden, gates * hidden], those of the last state, of the dtype of the gates, or int8.
        states: [directions, batch, hidden], before the first step: the state, and of "lstm" the cells.
        bias: [directions, hidden], of "gru": what is added to the product of the state.
        peepholes: [directions, 3 * hidden], of "lstm": weights of the cells in the input, output and forget gate.
        lengths: [batch], the steps of each sequence; all by default. States behind them are 0.
        levels: of int8 weights three arrays [directions, gates * hidden]: the scales of their columns in the dtype of the gates, the
            numbers that stand for zero in int32, and the sums of the columns less these in int32. A product reads its state rounded to
            256 levels then, those of unsigned bytes with a scale and a zero point that its least and its greatest element give, and 0.

    Returns:
        The states [time, directions, batch, hidden], and the last ones [directions, batch, hidden], of "lstm" with the last cells.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    need_rank(cell.kind, "the gates", gates, 3)
    several = len(weights.shape) == 3
    need_rank(cell.kind, "the weights", weights, 3 if several else 2)
    time, batch, _ = gates.shape
    directions = get_const_int(weights.shape[0]) if several else 1
    hidden, count = get_const_int(weights.shape[-2]), GATES[cell.kind]
    width = count * hidden
    if get_const_int(weights.shape[-1]) != width or get_const_int(gates.shape[2]) != directions * width:
        raise DeclarationError(
            f"{cell.kind}: gates {list(gates.shape)} and weights {list(weights.shape)}; both have {width} columns for a direction"
        )
    if directions not in (1, 2) or (len(levels) == 3) != (weights.dtype == "int8") or (levels and cell.kind != "lstm"):
        raise DeclarationError(
            f"{cell.kind}: one or two directions, not {directions}; weights of int8, of lstm alone, have three arrays of levels, "
            f"others none, not {len(levels)} of {weights.dtype}"
        )
    panels = Panels.of(count if cell.kind != "gru" or cell.coupled else 1, count, hidden, GROUP if levels else 1)
    sizes = Sizes(time, batch, directions, hidden, panels)
    optional = [one for one in (bias, peepholes, lengths) if one is not None]

    def body(ib: IRBuilder, ins: list[Any], outs: list[Any]) -> None:
        rest = iter(ins[2 + len(states) :])
        extra, peep, length = (next(rest) if one is not None else None for one in (bias, peepholes, lengths))
        in_steps(ib, cell, sizes, Operands(ins[0], ins[1], ins[2 : 2 + len(states)], extra, peep, length, list(rest)), outs)

    lead = [directions] if several else []
    shapes = [(time, *lead, batch, hidden), *[(*lead, batch, hidden)] * len(states)]
    given = [gates, _packed(weights, sizes), *states, *optional, *levels]
    return in_loops(shapes, given, body, f"{cell.kind}_steps", [gates.dtype] * len(shapes))


def _packed(weights: Tensor, sizes: Sizes) -> Tensor:
    """Weights in panels."""
    panels, lead = sizes.panels, len(weights.shape) - 2

    def element(*at: Any) -> Any:
        block, panel, row, gate, unit, part = at[lead:]
        k, j = row * panels.group + part, panel * panels.units + unit
        place = *at[:lead], k, (block * panels.each + gate) * sizes.hidden + j
        found = weights[place]
        for index, whole in ((j, panels.padded == sizes.hidden), (k, sizes.hidden % panels.group == 0)):
            found = found if whole else intrin.if_then_else(index < sizes.hidden, found, const(0, weights.dtype))
        return found

    shape = (*weights.shape[:lead], panels.blocks, panels.count, panels.rows, panels.each, panels.units, panels.group)
    layout = IndexMap.from_func(lambda *at: _place(sizes, *at), len(weights.shape))
    # Of a few units a panel is wider than what its elements say.
    known = list(map(as_int, layout.map_shape(weights.shape))) == list(map(as_int, shape))
    made: Tensor = compute(shape, element, f"{weights.op.name}_panels", attrs={PACKED: index_map_to_json(layout)} if known else None)
    return made


def _place(sizes: Sizes, *at: Any) -> list[Any]:
    """Where a weight stands in the panels."""
    panels, (k, column) = sizes.panels, at[-2:]
    gate, j = column // sizes.hidden, column % sizes.hidden
    return [*at[:-2], gate // panels.each, j // panels.units, k // panels.group, gate % panels.each, j % panels.units, k % panels.group]

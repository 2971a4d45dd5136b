"""Sampled programs of dot-product instructions agree with the definition, whatever their sizes, layouts and borders."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.auto_scheduler import ComputeDAG, LayoutRewriteOption
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.errors import TargetError
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.runtime.engine import check_runs_here
from tensorexpr.schedule import Schedule, Trace
from tensorexpr.schedule.steps import Tensorize
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tests.effort import share_of

MACHINE = Target("llvm -mcpu=znver5 -num-cores=2")
TYPES = {"bytes": ("uint8", "int8", "int32"), "halves": ("bfloat16", "bfloat16", "float32")}


def runs_here() -> bool:
    """Whether this processor has the instructions."""
    try:
        check_runs_here(MACHINE)
    except TargetError:
        return False
    return True


RUNS_HERE = runs_here()


def product(kind: str, rows: int, columns: int, depth: int, transposed: bool, follows: bool) -> list[Tensor]:
    """A matrix product of small numbers, alone or before an elementwise stage of the type of the sums."""
    left, right, out = TYPES[kind]
    a = te.placeholder((rows, depth), left, name="A")
    b = te.placeholder((columns, depth) if transposed else (depth, columns), right, name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(a[i, k].astype(out) * (b[j, k] if transposed else b[k, j]).astype(out), axis=k),
        name="C",
        attrs={"layout_free_placeholders": [b]},
    )
    return [a, b, te.compute((rows, columns), lambda i, j: c[i, j] + c[i, j], name="D") if follows else c]


def convolution(kind: str, channels: int, plane: int, outputs: int, taps: int, last: bool) -> list[Tensor]:
    """A padded convolution of small numbers, with channels first or last."""
    left, right, out = TYPES[kind]
    a = te.placeholder((plane, plane, channels) if last else (channels, plane, plane), left, name="A")
    w = te.placeholder((taps, taps, channels, outputs) if last else (outputs, channels, taps, taps), right, name="W")
    padded = topi.nn.pad(a, (1, 1, 0) if last else (0, 1, 1), name="padded")
    c, y, x = (te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (taps, "dy"), (taps, "dx")))
    size = plane + 3 - taps

    def channels_first(o, i, j):  # type: ignore[no-untyped-def]
        return te.sum(padded[c, i + y, j + x].astype(out) * w[o, c, y, x].astype(out), axis=[c, y, x])

    def channels_last(i, j, o):  # type: ignore[no-untyped-def]
        return te.sum(padded[i + y, j + x, c].astype(out) * w[y, x, c, o].astype(out), axis=[y, x, c])

    shape, body = ((size, size, outputs), channels_last) if last else ((outputs, size, size), channels_first)
    return [a, w, te.compute(shape, body, name="C", attrs={"layout_free_placeholders": [w]})]


KINDS = st.sampled_from(sorted(TYPES))
CONTRACTIONS = st.one_of(
    st.builds(product, KINDS, st.integers(1, 9), st.integers(16, 70), st.integers(4, 23), st.booleans(), st.booleans()),
    st.builds(convolution, KINDS, st.integers(4, 9), st.integers(3, 6), st.integers(16, 40), st.integers(1, 3), st.booleans()),
)


@settings(deadline=None, derandomize=True, max_examples=share_of(16))
@given(CONTRACTIONS, st.sampled_from(LayoutRewriteOption), st.integers(0, 1000))
def test_sampled_tiles_are_right(tensors: list[Tensor], option: LayoutRewriteOption, seed: int) -> None:
    dag, rng = ComputeDAG(tensors), np.random.default_rng(seed)
    sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(MACHINE, layout_rewrite=option))
    tiles = [sketch for sketch in sketches if "Tile(" in sketch.name and any(isinstance(step, Tensorize) for step in sketch.trace)]
    sketch = tiles[rng.integers(len(tiles))]
    rows = sample(sketch, 24, rng)
    made = extract(sketch, inline_stages(sketch.tree), rows, MACHINE)
    assert np.isfinite(made.features).all() and (made.cycles > 0).all() and made.valid.any()
    trace = sketch.trace_of(rows[made.valid][0])
    assert any(isinstance(step, Tensorize) for step in trace)
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
    with MACHINE:
        assert_schedule_correct(Schedule(dag.outputs, trace), tensors, phases=(0,), compiled=RUNS_HERE)

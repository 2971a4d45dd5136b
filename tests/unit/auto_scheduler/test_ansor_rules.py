"""With rules="ansor" a program has the sketches that Ansor's rules make, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import auto_scheduler, te, topi
from tensorexpr.auto_scheduler import SearchTask, SketchPolicy, State
from tensorexpr.errors import ScheduleError, TuningError
from tensorexpr.schedule.steps import Split
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.space import Sketch
from tests.programs import matmul, matmul_add


def ansor(args: list[Tensor], **given: Any) -> list[Sketch]:
    """The sketches of Ansor's rules on 4 cores."""
    task = SearchTask(compute_dag=args, target="llvm -num-cores=4")
    return SketchPolicy(task, params={"rules": "ansor"}, **given).generate_sketches()


def double_matmul(n: int) -> list[Tensor]:
    """E = (A @ B) @ C."""
    a, b, c = (te.placeholder((n, n), name=name) for name in "ABC")
    k, m = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="m")
    d = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    return [a, b, c, te.compute((n, n), lambda i, j: te.sum(d[i, m] * c[m, j], axis=m), name="E")]


def conv2d_bn_relu() -> list[Tensor]:
    """A convolution with bias, scale, shift and relu."""
    x, w = te.placeholder((1, 16, 14, 14), name="X"), te.placeholder((16, 16, 3, 3), name="W")
    bias, scale, shift = (te.placeholder((16, 1, 1), name=name) for name in ("bias", "scale", "shift"))
    conv = topi.nn.conv2d(x, w, 1, 1, 1)
    biased = te.compute(conv.shape, lambda n, c, i, j: conv[n, c, i, j] + bias[c, 0, 0], name="biased")
    scaled = te.compute(conv.shape, lambda n, c, i, j: biased[n, c, i, j] * scale[c, 0, 0], name="scaled")
    shifted = te.compute(conv.shape, lambda n, c, i, j: scaled[n, c, i, j] + shift[c, 0, 0], name="shifted")
    return [x, w, bias, scale, shift, topi.nn.relu(shifted)]


def row_minimum(n: int, m: int) -> list[Tensor]:
    """The least element of each row."""
    x, k = te.placeholder((n, m), name="X"), te.reduce_axis((0, m), name="k")
    return [x, te.compute((n,), lambda i: te.min(x[i, k], axis=k), name="least")]


def total(n: int) -> list[Tensor]:
    """A sum without axes."""
    x, k = te.placeholder((n,), name="X"), te.reduce_axis((0, n), name="k")
    return [x, te.compute((), lambda *i: te.sum(x[k], axis=k), name="total")]


def softmax(*shape: int) -> list[Tensor]:
    """softmax over the last axis."""
    x = te.placeholder(shape, name="X")
    return [x, topi.nn.softmax(x)]


def max_pool() -> list[Tensor]:
    """A maximum over 2x2 windows."""
    x = te.placeholder((1, 64, 7, 7), name="X")
    return [x, topi.nn.pool2d(x, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "max")]


def winograd() -> list[Tensor]:
    """Winograd's F(4x4, 3x3) on transformed weights: two transforms by constants around a batch of products."""
    tiles, ci, co = 16, 8, 8
    named = {"auto_scheduler_simplify_const_tensor_indices": ["eps", "nu", "r_a", "r_b"]}
    back = {"auto_scheduler_simplify_const_tensor_indices": ["vh", "vw", "r_a", "r_b"]}
    x, u = te.placeholder((ci, tiles, 6, 6), name="X"), te.placeholder((6, 6, ci, co), name="U")
    b = te.compute((6, 6), lambda i, j: te.if_then_else(i == j, 1.0, 0.5), name="B")
    a = te.compute((6, 4), lambda i, j: te.if_then_else(i == j, 1.0, 0.25), name="A")
    ra, rb, rc = te.reduce_axis((0, 6), "r_a"), te.reduce_axis((0, 6), "r_b"), te.reduce_axis((0, ci), "ci")
    sa, sb = te.reduce_axis((0, 6), "r_a"), te.reduce_axis((0, 6), "r_b")
    forth = te.compute(
        (6, 6, ci, tiles),
        lambda eps, nu, c, p: te.sum(x[c, p, ra, rb] * b[ra, eps] * b[rb, nu], axis=[ra, rb]),
        name="forth",
        attrs=named,
    )
    product = te.compute(
        (6, 6, co, tiles), lambda eps, nu, o, p: te.sum(u[eps, nu, rc, o] * forth[eps, nu, rc, p], axis=rc), name="product"
    )
    inverse = te.compute(
        (co, tiles, 4, 4),
        lambda o, p, vh, vw: te.sum(product[sa, sb, o, p] * a[sa, vh] * a[sb, vw], axis=[sa, sb]),
        name="inverse",
        attrs=back,
    )
    out = te.compute((co, tiles, 4, 4), lambda o, p, i, j: inverse[o, p, i, j] + 1.0, name="out")
    return [x, u, out]


@pytest.mark.parametrize(
    ("args", "count"),
    [
        (matmul(512, 512, 512), 3),
        (matmul(8, 8, 512), 5),
        (matmul_add(512, 512, 512), 3),
        (double_matmul(512), 9),
        (conv2d_bn_relu(), 3),
        (max_pool(), 1),
        (row_minimum(10, 1024), 3),
        (softmax(1, 1024), 9),
        (softmax(1, 12, 128, 128), 9),
        (total(1024), 3),
        (winograd(), 3),
    ],
    ids=["matmul", "narrow", "matmul_add", "double", "conv", "pool", "min", "softmax", "softmax4", "total", "winograd"],
)
def test_the_number_of_sketches(args: list[Tensor], count: int) -> None:
    assert len(ansor(args)) == count


def test_rfactor_gives_threads_or_lanes_their_part() -> None:
    outer, inner, _ = ansor(row_minimum(10, 1024))
    for sketch, kind in ((outer, LoopKind.PARALLEL), (inner, LoopKind.VECTORIZE)):
        partial = next(s for s in sketch.tree.stages if s.name.endswith(".rf"))
        place = partial.leaf[0] if kind is LoopKind.PARALLEL else partial.leaf[-1]
        assert partial.mark(place).kind is kind


def test_the_axes_of_a_constant_are_unrolled() -> None:
    sketch = ansor(winograd())[0]
    stage = next(s for s in sketch.tree.stages if s.name == "forth")
    unrolled = {stage.axes[axis].name for axis in stage.leaf if stage.mark(axis).kind is LoopKind.UNROLL}
    assert unrolled == {"eps", "nu", "r_a", "r_b"}


def test_a_rule_of_your_own_comes_first() -> None:
    def condition(policy: SketchPolicy, state: Any, stage_id: int) -> int:
        seen = State(state, policy.task.compute_dag)
        return 2 if seen.stages[stage_id].op.name == "C" else 0

    def apply(policy: SketchPolicy, state: Any, stage_id: int) -> list[list[Any]]:
        first = State(state, policy.search_task.compute_dag)  # TVM's name of the task
        second = first.copy()
        place = second.stage_ops[stage_id]
        i, _, _ = second[place].iters
        outer, inner = second.split(place, i, [8])
        assert (outer.name, inner.name) == ("i.0", "i.1")
        return [[first.state_object, -1], [second, -1]]

    rule = auto_scheduler.PreloadCustomSketchRule(condition, apply, "Mine")
    plain, split = ansor(matmul(64, 64, 64), init_search_callbacks=[rule])
    assert plain.name.endswith("Mine")
    assert not any(isinstance(step, Split) and step.factors == (None, 8) for step in plain.trace)
    assert any(isinstance(step, Split) and step.factors == (None, 8) for step in split.trace)


def test_a_state_says_and_does_what_it_is_told() -> None:
    args = matmul_add(16, 16, 16)
    state = State(auto_scheduler.ComputeDAG(args))
    out, product = args[-1], state.stage_ops[2]
    i, j = state[out].iters
    io, ii = state.split(out, i, [4])
    fused = state.fuse(out, [ii, j])
    state.compute_at(product, out, io)
    state.parallel(out, io)
    state.pragma(product, state[product].iters[0], "auto_unroll_max_step$16")
    assert [it.name for it in state[out].iters] == [io.name, fused.name]
    assert state[product].compute_at == 2
    state.split(product, state[product].iters[0], [None, None])
    assert len(state.state_object.trace.open_decisions) == 1
    copied = state.cache_read(args[0], "local", [product])
    assert state[copied].name == "A.local"
    with pytest.raises(ScheduleError, match="a length for each new loop"):
        state.split(product, state[product].iters[0], [None, 4])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ansor(matmul(), init_search_callbacks=[auto_scheduler.PreloadCustomSketchRule(lambda *_: 7, lambda *_: [])]), "gave 7"),
        (
            lambda: ansor(matmul(), init_search_callbacks=[auto_scheduler.PreloadCustomSketchRule(lambda *_: 2, lambda *_: [[3, -1]])]),
            "a program is a State or its state_object, not 3",
        ),
        (lambda: SketchPolicy(SearchTask(compute_dag=matmul()), params={"rules": "mine"}), "it is one of 'all', 'ansor'"),
        (lambda: SketchPolicy(SearchTask(compute_dag=matmul()), init_search_callbacks=[3]), "PreloadCustomSketchRule"),
    ],
    ids=["condition", "program", "rules", "callback"],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(TuningError, match=message):
        make()

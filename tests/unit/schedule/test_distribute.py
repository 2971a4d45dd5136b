"""Sums of several terms as several sums."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps import Distribute
from tensorexpr.schedule.steps.distribute import terms_of
from tensorexpr.schedule.tree import Inline, LoopKind
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct

A, B = te.placeholder((16, 19), name="A"), te.placeholder((19, 24), name="B")
D, E, F = te.placeholder((16, 19), name="D"), te.placeholder((19, 24), name="E"), te.placeholder((19,), name="F")
G = te.placeholder((16,), name="G")


def of_terms(first: int = 0) -> Tensor:
    k = te.reduce_axis((first, 19), name="k")
    return te.compute((16, 24), lambda i, j: te.sum(A[i, k] * B[k, j] - (D[i, k] * E[k, j] - F[k]), axis=k), name="C")


def test_terms_are_what_each_step_adds_or_takes_away() -> None:
    assert [(negative, str(term), scales) for negative, term, scales in terms_of(of_terms().op)] == [
        (False, "A[i, k] * B[k, j]", ()),
        (True, "D[i, k] * E[k, j]", ()),
        (False, "F[k]", ()),
    ]
    k = te.reduce_axis((0, 19), name="k")
    assert terms_of(te.compute((16,), lambda i: te.max(A[i, k] + F[k], axis=k)).op) == []
    assert terms_of(te.compute((16,), lambda i: te.sum(A[i, k] + F[k], axis=k, where=k < i)).op) == []


def test_sums_of_thousands_of_terms() -> None:
    k = te.reduce_axis((0, 19), name="k")
    c = te.compute((16, 24), lambda i, j: te.sum(sum((A[i, k] * float(n) for n in range(2, 1200)), B[k, j]), axis=k), name="C")
    assert len(terms_of(c.op)) == 1199
    assert not any(isinstance(step, Distribute) for step in default_schedule([A, B, c], "llvm").trace)


@pytest.mark.parametrize("first", [0, 3])
def test_they_add_up_to_the_same(first: int) -> None:
    c = of_terms(first)
    s = create_schedule(c.op)
    one, two, three = s.distribute(c)
    s[two].compute_at(s[c], c.op.axis[0])
    s[one].split(s[one].op.axis[1], factor=5)
    assert three.op.name == "C.term2"
    assert_schedule_correct(s, [A, B, D, E, F, c])
    again = create_schedule(c.op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s) and "C_term0, C_term1, C_term2 = s.distribute(C)" in s.as_python()


def test_what_has_one_term_is_refused() -> None:
    k = te.reduce_axis((0, 19), name="k")
    c = te.compute((16, 24), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(c.op)
    with pytest.raises(ScheduleError, match=r"distribute, which takes a sum .* te.sum\(a \+ b, axis=k\)"):
        s.distribute(c)
    s = create_schedule(of_terms().op)
    s[s.outputs[0].output(0)].split(s.outputs[0].axis[0], factor=2)
    with pytest.raises(ScheduleError, match="distribute comes before split"):
        s.distribute(s.outputs[0].output(0))


def test_what_scales_all_steps_is_done_to_sums() -> None:
    k = te.reduce_axis((0, 19), name="k")
    c = te.compute((16, 24), lambda i, j: te.sum(G[i] * ((A[i, k] * B[k, j] - D[i, k] * E[k, j] * 0.5) / 3.0), axis=k), name="C")
    s = create_schedule(c.op)
    assert len(s.distribute(c)) == 2
    total = str(s.tree[s[c].id].compute.body[0]).replace("T.float32", "")
    assert total == "C_term0[i, j] / (3.0) * G[i] - C_term1[i, j] * (0.5) / (3.0) * G[i]"
    assert_schedule_correct(s, [A, B, D, E, G, c])
    # of what the sum moves along nothing is taken, nor of halves, whose sums leave their range where terms are not divided
    for value in (lambda k: 3.0 / A[0, k], lambda k: A[0, k].astype("float16") / tvm.tir.const(3, "float16")):
        (term,) = terms_of(te.compute((16,), lambda i, value=value: te.sum(value(k), axis=k)).op)
        assert not term.scales


@pytest.mark.parametrize("is_convolution", [False, True])
def test_products_are_divided_once_with_what_follows(is_convolution: bool) -> None:
    """A covariance of 1000 x 200 took 2.8 ms and takes 0.67, a convolution whose products are each divided by 9 2.3 and 0.46."""
    if is_convolution:
        x, w = te.placeholder((16, 12, 12), name="X"), te.placeholder((32, 16, 3, 3), name="W")
        k, u, v = te.reduce_axis((0, 16)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
        out = te.compute((32, 10, 10), lambda o, y, z: te.sum(x[k, y + u, z + v] * w[o, k, u, v] / 9.0, axis=[k, u, v]), name="C")
    else:
        x, w, k = te.placeholder((19, 24), name="X"), te.placeholder((24,), name="W"), te.reduce_axis((0, 19))
        out = te.compute((24, 24), lambda i, j: te.sum((x[k, i] - w[i]) * (x[k, j] - w[j]) / 18.0, axis=k), name="C")
    last = te.compute(out.shape, lambda *i: out(*i) + 1.0)
    s = default_schedule([x, w, last], "llvm -mcpu=znver3")
    assert [stage.name for stage in s.tree.stages if not stage.is_placeholder and stage.compute.reduce_axis] == ["C.term0"]
    assert isinstance(s.tree[s[out].id].attach, Inline)
    if not is_convolution:  # whose code takes long to compile
        assert_schedule_correct(s, [x, w, last])


def complex_product(rows: int, columns: int, terms: int) -> list[Tensor]:
    parts = [te.placeholder(shape, name=name) for name, shape in zip("abcd", [(rows, terms)] * 2 + [(terms, columns)] * 2, strict=True)]
    a, b, c, d = parts
    k, m = te.reduce_axis((0, terms), "k"), te.reduce_axis((0, terms), "m")
    real = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * c[k, j] - b[i, k] * d[k, j], axis=k), name="re")
    return [*parts, real, te.compute((rows, columns), lambda i, j: te.sum(a[i, m] * d[m, j] + b[i, m] * c[m, j], axis=m), name="im")]


@pytest.mark.parametrize(("shape", "apart"), [((17, 24, 19), 2), ((1, 256, 64), 0), ((64, 64, 4), 0)], ids=str)
def test_complex_products_are_products(shape: tuple[int, int, int], apart: int) -> None:
    """One register tile for both took 20.9 ms for 512 x 512 x 512, with rows of the second operand along the sum 42.8; 9 to 10 since."""
    tensors = complex_product(*shape)
    s = default_schedule(tensors, "llvm")
    assert sum(isinstance(step, Distribute) for step in s.trace) == apart
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.standard_normal([int(str(size)) for size in tensor.shape]).astype("float32") for tensor in tensors[:4])
    found = np.empty((2, *shape[:2]), "float32")
    tvm.build(s, tensors)(a, b, c, d, *found)
    wanted = (a + 1j * b) @ (c + 1j * d)
    np.testing.assert_allclose(found, [wanted.real, wanted.imag], rtol=1e-4, atol=1e-4)


def test_pairs_are_copied_along_rows() -> None:
    """Columns of complex numbers that lie in pairs are two elements apart: nearer than terms are, so nothing is transposed."""
    a, b = te.placeholder((17, 19, 2), name="a"), te.placeholder((19, 24, 2), name="b")
    k = te.reduce_axis((0, 19), "k")
    real = te.compute((17, 24), lambda i, j: te.sum(a[i, k, 0] * b[k, j, 0] - a[i, k, 1] * b[k, j, 1], axis=k), name="re")
    s = default_schedule([a, b, real], "llvm")
    copies = [stage for stage in s.tree.stages if stage.name.startswith("b.")]
    assert len(copies) == 2 and not any(mark.kind is LoopKind.UNROLL for copy in copies for mark in copy.marks.values())
    assert_schedule_correct(s, [a, b, real])


def behind(condition: str, of_all: bool = True) -> list[Tensor]:
    """A product where a condition holds: of rows and columns (`of_all` steps), or of rows and steps."""
    k, mask = te.reduce_axis((0, 19), name="k"), te.placeholder((16, 24), "bool", name="M")

    def element(i: te.Var, j: te.Var) -> te.PrimExpr:
        holds, product = mask(i, j if of_all else k), A[i, k] * B[k, j]
        if condition == "where":
            return te.sum(product, axis=k, where=holds)
        choice = tvm.tir.Select if condition == "select" else te.if_then_else
        return te.sum(choice(holds, product, tvm.tir.const(float(condition == "one"), "float32")), axis=k)

    return [A, B, mask, te.compute((16, 24), element, name="C")]


@pytest.mark.parametrize("condition", ["where", "select", "if"])
def test_products_behind_a_condition_are_products(condition: str) -> None:
    """A product of 512 with a mask of its results had a branch around each term's vectors."""
    tensors = behind(condition)
    s = default_schedule(tensors, "llvm")
    assert sum(isinstance(step, Distribute) for step in s.trace) == 1
    assert_schedule_correct(s, tensors)
    # exact: what isn't selected may be anything
    rng = np.random.default_rng(0)
    a, b, mask = (
        rng.standard_normal((16, 19)).astype("float32"),
        rng.standard_normal((19, 24)).astype("float32"),
        np.eye(16, 24, dtype=bool),
    )
    a[3], found = np.nan, np.empty((16, 24), "float32")
    tvm.build(s, tensors, "llvm")(a, b, mask, found)
    assert not found[~mask].any() and np.isnan(found[3, 3])


def test_what_only_exists_behind_its_condition_stays_there() -> None:
    assert not any(term.scales for term in terms_of(behind("one")[-1].op)) and not any(
        term.scales for term in terms_of(behind("if", False)[-1].op)
    )
    k = te.reduce_axis((0, 19), name="k")
    c = te.compute((20, 24), lambda i, j: te.sum(te.if_then_else(i < 16, A[i, k] * B[k, j], 0.0), axis=k), name="C")
    assert not any(term.scales for term in terms_of(c.op))
    assert terms_of(te.compute((20, 24), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k, where=i < 16), name="C").op) == []

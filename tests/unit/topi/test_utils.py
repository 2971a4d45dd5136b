"""Helpers for operators and their schedules."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.target import Target
from tensorexpr.topi import utils
from tests.operators import assert_same, run, values


def test_positions_and_indices_are_each_others_way_back() -> None:
    for position in range(60):
        indices = [int(index) for index in utils.unravel_index(position, (3, 4, 5))]
        assert utils.ravel_index(indices, (3, 4, 5)) == position


@pytest.mark.parametrize(("number", "most", "power"), [(48, None, 16), (48, 16, 16), (48, 15, 8), (48, 8, 8), (7, 4, 1)])
def test_powers_of_two_that_divide(number: int, most: int | None, power: int) -> None:
    assert utils.get_max_power2_factor(number, most) == power


def test_constants_out_of_expressions() -> None:
    n = te.var("n")
    assert utils.get_float_tuple((1, tir.const(2.5, "float32"), n)) == (1.0, 2.5, n)
    assert utils.is_dynamic_shape((n, 2)) and not utils.is_dynamic_shape((3, 2))
    assert utils.is_empty_shape((3, 0)) and not utils.is_empty_shape((n, 2))
    with pytest.raises(DeclarationError, match="expected a constant number, not n"):
        utils.get_const_float(n)


def test_keys_of_the_current_target() -> None:
    with Target("llvm"):
        assert utils.is_target(["cpu", "other"]) and not utils.is_target("cuda")


def test_elementwise_operations_are_inlined_and_others_handed_over() -> None:
    A = te.placeholder((4, 4), name="A")
    rows = topi.sum(topi.add(topi.exp(A), A), 1)
    last = topi.tanh(topi.exp(rows))
    s = te.create_schedule(last.op)
    names: list[str] = []
    utils.traverse_inline(s, last.op, lambda op: names.append(op.name))
    assert names == [rows.op.name, "T_exp", "T_tanh"]
    assert "inlined: T_exp_1\n" in str(s)  # what the rows are made of is left to whoever schedules them


def test_operators_for_x86_take_their_own_argument_names() -> None:
    x, w = values(1, 2, 4, 4), values(3, 2, 3, 3)
    wanted = run(lambda a, k: topi.nn.conv2d_nchw(a, k, 1, 1, 1), x, w)
    assert_same(
        run(lambda a, k: topi.x86.conv2d_nchw(data=a, kernel=k, strides=1, padding=1, dilation=1, out_dtype="float32"), x, w), wanted
    )
    a, b = values(3, 8), values(12, 8)
    assert_same(run(lambda m, n: topi.x86.dense_pack(m, n), a, b), a @ b.T, 1e-4)
    assert_same(run(lambda m, n: topi.nn.dense_pack(m, n), a, np.ascontiguousarray(b.reshape(3, 4, 8).transpose(0, 2, 1))), a @ b.T, 1e-4)
    with pytest.raises(TypeError, match="missing a required argument: 'strides'"):
        topi.x86.conv2d_nchw(te.placeholder((1, 1, 2, 2)), te.placeholder((1, 1, 1, 1)))


def test_layouts_of_images() -> None:
    assert topi.utils.nchw_xc_layout("NCHW8c") and not topi.utils.nchw_xc_layout("NCHW")
    assert topi.utils.nchw_pack_layout("NCHW1n16c") and not topi.utils.ncw_pack_layout("NCW16c")
    assert topi.utils.get_shape((1, 2, 3, 4), "NCHW", "NHWC") == (1, 3, 4, 2)
    i = [te.var(name) for name in "abcde"]
    assert topi.image.get_2d_indices(i[:4], "NHWC") == (i[0], i[3], i[1], i[2], None, 0, 0)
    assert topi.image.get_2d_indices(i, "NCHW4c") == (*i, 0, 0)
    assert topi.image.get_3d_indices(i, "NDHWC") == (i[0], i[4], i[1], i[2], i[3], None)
    data = te.placeholder((1, 4, 4, 2), name="A")
    pixel = topi.image.get_2d_pixel(data, "NHWC", 4, 4, i[0], i[3], i[1], i[2], None, 0, 0)
    assert str(pixel) == "A[a, T.max(T.min(b, 3), 0), T.max(T.min(c, 3), 0), d]"
    with pytest.raises(DeclarationError, match="don't have the same axes"):
        topi.utils.get_shape((1, 2, 3, 4), "NCHW", "NCW")


def test_blas_by_the_names_of_libraries() -> None:
    a, b, c = values(3, 8), values(5, 8), values(5)
    tensors = [te.placeholder(x.shape) for x in (a, b, c)]
    found = np.zeros((3, 5), "float32")
    tvm.build([*tensors, topi.x86.dense_mkl(*tensors)], schedule="auto")(a, b, c, found)
    assert_same(found, a @ b.T + c, 1e-4)
    with pytest.raises(DeclarationError, match="BLAS sums float32 in its own dtype, not in float64"):
        topi.x86.matmul_cblas(tensors[0], tensors[1], out_dtype="float64")

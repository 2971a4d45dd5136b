"""The features of loops by AutoTVM's names. The numbers are those of TVM 0.19 for the same schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import autotvm, te
from tensorexpr.autotvm import feature
from tensorexpr.autotvm.errors import MissingTaskError
from tensorexpr.errors import RecordError, TuningError
from tests.autotvm_templates import TARGET, product


def plain(s: Any, c: Any) -> None:
    """As it is declared."""


def tiled(s: Any, c: Any) -> None:
    y, x = c.op.axis
    yo, xo, yi, xi = s[c].tile(y, x, 8, 16)
    s[c].reorder(yo, xo, c.op.reduce_axis[0], yi, xi)
    s[c].vectorize(xi)
    s[c].unroll(yi)
    s[c].parallel(yo)


def cached(s: Any, c: Any) -> None:
    local = s.cache_write(c, "local")
    y, x = c.op.axis
    _, xo, _, _ = s[c].tile(y, x, 8, 16)
    s[local].compute_at(s[c], xo)
    a = s.cache_read(local.op.input_tensors[0], "shared", [local])
    s[a].compute_at(s[local], local.op.reduce_axis[0])


def fused(s: Any, c: Any) -> None:
    s[c].parallel(s[c].fuse(*c.op.axis))


def rows(change: Callable[[Any, Any], None]) -> list[dict[str, Any]]:
    a, b, c = product(128)
    s = te.create_schedule(c.op)
    change(s, c)
    return [{str(pair[0]): pair[1:] for pair in row} for row in feature.get_itervar_feature(s, [a, b, c])]


def test_loops_say_how_they_move_what_is_accessed() -> None:
    i, _, k = rows(plain)
    assert i["_attr_"][:4] == [128, 1, 128, 128**3] and i["_arith_"] == [0, 0, 0] and i["_attr_"][4:].index(1.0) == 9
    assert i["A_0"] == [128, -1, 16384, 128, 0, 0] and i["B_0"] == [0, -1, 16384, 128, 0, 0] and i["C_1"] == [128, -1, 16384, 128, 0, 0]
    assert k["_attr_"][:4] == [128, 3, 128**3, 128] and k["_arith_"] == [1, 1, 0]
    assert k["A_0"] == [1, -1, 128, 1, 0, 0] and k["B_0"] == [128, -1, 128, 1, 0, 0] and k["C_0"] == [0, -1, 1, 128, 0, 0]


def test_kinds_of_loops_and_what_cores_share() -> None:
    made = rows(tiled)
    assert [row["_attr_"][4:].index(1.0) for row in made] == [8, 9, 9, 6, 7]
    assert made[0]["A_0"] == [1024, -1, 16384, 128, 16, 1] and made[0]["B_0"] == [0, -1, 16384, 128, 1, 16]


def test_elements_of_a_cache_count_from_its_beginning_and_single_iterations_stay() -> None:
    made = rows(cached)
    assert [row["_attr_"][0] for row in made] == [16, 8, 8, 16, 128, 1, 1, 8, 16]
    assert made[0]["C.local_0"] == [0, -1, 128, 16384, 0, 0] and made[2]["C.local_0"] == [16, -1, 128, 128, 0, 0]
    assert made[5]["A.shared_0"] == [0, -1, 1, 1, 0, 0]


def test_a_fused_loop_moves_what_its_first_step_does_not() -> None:
    assert rows(fused)[0]["A_0"] == [1, -1, 128**3, 1, 16384, 1]


def test_an_index_that_is_read_moves_by_the_loops_it_is_read_by() -> None:
    x, at = te.placeholder((64,), name="x"), te.placeholder((64,), "int32", name="at")
    y = te.compute((4, 64), lambda i, j: x[at[j]] + x[j], name="y")
    i, j = feature.get_itervar_feature(te.create_schedule(y.op), [x, at, y])
    assert i[3:] == [["at_0", 0, -1, 64, 4, 0, 0], ["x_0", 0, -1, 64, 4, 0, 0], ["x_1", 0, -1, 64, 4, 0, 0], ["y_0", 64, -1, 256, 1, 0, 0]]
    assert j[4] == ["x_0", 1, -1, 64, 1, 0, 0]


def test_numbers_in_a_row_have_names() -> None:
    a, b, c = product(128)
    s = te.create_schedule(c.op)
    flat = feature.get_itervar_feature_flatten(s, [a, b, c])
    names = feature.get_flatten_name(feature.get_itervar_feature(s, [a, b, c]))
    assert len(flat) == len(names) == 126 and sum(flat) == pytest.approx(309.26, abs=5e-3)
    assert names[0] == "f0.i._attr_.length" and names[-1] == "f125.k.C_1.T_reuse"


def test_a_line_of_a_log_has_names() -> None:
    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    made = autotvm.MeasureInput(task.target, task, task.config_space.get(7))
    line = autotvm.record.encode(made, autotvm.MeasureResult((1.0,), 0, 1.0, 1.0))
    assert feature.get_flatten_name(line)[0].endswith("_attr_.length")
    with pytest.raises(MissingTaskError, match="tests/nothing"):
        feature.get_flatten_name(line.replace("tests/matmul", "tests/nothing"))
    with pytest.raises(RecordError):
        feature.get_flatten_name(line[:-9])


def test_curves_are_sampled() -> None:
    a, b, c = product(128)
    s = te.create_schedule(c.op)
    tiled(s, c)
    found = feature.get_buffer_curve_sample_flatten(s, [a, b, c], sample_n=5)
    assert len(found) == 3 * 8 * 5
    # of A: reuse by count, count by reuse, iterations by count, count by iterations
    wanted = [4, 0, 4, 1, 4, 2, 4, 0, 4, 1, 0, 0, 0, 1, 0, 2, 0, 3, 10, 0, 4, 0, 4, 1, 4, 2, 7, 0, 7, 1, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0]
    assert list(found[:40]) == wanted


def test_what_has_no_features_is_refused() -> None:
    a, b, c = product(8)
    with pytest.raises(TuningError, match="features_from_primfunc"):
        feature.get_itervar_feature(te.create_prim_func([a, b, c]), [])  # type: ignore[arg-type]
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    y = te.compute((n,), lambda i: x[i] + 1.0, name="y")
    assert feature.get_itervar_feature(te.create_schedule(y.op), [x, y])[0][1][1] == -1
    with pytest.raises(TuningError, match="when the program runs"):
        feature.get_buffer_curve_sample_flatten(te.create_schedule(y.op), [x, y])

"""JoinInPlace: kernels write parts of concatenations where these want them; what runs and what it means stays the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax, te, tir, topi
from tensorexpr.driver.tvmc.model import TVMCModel
from tensorexpr.driver.tvmc.verifier import verify
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.kernel_schedules import kernel_of
from tensorexpr.relax.regions import regions_from_json, regions_of, regions_to_json, stated_regions
from tensorexpr.relax.tensor_function import function_of_tensors, plain_tensors
from tensorexpr.relax.transform.join_in_place import JoinInPlace, joined_parts
from tensorexpr.relax.visitor import walk
from tensorexpr.runtime import load_module
from tensorexpr.runtime.build import build
from tensorexpr.target import Target
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of

RNG = np.random.default_rng(0)


def weight(*shape: int) -> Any:
    return relax.const(RNG.uniform(-1, 1, shape).astype("float32"))


def module(make: Callable[..., Any], shape: Sequence[int] = (1, 8, 8, 16)) -> Any:
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            made = make(bb.emit, x)
            out = bb.emit_output(relax.Tuple(tuple(made)) if isinstance(made, list) else made)
        bb.emit_func_output(out)
    return bb.get()


def conv(emit: Any, x: Any, channels: int) -> Any:
    """A 1x1 convolution, channels last, with a ReLU."""
    w = weight(1, 1, int(x.struct_info.shape.values[3].value), channels)
    return emit(op.nn.relu(emit(op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"))))


def pool(emit: Any, x: Any) -> Any:
    return emit(op.nn.max_pool2d(x, (2, 2), strides=(2, 2), layout="NHWC"))


def names(mod: Any) -> list[str]:
    """The kernels that are called, in order."""
    calls = [node for node in walk(mod["main"].body) if isinstance(node, relax.Call) and str(node.op).startswith("relax.call_tir")]
    return [node.args[0].name_hint for node in calls]


def check(mod: Any) -> Any:
    """The module after the graph's phases; what it means, and what runs, natively and call by call, is what the operators mean."""
    params = [[int(one.value) for one in param.struct_info.shape.values] for param in mod["main"].params]
    arrays = [RNG.uniform(-1, 1, shape).astype("float32") for shape in params]
    wanted = Evaluator(mod)("main", *arrays)
    fused = relax.build(mod, "llvm", upto=3)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), profile=True)
    found = [Evaluator(fused)("main", *arrays), machine["main"](*arrays)]
    machine.profile("main", *arrays)  # each kernel checks its own arguments
    for one in found:
        for a, b in zip(one if isinstance(wanted, tuple) else [one], wanted if isinstance(wanted, tuple) else [wanted], strict=True):
            np.testing.assert_allclose(a if isinstance(a, np.ndarray) else a.numpy(), b, rtol=1e-4, atol=1e-4)
    return fused


def test_two_convolutions_write_their_channels() -> None:
    mod = module(lambda e, x: pool(e, e(op.concat([conv(e, x, 24), conv(e, x, 40)], 3))))
    fused = check(mod)
    assert not any(name.startswith("concat") for name in names(fused))
    assert [regions_of(fused[name]) for name in names(fused)] == [
        {2: ((1, 8, 8, 64), (0, 0, 0, 0))},
        {2: ((1, 8, 8, 64), (0, 0, 0, 24))},
        {},
    ]


def test_what_comes_from_elsewhere_is_copied() -> None:
    fused = check(module(lambda e, x: pool(e, e(op.concat([x, conv(e, x, 24)], 3)))))
    assert [name.split("_")[0] for name in names(fused)] == ["fused", "copy", "max"]


def test_what_the_concatenation_computes_is_computed_there() -> None:
    """Pixels that are repeated on the way are a kernel of their own, and the others aren't copied."""

    def make(e: Any, x: Any) -> Any:
        small = pool(e, conv(e, x, 16))
        wide = e(op.image.resize2d(small, (8, 8), layout="NHWC", method="nearest_neighbor", coordinate_transformation_mode="asymmetric"))
        return pool(e, e(op.concat([wide, conv(e, x, 32)], 3)))

    fused = check(module(make))
    assert sum(bool(regions_of(fused[name])) for name in names(fused)) == 2


def test_other_readers_read_the_part() -> None:
    def make(e: Any, x: Any) -> Any:
        a = conv(e, x, 32)
        return [pool(e, a), pool(e, e(op.concat([a, conv(e, x, 16)], 3)))]

    fused = check(module(make))
    assert {0: ((1, 8, 8, 48), (0, 0, 0, 0))} in [regions_of(fused[name]) for name in names(fused)]


def test_no_kernel_reads_one_part_and_writes_another() -> None:
    """It would get one array as two arguments, which kernels refuse."""
    fused = check(module(lambda e, x: pool(e, e(op.concat([a := conv(e, x, 32), conv(e, a, 16)], 3)))))
    assert not any(len(regions_of(fused[name])) > 1 for name in names(fused))


def test_what_stays() -> None:
    """Results of the function, values that others than kernels read, parts that fill no line, and few elements that need no copy."""
    for make in (
        lambda e, x: [a := conv(e, x, 32), pool(e, e(op.concat([a, x], 3)))],
        lambda e, x: pool(e, e(op.concat([conv(e, x, 4), conv(e, x, 8)], 3))),
        lambda e, x: pool(e, e(op.concat([conv(e, x, 16), x, x], 3))),
        lambda e, x: pool(e, e(op.concat([a := conv(e, x, 16), a], 3))),  # a copy would read one part and write another
    ):
        fused = check(module(make))
        assert any(name.startswith("concat") for name in names(fused))
    once = relax.build(module(lambda e, x: pool(e, e(op.concat([conv(e, x, 24), conv(e, x, 40)], 3)))), "llvm", upto=3)
    assert names(JoinInPlace()(once)) == names(once)


def test_images_one_after_the_other_and_halves_of_rows() -> None:
    for axis in (0, 1, 2):
        fused = check(module(lambda e, x, axis=axis: pool(e, e(op.concat([conv(e, x, 16), conv(e, x, 16)], axis)))))
        assert not any(name.startswith("concat") for name in names(fused))


def test_a_concatenation_that_is_the_result(tmp_path: Path) -> None:
    mod = module(lambda e, x: e(op.concat([conv(e, x, 24), conv(e, x, 40)], 3)))
    assert len(names(check(mod))) == 2
    x = RNG.uniform(-1, 1, (1, 8, 8, 16)).astype("float32")
    executable = relax.build(mod, "llvm")
    executable.export_library(str(tmp_path / "net.so"))
    found = relax.VirtualMachine(load_module(str(tmp_path / "net.so")))["main"](x).numpy()
    np.testing.assert_allclose(found, Evaluator(mod)("main", x), rtol=1e-4, atol=1e-4)
    assert "argument 2 is the part of (1, 8, 8, 64) that begins at (0, 0, 0, 24)" in executable.explain()


def test_kernels_are_verified_on_their_parts() -> None:
    mod = module(lambda e, x: pool(e, e(op.concat([conv(e, x, 24), conv(e, x, 40), x], 3))))
    made = verify(TVMCModel(mod, {}), per_kernel=True)
    assert all(row.is_equal for row in made.rows) and len(made.rows) == 5, str(made)


def test_as_it_is_printed_it_reads_back() -> None:
    mod = relax.build(module(lambda e, x: pool(e, e(op.concat([conv(e, x, 24), conv(e, x, 40)], 3)))), "llvm", upto=3)
    from tensorexpr.script import from_source

    func = next(func for var, func in mod.functions_items() if var.name_hint in names(mod) and regions_of(func))
    again = from_source(func.script())
    a, w, out = (RNG.uniform(-1, 1, shape).astype("float32") for shape in ((1, 8, 8, 16), (1, 1, 16, 24), (1, 8, 8, 64)))
    results = [out.copy(), out.copy()]
    for one, result in zip((func, again), results, strict=True):
        interpret(one, [a, w, result])
    np.testing.assert_array_equal(*results)


@st.composite
def joins(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """Extents, how much of an axis each part has, and the axis."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return shape, draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)), draw(st.integers(0, len(shape) - 1))


@settings(deadline=None)
@given(joins())
@example(([3], [1, 2], 0))
def test_a_concatenation_is_recognised(join: tuple[list[int], list[int], int]) -> None:
    shape, sizes, axis = join
    parts = [te.placeholder([*shape[:axis], size, *shape[axis + 1 :]], name=f"p{n}") for n, size in enumerate(sizes)]
    found = joined_parts(topi.concatenate(parts, axis))
    assert found == (axis, [(part, sum(sizes[:n])) for n, part in enumerate(parts)])


def test_what_is_no_concatenation() -> None:
    a, b = te.placeholder((4, 8), name="a"), te.placeholder((4, 8), name="b")
    for body in (
        lambda i, j: te.if_then_else(j < 8, a[i, j], b[i, j - 7]),
        lambda i, j: te.if_then_else(j < 8, a[i, j], b[3 - i, j - 8]),
        lambda i, j: te.if_then_else(i < 2, a[i, j % 8], b[i, j % 8]),
        lambda i, j: te.if_then_else(j < 8, a[i, j], b[i, j - 8] + 1.0),
        lambda i, j: te.if_then_else(j < 4, a[i, j], b[i, te.min(j - 4, 7)]),
    ):
        assert joined_parts(te.compute((4, 16), body)) is None
    assert joined_parts(a) is None
    # Of a tensor of which a part is missing nothing is written in place.
    assert joined_parts(te.compute((4, 12), lambda i, j: te.if_then_else(j < 4, a[i, j], b[i, j - 4]))) is None
    long = te.placeholder((5, 8), name="long")
    assert joined_parts(te.compute((4, 16), lambda i, j: te.if_then_else(j < 8, long[i, j], b[i, j - 8]))) is None
    # Two reads of one that continue each other are one.
    both = te.compute((4, 16), lambda i, j: te.if_then_else(j < 3, a[i, j], te.if_then_else(j < 8, a[i, j], b[i, j - 8])))
    assert joined_parts(both) == (1, [(a, 0), (b, 8)])


@settings(max_examples=share_of(30), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3), st.booleans())
def test_functions_of_parts_leave_the_rest_alone(axes: list[tuple[int, int, int]], reads_too: bool) -> None:
    """What is computed is that of the part, by blocks and by a schedule; other elements of the larger tensor keep their values."""
    shape, whole = [n for n, _, _ in axes], tuple(n + before + after for n, before, after in axes)
    begins = tuple(before for _, before, _ in axes)
    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *i: a[i] * 2.0 + 1.0, name="b")
    regions = {1: (whole, begins), **({0: (whole, begins)} if reads_too else {})}
    assert regions_from_json(regions_to_json(regions)) == regions
    func = stated_regions(function_of_tensors([a], [b]), regions)
    assert plain_tensors(func) == [a, b]
    x = RNG.uniform(-1, 1, whole if reads_too else shape).astype("float32")
    box = tuple(slice(first, first + n) for first, n in zip(begins, shape, strict=True))
    given_out = RNG.uniform(-1, 1, whole).astype("float32")
    wanted = given_out.copy()
    wanted[box] = (x[box] if reads_too else x) * 2 + 1
    by_blocks = given_out.copy()
    interpret(func, [x, by_blocks])
    kernel = build(kernel_of(func, "f", Target("llvm")).func, target="llvm")
    by_schedule = given_out.copy()
    kernel(x, by_schedule)
    np.testing.assert_allclose(by_blocks, wanted, rtol=1e-6)
    np.testing.assert_allclose(by_schedule, wanted, rtol=1e-6)


@pytest.mark.parametrize("promised", [True, False])
def test_the_context_says_whether_arguments_may_overlap(promised: bool) -> None:
    """As it does for kernels without parts; a function of its own would promise that they don't."""
    func = function_of_tensors([a := te.placeholder((4,), name="a")], [te.compute((4,), lambda i: a[i] + 1.0, name="b")])
    with tvm.transform.PassContext(config={"tir.noalias": promised}):
        made = [kernel_of(one, "f", Target("llvm")).func for one in (func, stated_regions(func, {1: ((8,), (2,))}))]
    assert [bool(one.attrs["tir.noalias"]) for one in made] == [promised, promised]


def test_loops_that_somebody_scheduled_have_no_parts() -> None:
    schedule = tir.Schedule(function_of_tensors([a := te.placeholder((4,), name="a")], [te.compute((4,), lambda i: a[i] + 1.0, name="b")]))
    schedule.parallel(schedule.get_loops(schedule.get_block("b"))[0])
    with pytest.raises(DeclarationError, match="its loops were scheduled by hand"):
        stated_regions(schedule.mod["main"], {1: ((8,), (0,))})

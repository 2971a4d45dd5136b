"""placeholder, compute, variables, axes, tags."""

from __future__ import annotations

import functools

import pytest

from tensorexpr import te
from tensorexpr.errors import DeclarationError
from tensorexpr.te import Tensor, TensorSlice
from tensorexpr.tir.expr import Div, IntImm, IterVar, ProducerLoad, Range, Reduce, SizeVar


def names(tensor: Tensor) -> list[str]:
    return [axis.name for axis in tensor.op.axis]


def test_placeholder_has_defaults_and_a_vector_may_be_a_number() -> None:
    A = te.placeholder(8)
    assert (A.name, A.dtype, A.ndim, str(A)) == ("placeholder", "float32", 1, "Tensor(shape=[8], op.name=placeholder)")
    assert A.shape[0] is IntImm("int32", 8)
    assert A.op.output(0) is A and A.op.axis == () and A.op.input_tensors == ()


def test_extents_beyond_int32_are_int64_and_so_are_their_axes() -> None:
    A = te.placeholder((1 << 31, 2), name="A")
    B = te.compute((1 << 31, 2), lambda i, j: A[i, j] * 2.0)
    assert [axis.dtype for axis in B.op.axis] == ["int64", "int32"]
    assert te.placeholder(((1 << 31) - 1,)).shape[0].dtype == "int32"


def test_axes_are_named_after_parameters() -> None:
    A = te.placeholder((4, 5, 6), name="A")
    assert names(te.compute((4, 5, 6), lambda y, x, c: A[y, x, c])) == ["y", "x", "c"]
    assert names(te.compute((4, 5, 6), lambda *i: A(*i))) == ["i0", "i1", "i2"]
    assert names(te.compute((4, 5, 6), lambda n, *i: A(n, *i))) == ["n", "i0", "i1"]
    assert names(te.compute((4, 5, 6), lambda *i: A(*i), varargs_names=["p", "q", "r"])) == ["p", "q", "r"]
    assert names(te.compute((4,), lambda i, scale=2.0: A[i, 0, 0] * scale)) == ["i"]
    assert names(te.compute((4,), functools.partial(lambda j, i: A[i, j, 0], 3))) == ["i"]


def test_a_matmul_knows_its_axes_inputs_and_body() -> None:
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((6, 5), name="B")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C", tag="matmul", attrs={"FLOP": 7, "names": ["i"]})
    assert C.op.input_tensors == (A, B) and C.op.reduce_axis == (k,)
    assert isinstance(C.op, te.ComputeOp) and isinstance(C.op.body[0], Reduce)
    assert (C.op.tag, dict(C.op.attrs)) == ("matmul", {"FLOP": 7, "names": ("i",)})
    assert str(C.op) == repr(C.op) and str(C.op).startswith("compute(C, [i, j], [")


def test_inputs_stand_in_order_of_first_appearance_inner_reads_first() -> None:
    values, index = te.placeholder((9,), name="values"), te.placeholder((4,), "int32", name="index")
    gathered = te.compute((4,), lambda i: values[index[i]] + values[0])
    assert gathered.op.input_tensors == (index, values)


def test_several_outputs_are_tensors_of_one_operation() -> None:
    A = te.placeholder((4,), name="A")
    twice, more = te.compute((4,), lambda i: (A[i] * 2.0, (A[i] + 1.0).astype("float64")), name="pair")
    assert twice.op is more.op and twice.op.num_outputs == 2
    assert (twice.name, more.name, more.value_index, more.dtype) == ("pair.v0", "pair.v1", 1, "float64")
    assert te.compute((4,), lambda i: more[i]).op.input_tensors == (more,)
    single = te.compute((4,), lambda i: [A[i]])
    assert isinstance(single, Tensor)


def test_a_number_is_a_body() -> None:
    assert te.compute((3,), lambda i: 0).dtype == "int32"
    assert te.compute((3,), lambda i: 0.0).dtype == "float32"
    assert te.compute((3,), lambda i: i > 1).dtype == "bool"


def test_indexing_gives_elements_slices_and_chains() -> None:
    A = te.placeholder((4, 5), name="A")
    i = te.var("i")
    row = A[i]
    assert isinstance(row, TensorSlice) and row.dtype == "float32"
    assert row[2] is A[i, 2] and A(i, 2) is A[i, 2] and A[[i, 2]] is A[i, 2]
    assert isinstance(A[i, 2], ProducerLoad)
    k = te.reduce_axis((0, 5))
    assert A[i, k] is A[i, k.var]


def test_rank_0_is_an_element_and_a_tensor() -> None:
    s = te.placeholder((), name="s")
    assert s() is s[()]
    A = te.placeholder((4,), name="A")
    used = te.compute((4,), lambda i: A[i] / s)
    assert isinstance(used.op, te.ComputeOp) and isinstance(used.op.body[0], Div) and used.op.body[0].b is s()
    assert te.compute((), lambda: s * 2.0).shape == ()


def test_symbolic_shapes_keep_their_variables() -> None:
    n, m = te.var("n"), te.size_var("m")
    A = te.placeholder((n, m * 2), name="A")
    B = te.compute((n, m * 2), lambda i, j: A[i, j] + 1.0)
    assert B.shape[0] is n and B.shape[1] is A.shape[1]
    assert isinstance(m, SizeVar) and (te.var().name, te.size_var().name) == ("tindex", "size")


def test_reduce_axis_takes_bounds_or_a_range() -> None:
    axis = te.reduce_axis((2, 9), "k")
    assert axis.dom is not None and axis.iter_type == IterVar.COMM_REDUCE
    assert axis.dom.min is IntImm("int32", 2) and axis.dom.extent is IntImm("int32", 7)
    whole = Range.from_min_extent(0, 5)
    assert te.reduce_axis(whole).dom is whole and te.reduce_axis(whole).name == "rv"


def test_tag_scope_tags_what_is_declared_inside() -> None:
    A = te.placeholder((4,), name="A")

    @te.tag_scope("injective")
    def doubled() -> Tensor:
        made: Tensor = te.compute((4,), lambda i: A[i] * 2.0)
        return made

    with te.tag_scope(tag="conv"):
        inside = te.compute((4,), lambda i: A[i])
    assert (inside.op.tag, doubled().op.tag, te.compute((4,), lambda i: A[i]).op.tag) == ("conv", "injective", "")
    with pytest.raises(DeclarationError), te.tag_scope("outer"):
        te.compute((4,), lambda i: A[i, 0])
    assert te.compute((4,), lambda i: A[i]).op.tag == ""


def test_tensors_are_themselves() -> None:
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((3, 4), name="B")
    assert (A == A, A == B, B in [A, B], A.op.same_as(A.op), A.op.same_as(B.op)) == (True, False, True, True, False)
    assert str(A == A) == "True" and A.op.output(0) == A

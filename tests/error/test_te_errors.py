"""One test for each message of the declaration layer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.errors import ArgumentError, DeclarationError, RecordError, TypeMismatchError
from tensorexpr.te import Tensor
from tensorexpr.te.evaluation import compile_program
from tensorexpr.te.reference import evaluate, evaluate_points
from tensorexpr.te.serialize import dag_from_json, dag_to_json, dumps, loads
from tensorexpr.testing import Tolerance, assert_close
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import Broadcast, Ramp, Var
from tensorexpr.tir.intrin import call_pure_extern

A = te.placeholder((4, 5), name="A")
V = te.placeholder((4,), name="V")
k = te.reduce_axis((0, 4), "k")
q = te.reduce_axis((0, 5), "q")
i = te.var("i")
n = te.var("n")
N = te.placeholder((n, n), name="N")
pair = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda a, b: (const(0, a), const(0, b)), "pair")


def only_keyword(*, i: int) -> int:
    return i


def nested_tags() -> None:
    with te.tag_scope("a"), te.tag_scope("b"):
        pass


def tag_inside_scope() -> None:
    with te.tag_scope("a"):
        te.compute((4,), lambda i: V[i], tag="b")


def scalar_access(value: Any) -> Tensor:
    made: Tensor = te.compute((4,), lambda i: value)
    return made


DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "vector elements": (lambda: te.placeholder((4,), "float32x4", "P"), "placeholder P: elements are scalars, not float32x4"),
    "unknown dtype": (lambda: te.placeholder((4,), "float31"), "'float31' is no dtype; known"),
    "fractional extent": (lambda: te.placeholder((4, 2.5), name="P"), "placeholder P: the extent 2.5 is no integer"),
    "negative extent": (lambda: te.compute((-1,), lambda i: 0, name="C"), "compute C: the extent -1 is negative"),
    "keyword-only": (lambda: te.compute((4,), only_keyword), "the function has keyword-only parameters"),
    "too few indices": (
        lambda: te.compute((4, 5), lambda i: V[i], name="C"),
        r"compute C: the shape has 2 dimensions, the function takes 1 indices \(i\)",
    ),
    "too many indices": (lambda: te.compute((4,), lambda i, j: V[i]), r"the shape has 1 dimensions, the function takes 2 indices \(i, j\)"),
    "varargs names": (lambda: te.compute((4, 5), lambda *i: A(*i), varargs_names=["x"]), "varargs_names has 1 names for 2 axes: x"),
    "no result": (
        lambda: te.compute((4,), lambda i: None, name="C"),  # type: ignore[arg-type, return-value]
        "compute C: the function returned None; it must return the element's expression",
    ),
    "vector body": (lambda: scalar_access(Broadcast(const(1.0), 4)), "is float32x4; elements are scalars"),
    "nothing at all": (lambda: te.compute((4,), lambda i: ()), "the function returned no expression"),
    "tag in a scope": (tag_inside_scope, r"tag 'b' inside tag_scope\('a'\); drop one of the two"),
    "nested scopes": (nested_tags, r"tag_scope\('b'\) inside tag_scope\('a'\): scopes can't be nested"),
    "domain": (lambda: te.reduce_axis(4, "r"), r"reduce_axis r: the domain is \(begin, end\), not 4"),
    "float domain": (lambda: te.reduce_axis((0, 4.5), "r"), "reduce_axis r: the domain is made of integers, not float32"),
    "backward domain": (lambda: te.reduce_axis((4, 1), "r"), "reduce_axis r: the domain ends 3 before it begins"),
    "no element": (lambda: te.exp(A), r"tensor A has 2 dimensions and is no scalar; write an element such as A\[i0, i1\]"),
    "slice as element": (lambda: te.exp(A[i]), "tensor A has 2 dimensions, indexed with 1"),
    "too many element indices": (lambda: A[i, i, i], "tensor A has 2 dimensions, indexed with 3"),
    "Python slice": (lambda: te.exp(A[0:2, 0]), "tensor A can't be indexed by a Python slice"),
    "float index": (lambda: A[0.5, 0], r"tensor A is indexed with 0.5 \(float32\); an index is a scalar integer"),
    "vector index": (lambda: A[Ramp(i, const(1), 4), 0], "an index is a scalar integer"),
    "output number": (lambda: V.op.output(1), r"operation V has 1 output\(s\), so no output 1"),
    "broadcast": (lambda: A + V, r"T_add: shapes \[4, 5\] of A and \[4\] of V can't be broadcast"),
    "inner reduction": (
        lambda: te.compute((4,), lambda i: te.sum(A[i, q], axis=q) * 2.0),
        "a reduction stands inside a larger expression, but it must be the whole body",
    ),
    "mixed outputs": (lambda: te.compute((4,), lambda i: (te.sum(A[i, q], axis=q), V[i])), "some outputs are reductions and some are not"),
    "part of a tuple": (lambda: te.compute((4,), lambda i: pair((A[i, q], A[i, q]), axis=q)[0]), "1 outputs of a reduction of 2 values"),
    "swapped tuple": (lambda: te.compute((4,), lambda i: pair((A[i, q], A[i, q]), axis=q)[::-1]), "values of different reductions"),
    "axis twice": (
        lambda: te.compute((4,), lambda i: te.sum(A[k, q], axis=[q, k, q])),
        "axis q is reduced over twice or is a spatial axis too",
    ),
    "combiner results": (
        lambda: te.comm_reducer(lambda x, y: (x[0], x[1], x[1]), lambda a, b: (0, 0))((V[k], V[k]), axis=k),
        "a reducer of 2 values needs as many results",
    ),
    "combiner dtype": (
        lambda: te.comm_reducer(lambda x, y: x > y, lambda t: const(0, t))(V[k], axis=k),
        "the combiner makes bool out of float32",
    ),
    "init values": (lambda: pair((V[k], V[k]), axis=k, init=(0.0,)), "pair of 2 values has 1 init values"),
    "no axis": (lambda: te.sum(V[k], axis=[]), "sum over no axis"),
    "spatial axis": (
        lambda: te.sum(V[k], axis=V.op.axis or scalar_access(0).op.axis),
        "sum over i, which is no reduction axis; make it with te.reduce_axis",
    ),
    "truth value": (lambda: te.compute((4,), lambda i: V[i] if V[i] > 0.0 else 0.0), "has no truth value"),
    "no variable": (lambda: compile_program([i + 1]).run({}), "the variable i has no value"),
    "no value": (lambda: compile_program([Ramp(i, const(1), 4)]).run({i: np.int32(1)}), "Ramp .* has no value in a tensor computation"),
    "extern": (
        lambda: compile_program([call_pure_extern("float32", "my_sine", 1.0)]).run({}),
        "tir.call_pure_extern .* can't be evaluated without compiling it",
    ),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declaration(name: str) -> None:
    declare, message = DECLARATIONS[name]
    with pytest.raises((DeclarationError, TypeMismatchError), match=message):
        declare()


zeros = np.zeros((4, 5), np.float32)
doubled = te.compute((4, 5), lambda i, j: A[i, j] * 2.0)
gathered = te.compute((4,), lambda i: V[te.placeholder((4,), "int32", name="index")[i]])
EVALUATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "no array": (lambda: evaluate([doubled], {}), "no array for placeholder A"),
    "dtype": (
        lambda: evaluate([doubled], {A: zeros.astype(np.float64)}),
        "placeholder A is float32 with 2 dimensions, its array float64 with 2",
    ),
    "rank": (lambda: evaluate([doubled], {A: zeros[0]}), "placeholder A is float32 with 2 dimensions, its array float32 with 1"),
    "shape": (lambda: evaluate([doubled], {A: zeros[:3]}), "an extent of placeholder A is 4 = 4, its array has 3"),
    "symbol": (lambda: evaluate([N], {N: zeros}), "an extent of placeholder N is n = 4, its array has 5"),
    "points": (
        lambda: evaluate_points(doubled, {A: zeros}, np.array([1, 2])),
        r"points of compute have shape \[2\]; they need one row of 2 indices",
    ),
    "outside": (lambda: evaluate_points(doubled, {A: zeros}, np.array([[0, 5]])), r"a point lies outside compute, whose shape is \[4, 5\]"),
}


@pytest.mark.parametrize("name", EVALUATIONS)
def test_evaluation(name: str) -> None:
    run, message = EVALUATIONS[name]
    with pytest.raises(ArgumentError, match=message):
        run()


def test_reading_out_of_bounds_while_evaluating() -> None:
    index = gathered.op.input_tensors[0]
    with pytest.raises(DeclarationError, match=r"V\[index\[i\]\] reads index 9 of dimension 0, whose extent is 4"):
        evaluate([gathered], {index: np.array([0, 9, 1, 2], np.int32), V: zeros[:, 0]})


C = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="C", attrs={"x": [A]})
total = te.compute((4,), lambda i: te.sum(A[i, q], axis=q), name="total")


def changed(path: str, value: Any, tensor: Tensor = C) -> Any:
    """The record of a computation with one place changed; a path is keys joined by dots."""
    record = copy.deepcopy(dag_to_json([tensor]))
    *keys, last = [int(key) if key.lstrip("-").isdigit() else key for key in path.split(".")]
    target = record
    for key in keys:
        target = target[key]
    target[last] = value
    return record


def row(record_of: Tensor, kind: str, which: int = 0) -> int:
    rows = dag_to_json([record_of])["ops"][-1]["rows"]
    return [number for number, item in enumerate(rows) if item[0] == kind][which]


RECORDS: dict[str, tuple[Any, str]] = {
    "fields": ({"version": 1}, "a computation is an object with the fields version, symbols, ops, outputs"),
    "version": (changed("version", 2), "the computation has version 2; this program reads 1"),
    "no list": (changed("ops", {}), "operations are a list of at most 4096"),
    "symbol": (changed("symbols", [["n", "int32"]]), r"a symbol is \['Var' or 'SizeVar', name, dtype\]"),
    "name": (changed("ops.0.name", 7), "a name is a string of at most 256 characters"),
    "dtype": (changed("ops.0.dtype", "float31"), "'float31' is no dtype"),
    "element dtype": (changed("ops.0.dtype", "handle"), "'handle' is no dtype of an element"),
    "tensor": (changed("outputs", [[0]]), r"a tensor is \[operation, output\]"),
    "no tensor": (changed("outputs", [[2, 0]]), r"no tensor \[2, 0\]: there are 2 operations so far"),
    "kind": (changed("ops.0.kind", "loop"), "an operation has the kind placeholder, compute"),
    "extent": (changed("ops.0.rows.0", ["FloatImm", "float32", 4.0]), "the extent .* is no integer expression"),
    "negative extent": (changed("ops.0.rows.0", ["IntImm", "int32", -4]), "the extent -4 is negative"),
    "stray variable": (changed("ops.0.rows.0", ["Var", "n", "int32"]), "the variable n is neither an axis nor a symbol"),
    "attributes": (changed("ops.1.attrs", []), "attributes are an object"),
    "attribute": (changed("ops.1.attrs.x", {"y": 1}), "an attribute is a number, a string, a tensor or a list of them"),
    "spatial axis": (changed(f"ops.1.rows.{row(C, 'IterVar')}.3", 2), "axis i is no spatial axis from 0"),
    "axis dtype": (changed(f"ops.1.rows.{row(C, 'Var')}.2", "int64"), "axis i is int64, its extent int32"),
    "axis twice": (changed("ops.1.axis.1", dag_to_json([C])["ops"][1]["axis"][0]), "compute C has an axis twice"),
    "reduction axis": (changed(f"ops.1.rows.{row(total, 'IterVar', -1)}.3", 0, total), "axis q is no reduction axis"),
    "indices": (changed(f"ops.1.rows.{row(C, 'ProducerLoad')}.2", []), "tensor A has 2 dimensions with integer indices, not 0 indices"),
    "combiner": (changed(f"ops.1.rows.{row(total, 'Add')}", ["ProducerLoad", [0, 0], [0, 0]], total), "a combiner reads a tensor"),
    "definition": (changed("ops.1.rows.1", ["IntImm", "int32", 99]), "operation 1 is no legal definition: compute C: .* reads index"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_record(name: str) -> None:
    record, message = RECORDS[name]
    with pytest.raises(RecordError, match=message):
        dag_from_json(record)


def test_record_with_a_vector_index() -> None:
    record = dag_to_json([C])
    record["ops"][1]["rows"][7:] = [["Ramp", 0, 1, 4], ["ProducerLoad", [0, 0], [7, 7]], ["Add", 8, 8]]
    with pytest.raises(RecordError, match="A is read at a vector of indices"):
        dag_from_json(record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * (1 << 21), "a computation is a string of at most 1048576 characters"),
        ("{", "the computation is no JSON"),
        ("[NaN]", "NaN is no JSON number"),
    ],
)
def test_line(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        loads(text)


def test_attributes_that_have_no_json() -> None:
    with pytest.raises(RecordError, match=r"attribute f of C is .*; JSON has a place for numbers, strings, tensors and lists"):
        dumps([te.compute((4,), lambda i: V[i], name="C", attrs={"f": len})])
    with pytest.raises(RecordError, match="is no tensor of the computation"):
        dumps([te.compute((4,), lambda i: V[i], name="C", attrs={"f": A})])


def test_differences_name_the_worst_element() -> None:
    with pytest.raises(AssertionError, match=r"C differs at 2 of 3 elements; worst at \[2\]: 9.0, expected 3.0"):
        assert_close(np.array([1.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0]), Tolerance(0.0, 0.1), "C")
    with pytest.raises(AssertionError, match=r"result is float64\[1\], expected float32\[1\]"):
        assert_close(np.zeros(1), np.zeros(1, np.float32), Tolerance(0.0, 0.1))


def test_vars_are_immutable() -> None:
    with pytest.raises(AttributeError, match="variable x is immutable"):
        Var("x").name = "y"

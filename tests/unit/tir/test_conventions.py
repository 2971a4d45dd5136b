"""Nodes as programs write them: Python numbers and lists, TVM's keywords, what their fields hold, types of operators."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import ir
from tensorexpr import tir as language
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.runtime import DataType, ObjectPath, convert

tir: Any = language  # what constructors take is more than what fields hold
x = tir.Var("x")
B = tir.decl_buffer((4, 8), "float32", "B")


def test_fields_hold_constants() -> None:
    ramp = tir.Ramp(1, 2, 10)
    assert (ramp.base.value, ramp.lanes, ramp.lanes.value, ramp.dtype) == (1, 10, 10, "int32x10")
    loop = tir.For(x, 0, 16, tir.ForKind.SERIAL, tir.Evaluate(1), None, {"k": 2}, span=None)
    assert loop.min.value == 0 and loop.extent == 16 and loop.annotations["k"] == 2
    assert tir.BufferLoad(B, [1, x]) is B[1, x]
    call = tir.Call("float32", "tir.exp", [tir.const(1.0)])
    assert call.op == "tir.exp" and call.op.name == "tir.exp" and ir.Op.get("tir.exp").same_as(call.op)
    assert tir.Shuffle([x, x], [0, 1]).indices[1].value == 1
    seq = tir.SeqStmt([tir.Evaluate(0), tir.SeqStmt([tir.Evaluate(1), tir.Evaluate(2)])])
    assert len(seq) == 3 and seq[2].value == 2
    assert seq.span is None and x.span is None and x.same_as(x)
    with pytest.raises(DeclarationError, match="at least two"):
        tir.SeqStmt([tir.Evaluate(0)])
    with pytest.raises(TypeError, match="no statement"):
        tir.For(x, 0, 16, tir.ForKind.SERIAL, "body")


def test_ranges_have_ends() -> None:
    assert tir.Range(3, 10).extent.value == 7
    assert tir.Range(5).min.value == 0
    assert tir.Range(begin=2, end=x, span=None).extent is x - 2
    assert tir.Range.from_min_extent(3, 10).extent.value == 10
    assert tir.IterVar((0, 3), "i", 0).var.name == "i"


def test_division_by_zero_is_refused() -> None:
    for divide in (operator.floordiv, operator.mod, tir.truncdiv, tir.indexmod):
        with pytest.raises(DeclarationError, match="has no result"):
            divide(x, 0)


def test_functions_take_buffers_and_lists() -> None:
    func = tir.PrimFunc([x, B], tir.Evaluate(x), ret_type=None, attrs={"global_symbol": "f"})
    assert func.buffer_map[func.params[1]] is B and func.attrs["global_symbol"] == "f"


@pytest.mark.parametrize(("index", "text"), [(slice(0, 2), "B[0:2, x]"), (slice(None), "B[0:4, x]"), (slice(0, 4, 2), "B[0:4:2, x]")])
def test_slices_are_regions_or_vectors(index: Any, text: str) -> None:
    assert str(B[index, x]) == text


def test_nodes_do_not_iterate() -> None:
    for endless in (lambda: list(B), lambda: 3 in B):
        with pytest.raises(TypeError):
            endless()


PAIRS = [
    ("int8", 1, "int32"), ("uint8", -1, "int32"), ("int64", 1, "int64"), ("uint32", 1, "uint32"), ("float16", 1, "float16"),
    ("float16", 1.5, "float32"), ("bfloat16", 1.5, "float32"), ("float64", 1.5, "float64"), ("int32", 2**40, "int64"),
    ("bool", 1, "int32"), ("int8", True, "int8"), ("int32", 1.5, "float32"), ("int32x4", 1, "int32x4"),
    ("int8", "uint8", "uint8"), ("int8", "int32", "int32"), ("int16", "uint8", "int16"), ("int32", "uint32", "uint32"),
    ("int64", "uint32", "int64"), ("bool", "int8", "int8"), ("int64", "float16", "float16"), ("float16", "float32", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.sub])
@pytest.mark.parametrize(("left", "right", "dtype"), PAIRS)
def test_promotion(op: Callable[[Any, Any], Any], left: str, right: Any, dtype: str) -> None:
    """As TVM has it, on either side."""
    a, b = tir.Var("a", left), tir.Var("b", right) if isinstance(right, str) else right
    assert op(a, b).dtype == op(b, a).dtype == dtype


def test_constants_are_checked_and_rounded() -> None:
    makers: list[Any] = [lambda: tir.IntImm("int8", 200), lambda: tir.const(-1, "uint8"), lambda: tir.FloatImm("int32", 1.0)]
    for make in makers:
        with pytest.raises(TypeMismatchError):
            make()
    with pytest.raises(TypeMismatchError, match="beyond the range of float16"):
        tir.const(1e6, "float16")
    assert tir.const(3.4e39).dtype == "float64" and tir.const(2**40).dtype == "int64"
    assert tir.FloatImm("float32", 0.1) is tir.const(0.1, "float32")
    assert tir.const(448.0, "e4m3_float8").value == 448.0
    assert bool(tir.const(3) == 3) and not bool(tir.const(3) != 3) and not bool(x == 3)


def test_repr_is_code() -> None:
    assert repr(x + 1) == "x + 1" and repr(tir.Evaluate(x)).splitlines()[-1] == "T.evaluate(x)"
    assert repr(x == 1) == "x == 1" and (x == 1).dtype == "bool"
    assert "<pre" in (x + 1)._repr_html_()


def test_pickle_and_copies_keep_what_is_shared() -> None:
    func = tir.PrimFunc([x, B], tir.Evaluate(x + 1))
    mod = tvm.IRModule({"main": func})
    var, expr = pickle.loads(pickle.dumps((x, x * 2)))
    assert expr.a is var and var is not x
    ir.assert_structural_equal(pickle.loads(pickle.dumps(mod)), mod)
    assert copy.deepcopy(x + 1) is x + 1 and copy.copy(func) is func
    other = copy.copy(mod)
    other["second"] = func
    assert "second" not in mod


def test_saved_nodes_are_read_again() -> None:
    buffer = tir.decl_buffer((4, 8), axis_separators=[1], buffer_type="auto_broadcast")
    reducer = tir.CommReducer([x], [tir.Var("y")], [x], [tir.const(0)])
    reduction = tir.Reduce(reducer, [tir.const(1)], [tir.IterVar((0, 4), "k", 2)], None, 0)
    for node in (x + 1, tir.PrimFunc([x, buffer], tir.Evaluate(x)), tvm.IRModule({"main": tir.PrimFunc([], tir.Evaluate(1))}), reduction):
        ir.assert_structural_equal(ir.load_json(ir.save_json(node)), node, map_free_vars=True)


def test_where_programs_differ() -> None:
    def differ(a: Any, b: Any) -> str:
        found = ir.base.get_first_structural_mismatch(a, b)
        assert found is not None
        return f"{found[0]} {found[1]}"

    one, two = tir.Evaluate(x + 1), tir.Evaluate(x + 2)
    assert differ(one, two) == "<root>.value.b.value <root>.value.b.value"
    assert differ(tir.SeqStmt([one, one, one]), tir.SeqStmt([one, one])) == "<root>.seq[2] <root>.seq[<missing element #2>]"
    y = tir.Var("y", "float32")
    assert differ(tir.PrimFunc([x], one), tir.PrimFunc([y], one)) == "<root>.params[0].dtype <root>.params[0].dtype"
    modules = [tvm.IRModule({"f": tir.PrimFunc([], tir.Evaluate(n))}) for n in (1, 2)]
    assert differ(*modules).split()[0] == '<root>.functions[I.GlobalVar("f")].body.value.value'
    assert ir.base.get_first_structural_mismatch(one, one) is None
    assert ObjectPath.root().attr("a").is_prefix_of(ObjectPath.root().attr("a").array_index(1))


def test_python_values_as_nodes() -> None:
    assert convert([1, 2])[1].value == 2 and isinstance(convert((1,)), ir.Array)
    assert convert("text") == "text" and convert(None) is None and convert(x) is x
    assert convert({"a": 1})["a"].value == 1 and isinstance(convert({}), ir.Map)
    assert (DataType("int8x4").bits, DataType("int8x4").lanes, DataType("float32").type_code) == (8, 4, 2)
    with pytest.raises(TypeError):
        convert(object())


def test_errors_by_tvms_classes() -> None:
    for cls in (tvm.TVMError, tvm.error.InternalError, RuntimeError, ValueError, TypeError):
        with pytest.raises(cls):
            tir.Add(x, tir.const(1.0))


def test_flattened_buffers() -> None:
    assert [int(extent) for extent in tir.decl_buffer([16, 32]).get_flattened_buffer().shape] == [512]
    cut = tir.decl_buffer([4, 16, 32], axis_separators=[2]).get_flattened_buffer()
    assert str(cut.shape) == "(64, 32)" and str(cut.axis_separators) == "(1,)"
    twice = tir.decl_buffer([4, 8, 2], axis_separators=[1, 1])
    assert [int(extent) for extent in twice.get_flattened_buffer().shape] == [4, 1, 16] and str(twice.offset_of([1, 2, 1])) == "[1, 0, 5]"
    assert str(tir.decl_buffer((x, 8), elem_offset=100).offset_of([2, 3])) == "[119]"
    with pytest.raises(ValueError, match="no increasing positions"):
        tir.decl_buffer([1], axis_separators=[1, 2])


def test_offsets_of_indices_that_came_from_one_number() -> None:
    """Quotients meet their remainders, by symbols too, and in the forms that simplifying one of the two may have given them."""
    n, a, b, k, i = (tir.SizeVar(name) for name in ("n", "a", "b", "k", "i"))
    A = tir.decl_buffer((x, n))
    assert str(A.offset_of((a // n + b // n, a % n + b % n))) == "[a + b]"
    assert str(A.offset_of((a % k // n, a % k % n + a // k * k))) == "[a]"
    B = tir.decl_buffer((16, 14))
    assert str(B.offset_of(((i * 49 + k) // 14, (i * 7 + k) % 14))) == "[i * 49 + k]"
    assert str(A.offset_of((a // n, b % n))) == "[a // n * n + b % n]"


def test_constants_of_narrow_integers() -> None:
    for dtype in ("int8", "uint8", "uint32"):
        seven, three, zero = (tir.const(value, dtype) for value in (7, 3, 0))
        assert int(tir.floordiv(seven, three)) == int(tir.truncdiv(seven, three)) == 2
        for remainder in (tir.floormod, tir.truncmod):
            assert not isinstance(remainder(seven, three), tir.IntImm)
            assert tvm.arith.Analyzer().simplify(remainder(seven, three)) is tir.const(1, dtype)
        for division in (tir.floordiv, tir.truncdiv, tir.floormod, tir.div):
            with pytest.raises(tvm.TVMError, match="division by 0"):
                division(seven, zero)
    with pytest.raises(tvm.TVMError, match="below 0, where uint8 begins"):
        tir.const(0, "uint8") - tir.const(7, "uint8")
    assert (tir.const(3, "uint8") - tir.const(7, "uint8")).value == 252  # as machines do
    assert int(tir.const(3, "int8") - tir.const(7, "int8")) == -4


def test_prefetch_is_a_hint() -> None:
    stmt = tir.Prefetch(B, [tir.Range(0, 2), tir.Range(0, 8)])
    assert str(stmt).splitlines()[-1] == "T.prefetch(B, [T.Range(0, 2), T.Range(0, 8)])"


def test_dependences_of_blocks() -> None:
    from tensorexpr.tir.block_scope import DepKind

    zero = tir.IterVar((0, 4), "vi", 0)
    point = [tir.BufferRegion.from_point(B, [zero.var, 0])]
    blocks = [tir.Block([zero], reads, writes, name, tir.Evaluate(0)) for name, reads, writes in (("a", [], point), ("b", point, []))]
    realized = [tir.BlockRealize([n], True, block) for n, block in enumerate(blocks)]
    root = tir.Block([], [], [], "root", tir.SeqStmt(realized))
    info = tir.BlockDependenceInfo(tir.PrimFunc([B], tir.BlockRealize([], True, root)))
    (found,) = info.get_block_scope(info.get_sref(root)).get_deps_by_dst(info.get_sref(blocks[1]))
    assert found.kind == DepKind.RAW and found.src is info.get_sref(blocks[0])


def test_operations_are_registered() -> None:
    ir.register_op_attr("tir.my_twice", "TCallEffectKind", tir.CallEffectKind.Pure)
    call = tir.call_intrin("float32", "tir.my_twice", tir.const(1.0))
    assert str(call) == "T.my_twice(T.float32(1.0))" and ir.Op.get("tir.my_twice").get_attr("TCallEffectKind") == tir.CallEffectKind.Pure
    with pytest.raises(ValueError, match="no operation"):
        ir.Op.get("tir.nobody_knows")
    assert tir.op.exp is tir.exp and tir.generic.add is tir.add


def test_integers_of_odd_widths_are_computed_with_and_not_stored() -> None:
    assert (tir.const(2**39 - 1, "int40") + tir.const(1, "int40")).value == -(2**39)
    with pytest.raises(TypeMismatchError, match="arrays of int40 have no form in memory; use int64"):
        tvm.nd.empty((2,), "int40")
    with pytest.raises(TypeMismatchError, match=r"65505\.0 is beyond the range of float16"):
        tir.const(65505.0, "float16")


def test_buffers_of_no_parameter_tell_functions_apart() -> None:
    handle, other = tir.Var("x", "handle"), tir.Var("y", "handle")
    buffers = {handle: tir.decl_buffer((4,)), other: tir.decl_buffer((8,))}
    one, two = (tir.PrimFunc([handle], tir.Evaluate(0), buffer_map=dict(list(buffers.items())[:n])) for n in (1, 2))
    assert not tvm.ir.structural_equal(one, two)


def test_functions_of_a_module_are_called_by_their_names() -> None:
    mod = tvm.IRModule({"inner": tir.PrimFunc((tir.Var("n", "int32"),), tir.Evaluate(0))})
    call = tir.call_tir(mod.get_global_var("inner"), 3)
    assert str(call) == str(mod.get_global_var("inner")(3))
    assert "inner" in str(tir.Evaluate(call)) and call.args[0].value == 3
    with pytest.raises(TypeError, match="takes a GlobalVar"):
        tir.call_tir("inner", 3)


def test_nodes_refuse_operands_of_other_types() -> None:
    f, wide = tir.Var("f", "float32"), tir.Var("w", "int64")
    row = tir.decl_buffer((8,), "float32", "row")
    refused: list[Callable[[], Any]] = [
        lambda: tir.Ramp(x, 1, 1),
        lambda: tir.Ramp(tir.Ramp(x, 1, 4), 1, 4),
        lambda: tir.Broadcast(x, 0),
        lambda: tir.Let(x, f, x),
        lambda: tir.Not(x),
        lambda: tir.LetStmt(x, wide, tir.Evaluate(x)),
        lambda: tir.AssertStmt(x, "m", tir.Evaluate(x)),
        lambda: tir.For(f, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(1)),
        lambda: tir.For(x, 0, wide, tir.ForKind.SERIAL, tir.Evaluate(1)),
        lambda: tir.MatchBufferRegion(row, tir.decl_buffer((16,), "float32")[0:4]),
        lambda: tir.MatchBufferRegion(row, tir.decl_buffer((16, 16), "float32")[0:2, 0:8]),
        lambda: tir.MatchBufferRegion(row, tir.decl_buffer((16,), "int32")[0:8]),
        lambda: tir.all(),
        lambda: tir.any(),
        lambda: tvm.ir.Op.get("tir.nope"),
    ]
    for make in refused:
        with pytest.raises(DeclarationError):
            make()
    assert tir.Ramp(x, wide, 4).stride.dtype == "int32"
    assert tir.For(wide, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(1)).extent.dtype == "int64"


def test_bits_are_counted_in_the_dtype_of_the_expression() -> None:
    u = tir.Var("u", "uint8")
    for made in (u & 1, 1 | u, u ^ 3, u << 1, 1 << u, u >> 2):
        assert made.dtype == "uint8"
    with pytest.raises(TypeMismatchError, match="-1 does not fit uint8"):
        u & -1
    assert x << 0 is x
    assert tir.reinterpret("int32", x) is x


def test_float_constants_keep_what_was_written() -> None:
    """What the dtype has is one constant however it came about; any other decimal stays as it was written."""
    assert tir.const(3.38953139e38, "bfloat16").value == 3.38953139e38
    assert tir.const(1 / 3, "float32").value == 1 / 3
    assert str(tir.const(1 / 3, "float32")) == "T.float32(0.3333333333333333)"
    assert tir.const(np.float32(0.1)) is tir.const(0.1) is tir.const(0.10000000149011612)
    assert tir.const(0.10009765625, "bfloat16").value == 0.1
    assert tir.max_value("e4m3_float8").value == 448.0


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_constant_becomes_a_float_with_one_rounding(sign: int) -> None:
    value = sign * (2**60 + 2**36 + 1)  # a little above the tie, which float64 doesn't see
    made: Any = language.const(value, "int64").astype("float32")
    assert made.value == float(np.float32(np.int64(value))) == sign * (2**60 + 2**37)
    wide: Any = language.const(value, "int64").astype("float64")
    assert wide.value == float(value)


@pytest.mark.parametrize("text", ["boolx", "boolx0", "boolxfoo", "boolx-4", "uint1xvscale4", "float32\n"])
def test_lanes_of_a_dtype_are_a_number(text: str) -> None:
    with pytest.raises(TypeMismatchError, match="is no dtype"):
        tir.Var("v", text)
    assert [tir.Var("v", kind).dtype for kind in ("bool", "boolx4", "uint1x4", "boolxvscalex4")] == [
        "bool",
        "boolx4",
        "boolx4",
        "boolxvscalex4",
    ]


@pytest.mark.parametrize(("index", "lanes"), [(slice(7, 0, -1), 7), (slice(7, 0, -3), 3), (slice(6, 0, -3), 2), (slice(0, 7, 3), 3)])
def test_slices_may_go_down(index: slice, lanes: int) -> None:
    load = tir.decl_buffer((8,), "float32", "A")[index]
    assert load.dtype == f"float32x{lanes}" and load.indices[0].stride.value == index.step


@pytest.mark.parametrize(("extreme", "constant"), [(tir.max, -np.inf), (tir.min, np.inf), (tir.max, 0.0), (tir.min, 6.0)])
def test_extrema_of_floats_keep_their_order(extreme: Callable[..., Any], constant: float) -> None:
    # `a > b ? a : b` of NaN is b: what stands on which side is part of the program, also where one side becomes a constant.
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    known = tir.const(constant, "float32")
    assert extreme(known, b).a is known and extreme(b, known).b is known
    replaced = tir.stmt_functor.substitute(extreme(a, b), {a: known})
    simplified: Any = tvm.arith.Analyzer().simplify(replaced)
    assert replaced.a is known and simplified.a is known
    # of integers there is one form
    assert extreme(3, x) is extreme(x, 3)

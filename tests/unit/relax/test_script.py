# mypy: ignore-errors
# Functions under @R.function are read and never run: their annotations are no types of Python's.
"""What scripts of graphs have beside statements: macros, rewriters, constants beside the text; and how mistakes are said."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ParseError
from tensorexpr.ir import VDevice, structural_equal
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.script import from_source
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T  # noqa: F401  # of texts of extents


@R.macro
def doubled(x, times=1):
    y = R.add(x, x)
    z = R.multiply(y, R.const(times, "float32"))
    return z


@R.macro(hygienic=False)
def scaled(x):
    return R.multiply(x, R.const(factor, "float32"))  # noqa: F821


@R.macro(hygienic=False)
def itself(x):
    return itself(x)


def test_macros() -> None:
    factor = 4.0

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            a = doubled(x)
            b = doubled(scaled(a), times=3)
            R.output(b)
        c = scaled(b)
        return c

    x = np.array([1.0, 2.0], "float32")
    made = relax.expr.IRModule({"main": main})
    np.testing.assert_allclose(Evaluator(made)("main", x), x * 2 * 4 * 6 * 4)
    assert [type(b.var).__name__ for b in main.body.blocks[0].bindings[:-1]] == ["DataflowVar"] * 6
    del factor


def test_macros_that_do_not_fit() -> None:
    with pytest.raises(ParseError, match=r"the macro doubled\(x, times=1\): .*missing a required argument: 'x'"):

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return doubled()

    with pytest.raises(ParseError, match="does itself use itself"):

        @R.function
        def deep(x: R.Tensor((2,), "float32")):
            return itself(x)


@R.rewriter
class Squares:
    @R.function
    def pattern(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.multiply(x, x)
            z = R.nn.relu(y)
            R.output(z)
        return z

    @R.function
    def replacement(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.square(x)
            R.output(y)
        return y


def test_rewriters() -> None:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            a = R.multiply(x, x)
            b = R.nn.relu(a)
            c = R.exp(b)
            R.output(c)
        return c

    found = Squares(main)
    assert [str(b.value.op) for b in found.body.bindings()] == ["relax.square", "relax.exp"]


def test_constants_beside_the_text() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2,)))
    values = [np.array([1, np.nan], "float32"), np.array([[1, 2]], "int64")]
    bb = relax.BlockBuilder()
    for name in ("f", "main"):
        with bb.function(name, [x] if name == "f" else [relax.Var("y", x.struct_info)]):
            bb.emit_func_output(bb.emit(relax.Tuple([relax.const(value) for value in values])))
    mod = bb.get()
    for program in (mod, mod["main"]):
        text = program.script(show_meta=True)
        again = from_source(text)
        assert structural_equal(again, program) and again.script(show_meta=True) == text
        assert program.script().endswith("# Metadata omitted. Use show_meta=True in script() method to show it.")
        with pytest.raises(ParseError, match=r"the constants of this text were left out; print it with script\(show_meta=True\)"):
            from_source(program.script())
    assert 'metadata["relax.expr.Constant"][3]' in mod.script()


def test_how_bindings_are_written() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        a = (x, x)
        R.print(x, format="{}")
        b = a[0]
        return b
"""
    shown = from_source(text).script()
    assert ") = x, x\n" in shown and '        R.print(x, format=R.str("{}"))\n' in shown and "script import tir" not in shown


MISTAKES = {
    "if c:\n        y = x": "both branches of an if end with an assignment to the same name",
    "y = R.add(x)": r"R\.add: missing a required argument: 'x2'",
    "y = R.nonsense(x)": "nonsense",
    "y = R.matmul(x, x)": "matmul",
    "while c:\n        y = x": "`While` has no place in a function of a graph",
    "y = unknown": "'unknown' is not defined here",
    'y: R.Tensor((3, 4), "float32") = x': r"y is stated as R\.Tensor\(\(3, 4\)",
    "y = x[0]": r"whose elements are taken by R\.take",
    "a, b, y = R.split(x, 2)": "3 names for R.Tuple",
    "with R.dataflow():\n        y = x\n        R.output(z)": "R.output names z, which the block doesn't define",
    "with R.dataflow():\n        z = x\n        y = z\n        R.output(y)\n    y = R.add(z, y)": "'z' is not defined here",
    "with R.dataflow():\n        y = x\n        R.output(y)\n        z = x": "nothing follows R.output in its dataflow block",
    "y = x\n    R.output(y)": "R.output stands at the end of a dataflow block",
    "R.add(x, x)\n    y = x": "relax.add has no effect but its value",
    "k = T.int32()\n    y = R.match_cast(x, R.Tensor((k, 3)))\n    k = T.int64()": "k is an int32 already",
}


@pytest.mark.parametrize("statement", MISTAKES)
def test_mistakes_have_a_place(statement: str) -> None:
    text = f'@R.function\ndef main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):\n    {statement}\n    return y\n'
    with pytest.raises(ParseError, match=MISTAKES[statement]) as caught:
        from_source(text)
    assert "<script>:" in str(caught.value) and "^" in str(caught.value)


def test_a_pad_is_read_as_it_is_printed() -> None:
    x = relax.Var("x", relax.TensorStructInfo((3, 4)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output([bb.emit(relax.op.nn.pad(x, [1, 0, 2, 2], 1.5)), bb.emit(relax.op.nn.pad(x, [1, 0, 2, 2], pad_mode="reflect"))])
    again = from_source(bb.get().script())
    assert structural_equal(again, bb.get())
    # As TVM prints it, with a constant.
    other = from_source(bb.get().script().replace("R.prim_value(T.float32(1.5))", 'R.const(1.5, "float32")'))
    assert structural_equal(other, bb.get())


def test_devices_of_values_are_read_as_they_are_printed() -> None:
    special = VDevice({"kind": "cuda", "arch": "sm_80"}, 0)
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32", "llvm:1"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(relax.op.to_vdevice(relax.op.hint_on_device(x, "llvm"), special))
        bb.emit_func_output(bb.emit(relax.op.to_vdevice(y, "llvm:2:scratch")))
    text = bb.get().script()
    assert 'vdevice="llvm:1:global"' in text and 'dst_vdevice="llvm:0:global"' in text and 'dst_vdevice="llvm:2:scratch"' in text
    again = from_source(text)
    assert structural_equal(again, bb.get()) and again.script() == text
    info = again["main"].body.blocks[0].bindings[1].var.struct_info
    assert info.vdevice == special and special.short() is None and VDevice.of("llvm:2:scratch").short() == "llvm:2:scratch"  # type: ignore[union-attr]
    with pytest.raises(ParseError, match='a device is written as "cuda", "cuda:1"'):
        from_source('@R.function\ndef main(x: R.Tensor((3,), "float32", "llvm:x")):\n    return x\n')


def test_a_dtype_of_no_name_is_that_of_the_operands() -> None:
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 8, 8), "float16"))
    w = relax.Var("w", relax.TensorStructInfo((4, 3, 3, 3), "float16"))
    given = [relax.op.nn.conv2d(x, w, out_dtype=one) for one in ("", "void", None)]
    assert all(structural_equal(one, given[-1], map_free_vars=True) for one in given)
    assert relax.op.matmul(x, x, out_dtype="").struct_info == relax.op.matmul(x, x).struct_info


def test_what_outlives_a_block_of_dataflow() -> None:
    text = """
@R.function
def main(x: R.Tensor("float32"), y: R.Tensor((3,), "float32"), z: R.Tensor((3,), "float32")):
    m = T.int64()
    with R.dataflow():
        z = R.add(y, y)
        cast = R.match_cast(x, R.Tensor((m,), "float32"))
        R.output(cast)
    with R.dataflow():
        power = z ** y
        return (power, cast, R.shape([m * 2]))
"""
    func = from_source(text)
    assert (
        func
        and func.ret_struct_info
        == from_source(
            """
@R.function
def main(a: R.Tuple(R.Tensor((3,), "float32"), R.Tensor("float32", ndim=1), R.Shape(ndim=1))):
    return a
"""
        ).ret_struct_info
    )  # m means nothing to those who call
    again = from_source(func.script())
    tvm.ir.assert_structural_equal(func, again)
    # Within the first block z was another value, which ended with it.
    values = [np.array([1, 2], "float32"), np.array([2, 3, 1], "float32"), np.array([3, 2, 5], "float32")]
    power, cast, shape = build_and_call(func, values)
    np.testing.assert_allclose(power.numpy(), values[2] ** values[1], rtol=1e-6)
    assert cast.numpy().tolist() == [1, 2] and tuple(shape) == (4,)


def build_and_call(func, values):
    """What the function gives, built."""
    executable = relax.build(tvm.IRModule({"main": func}), "llvm")
    return relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.nd.array, values))


def test_branches_that_have_effects_alone(capfd) -> None:
    func = from_source(
        """
@R.function(pure=False)
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
    if c:
        R.print(x, format="true {}")
    else:
        R.print(x, format="false")
    return x
"""
    )
    tvm.ir.assert_structural_equal(func, from_source(func.script()))
    build_and_call(func, [np.zeros(2, "float32"), np.array(False)])
    assert capfd.readouterr().out == "false\n"


def test_closures_that_hold_their_first_arguments() -> None:
    module = from_source(
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def scaled(factor: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.multiply(factor, x)

    @R.function
    def main(factor: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")):
        cls = Module
        scale = R.make_closure(cls.scaled, (factor,))
        once = R.invoke_pure_closure(scale, (x,), sinfo_args=R.Tensor((2,), "float32"))
        return R.invoke_pure_closure(scale, (once,), sinfo_args=R.Tensor((2,), "float32"))
"""
    )
    tvm.ir.assert_structural_equal(module, from_source(module.script()))
    values = np.array([3, 5], "float32"), np.array([1, 2], "float32")
    result = relax.VirtualMachine(relax.build(module, "llvm"), tvm.cpu())["main"](*map(tvm.nd.array, values))
    assert result.numpy().tolist() == [9, 50]
    assert np.asarray(Evaluator(module)("main", *values)).tolist() == [9, 50]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('def main(x: R.Tensor(("m + 1", "m * 2"), "float32")):\n    return x', "m of .* stands alone in no parameter"),
        ('def main(x: R.Tensor(("m",), "float32")):\n    m = T.int32()\n    return x', "m is an int64 already"),
        ('def main(x: R.Tensor((2,), "float32")):\n    with R.dataflow():\n        return x\n    y = x', "nothing follows a return"),
    ],
)
def test_symbols_and_returns_that_mean_nothing(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        from_source(f"@R.function\n{text}\n")


def test_private_functions_have_no_symbol() -> None:
    text = '@R.function(private=True)\ndef main(x: R.Tensor((2,), "float32")):\n    R.func_attr({"global_symbol": "main"})\n    return x\n'
    with pytest.raises(ParseError, match="private, which means that it has no global_symbol"):
        from_source(text)


def test_texts_of_extents_use_the_words_of_the_loop_language() -> None:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("T.max(n, 20)",), "float32")) -> None:
        return R.add(y, y)

    assert str(main.params[1].struct_info.shape) == "R.shape([T.max(n, 20)])"
    assert main.ret_struct_info == main.params[1].struct_info  # -> None states nothing


def test_the_bare_word_for_tuples_says_nothing_of_their_fields() -> None:
    text = "@R.function\ndef main(x: R.Tensor((3,), 'float32')) -> {}:\n    y = (x, x)\n    return y\n"
    found = tvm.script.from_source(text.format("R.Tuple"))
    assert len(found.ret_struct_info.fields) == 2
    with pytest.raises(ParseError, match="where its signature says"):
        tvm.script.from_source(text.format("R.Tuple()"))


def test_registered_functions_of_a_module() -> None:
    text = """
@I.ir_module
class Module:
    other = R.ExternFunc("o.x", R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True))

    plain = R.ExternFunc("plain")

    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        return x
"""
    mod = from_source(text)
    assert text.strip() in mod.script() and structural_equal(from_source(mod.script()), mod)
    assert structural_equal(mod["other"], relax.ExternFunc("o.x", mod["other"].stated)) and mod["plain"].global_symbol == "plain"
    with pytest.raises(ParseError, match="registered ones"):
        from_source(text.replace('R.ExternFunc("plain")', "R.prim_value(3)"))


def test_branches_end_with_dataflow_blocks() -> None:
    """What such a block gives out is the value of the branch, and another name for a value is no binding of its own."""
    text = """
@R.function
def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32"), turned: R.Prim("bool")):
    if turned:
        with R.dataflow():
            wt = R.permute_dims(w)
            out = R.matmul(x, wt)
            R.output(out)
    else:
        out = x
    return out
"""
    func = from_source(text)
    choice = func.body.blocks[0].bindings[0].value
    assert choice.false_branch.body is func.params[0] and not choice.false_branch.blocks
    assert len(choice.true_branch.blocks) == 1 and isinstance(choice.true_branch.blocks[0], relax.expr.DataflowBlock)
    assert structural_equal(from_source(func.script()), func)

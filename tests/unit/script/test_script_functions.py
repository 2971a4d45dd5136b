"""Functions and modules: decorators, what they capture, texts, and how they are shown."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.script import asscript, from_source, parse
from tensorexpr.script import tir as T
from tensorexpr.tir.printer import highlight
from tensorexpr.tir.structural_difference import assert_structural_equal
from tests import decorated_programs as programs
from tests.decorated_programs import BOTH, PRODUCT, SIZE
from tests.programs import matmul


def test_a_function_is_what_te_makes_of_it() -> None:
    assert_structural_equal(PRODUCT.with_attr("global_symbol", "main"), te.create_prim_func(matmul(SIZE, SIZE, SIZE)))
    assert PRODUCT.attrs["global_symbol"] == "product"


def test_a_function_runs() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random((SIZE, SIZE), dtype=np.float32) for _ in "ab")
    c = np.zeros((SIZE, SIZE), np.float32)
    tensorexpr.build(PRODUCT)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_module_has_its_functions() -> None:
    assert [var.name_hint for var in BOTH.get_global_vars()] == ["first", "second"]
    assert BOTH["first"].attrs["global_symbol"] == "other" and "global_symbol" not in BOTH["second"].attrs
    assert dict(BOTH.attrs) == {"version": 3}
    assert BOTH["second"].params[0].name == "n"


def test_both_spellings_of_the_module_decorator() -> None:
    made = programs.with_the_longer_name()
    assert isinstance(made, tir.IRModule) and "main" in made


def test_numbers_of_enclosing_scopes_are_constants() -> None:
    made = programs.scale(3, (1, 7), "float64")
    (buffer,) = made.buffer_map.values()
    assert [str(extent) for extent in buffer.shape] == ["3", "7"] and buffer.dtype == "float64"
    assert "T.float64(2.5) + T.float64(16.0)" in made.script()


def test_closures_of_modules() -> None:
    text = programs.store_of(5, 11).script()
    assert "A: T.Buffer((5,)" in text and "A[0] = 11" in text


def test_a_size_that_only_an_annotation_mentions() -> None:
    """Annotations are not evaluated in this file, so the function does not hold on to `n`."""
    n = 9

    @T.prim_func
    def made(A: T.Buffer((n,), "float32")) -> None:  # type: ignore[valid-type]
        T.evaluate(0)

    assert "A: T.Buffer((9,)" in made.script()


def test_expressions_and_dicts_of_enclosing_scopes() -> None:
    table, places = {"four": 4}, [1, 2]
    text = '@T.prim_func\ndef main(A: T.Buffer((table["four"],), "int32")):\n    A[places[0]] = big'
    func = parse(text, {"table": table, "places": places, "big": tir.const(7)})
    assert "A: T.Buffer((4,)" in func.script() and "A[1] = 7" in func.script()


def test_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **kwargs: object) -> None:
        raise AssertionError("a script is read, not run")

    monkeypatch.setattr(builtins, "eval", refused)
    monkeypatch.setattr(builtins, "exec", refused)
    func = parse('@T.prim_func\ndef main(A: T.Buffer((4,), "int32")):\n    A[0] = int(2.0) + len((1, 2))')
    assert "A[0] = 4" in func.script()


@pytest.mark.parametrize(
    "imports",
    [
        "# from tvm.script import tir as T",
        "from tvm.script import tir as T, ir as I",
        "from tensorexpr.script import tir as T",
        "import tvm\nfrom tvm.script.parser import tir as T",
        '"""A docstring."""',
    ],
)
def test_texts_with_imports(imports: str) -> None:
    func = from_source(f'{imports}\n\n@T.prim_func\ndef main(A: T.Buffer((4,), "int32")):\n    A[0] = 1')
    assert isinstance(func, tir.PrimFunc) and func.attrs["global_symbol"] == "main"


def test_texts_that_are_indented() -> None:
    text = """
        # a comment
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            \"\"\"A docstring
    that goes on further left.\"\"\"
            A[0] = {}
    """
    assert "A[0] = 1" in parse(text.format(1)).script()
    with pytest.raises(tensorexpr.errors.ParseError, match="<script>:7:20: 'x' is not defined here; known here: A"):
        parse(text.format("x"))


def test_other_names_of_the_language() -> None:
    func = parse('from tvm.script import tir as words\n@words.prim_func\ndef main(A: words.Buffer((4,), "int32")):\n    A[0] = 1')
    assert isinstance(func, tir.PrimFunc)


def test_parameters_of_all_kinds() -> None:
    text = """@T.prim_func
def main(A: T.Buffer((4, n), "float32"), p: T.handle, q: T.handle("int8", "shared"), n: T.int32(is_size_var=True), x: T.float64, b: T.bool):
    T.evaluate(0)"""
    func = parse(text.replace("(4, n)", "(4,)"))
    assert isinstance(func, tir.PrimFunc)
    assert [var.dtype for var in func.params] == ["handle", "handle", "handle", "int32", "float64", "bool"]
    pointer = func.params[2].type_annotation
    assert pointer is not None and pointer.element_type.dtype == "int8" and pointer.storage_scope == "shared"
    assert isinstance(func.params[3], tir.SizeVar)
    assert_structural_equal(parse(func.script()), func)


def test_sizes_that_a_call_defines() -> None:
    text = """@T.prim_func
def main(a: T.handle, b: T.handle, k: T.int32):
    n, m = T.int32(), T.int64(is_size_var=True)
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n * 2, k), "int8", strides=("s", 1), elem_offset=4, offset_factor=4, align=128, scope="shared")
    A[0, 0] = T.Cast("float32", B[0, 0]) + T.Cast("float32", B.strides[0])"""
    func = parse(text)
    assert isinstance(func, tir.PrimFunc)
    a, b = (func.buffer_map[param] for param in func.params[:2])
    assert isinstance(a.shape[1], tir.SizeVar) and a.shape[1].dtype == "int64" and not isinstance(a.shape[0], tir.SizeVar)
    assert (b.data_alignment, b.offset_factor, b.scope(), b.dtype) == (128, 4, "shared", "int8")
    assert_structural_equal(parse(func.script()), func)


def test_a_module_as_text_and_back() -> None:
    assert_structural_equal(parse(asscript(BOTH)), BOTH)
    assert parse("@I.ir_module\nclass Module:\n    pass").script().endswith("pass")


def test_functions_that_are_not_well_formed_can_be_read_if_asked() -> None:
    text = "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    i = T.int32()\n    A[i] = 1.0"
    with pytest.raises(tensorexpr.TensorExprError, match="i is used in i where it is not defined"):
        parse(text)
    assert isinstance(parse(text, check_well_formed=False), tir.PrimFunc)
    option = text.replace("@T.prim_func", "@T.prim_func(check_well_formed=False)")
    assert isinstance(parse(option), tir.PrimFunc)


def test_importing_the_language_is_cheap() -> None:
    script = "import sys, tensorexpr; print('tensorexpr.script' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "False"
    assert tensorexpr.script.parse is parse and "grid" in dir(T)


# Showing.


def test_show_is_plain_text_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    PRODUCT.show()
    BOTH.show(black_format=True)
    assert capsys.readouterr().out == f"{PRODUCT.script()}\n{BOTH.script()}\n"


@pytest.mark.parametrize(("style", "terminal", "no_color", "coloured"), [
    (None, False, False, False), (None, True, False, True), (None, True, True, False), ("ansi", False, False, True),
    ("dark", False, True, True), ("plain", True, False, False),
])  # fmt: skip
def test_colours(style: str | None, terminal: bool, no_color: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", "1" if no_color else "")
    text = highlight.shown(PRODUCT.script(), style)
    assert (text != PRODUCT.script()) is coloured
    assert "".join(piece for _, piece in highlight.tokens(PRODUCT.script())) == PRODUCT.script()


def test_tokens_have_their_colours() -> None:
    kinds = {piece: kind for kind, piece in highlight.tokens('@T.prim_func\ndef f(x): # T.no "text"\n    y2 = T.exp("a # b", -2.5)')}
    assert kinds["@T.prim_func"] == "decorator" and kinds["def"] == "keyword" and kinds["f"] == "name" and kinds["T.exp"] == "builtin"
    assert kinds['# T.no "text"'] == "comment" and kinds['"a # b"'] == "string" and kinds["2.5"] == "number"
    assert "y2" not in kinds


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match='style is None, "ansi", "plain", "light" or "dark", not \'blue\''):
        PRODUCT.show("blue")


def test_notebooks_get_html() -> None:
    text = BOTH._repr_html_()
    assert text.startswith("<pre") and 'color:#005cc5">T.Buffer</span>' in text and "&lt;" not in text
    assert "A[0] &lt; 3" in parse('@T.prim_func\ndef f(A: T.Buffer((4,), "int32")):\n    T.evaluate(A[0] < 3)')._repr_html_().replace(
        '<span style="color:#b35900">', ""
    ).replace("</span>", "")


def test_the_type_of_the_result_is_kept() -> None:
    func: Any = from_source("@T.prim_func\ndef f(n: T.int32) -> T.int32:\n    return n + 1")
    assert func.ret_type == tir.PrimType("int32") and "def f(n: T.int32) -> T.int32:" in func.script()
    nothing: Any = from_source("@T.prim_func\ndef f(n: T.int32) -> None:\n    T.evaluate(n)")
    assert nothing.ret_type is None and "->" not in nothing.script()


def test_texts_and_programs_in_colours(capsys: pytest.CaptureFixture[str]) -> None:
    from tensorexpr.script.highlight import cprint

    cprint("x = 1  # one", "plain")
    cprint(PRODUCT, "ansi")
    text = capsys.readouterr().out
    assert text.startswith("x = 1  # one\n") and "\x1b[" in text
    with pytest.raises(TypeError, match="takes a text, or a node"):
        cprint(3)

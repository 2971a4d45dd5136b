"""What the reader of scripts refuses: one program for each message, with the place that it points at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorexpr.errors import ParseError, TensorExprError
from tensorexpr.script import ir as I
from tensorexpr.script import parse
from tensorexpr.script import tir as T
from tests import decorated_programs as programs

HEADER = """@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32, p: T.handle):
"""
# Body, what the caret marks, and the message.
CASES: list[tuple[str, str, str]] = [
    # Names.
    ("for i in range(16):\n    Aa[i] = 1.0", "Aa", "'Aa' is not defined here; did you mean A?"),
    ("A[0] = zzz", "zzz", "'zzz' is not defined here; known here: A, n, p"),
    ("for i in T.gird(16):\n    A[i] = 1.0", "T.gird", "T has no 'gird'; did you mean grid?"),
    ("A[0] = A.vloda([0])", "A.vloda", "buffer A has no 'vloda'; did you mean vload?"),
    ("A[0] = n.astpye('float32')", "n.astpye", "an expression has no 'astpye'; did you mean astype?"),
    ("A[0] = (1).to_bytes", "(1).to_bytes", "'to_bytes' of a int can't be read in a script"),
    ("for i in range(4):\n    k = i + 1\nA[k] = 1.0", "k", "'k' is not defined here"),
    ("for i in range(4):\n    A[i] = 1.0\nA[i] = 1.0", "i", "'i' is not defined here"),
    ("if n < 3:\n    k = n\nA[k] = 1.0", "k", "'k' is not defined here"),
    # Syntax.
    ("A[0] = = 1.0", "=", "this is no Python syntax: invalid syntax"),
    ("A[0] = f'{n:>9999}'", "f'{n:>9999}'", "the format '>9999' is none of a script"),
    ("A[0] = [x for x in range(n)]", "range(n)", "a comprehension runs over a range of constants"),
    ("A[0] = b'x'", "b'x'", "b'x' is no constant of a script; expected a number or a string"),
    ("return T.evaluate(0)", "return T.evaluate(0)", "a function returns a number; write the statement by itself"),
    ("for i in range(4):\n    break", "break", "a loop can't be left early"),
    ("for i in range(4):\n    continue", "continue", "an iteration can't be left early"),
    ("def g():\n    pass", "def g():", "functions can't be nested"),
    ("import os", "import os", "modules are imported outside of the script"),
    ("del A", "del A", "`Delete` has no place in a script"),
    ("A = B = n", "A = B = n", "one assignment at a time"),
    ("A = n", "A", "A is a buffer; store to its elements, as in A[...] = value, or take another name"),
    # Blocks speak of their axes alone, and run over their ranges.
    (
        'for i in range(16):\n    with T.block("B"):\n        vi = T.axis.spatial(16, i)\n        A[i] = 1.0',
        'T.block("B")',
        "block 'B' uses the loop variable i; a block uses its axes: bind one, as in vi = T.axis.spatial(16, i), and write vi inside",
    ),
    (
        'for i in range(16):\n    with T.block("B"):\n        vi = T.axis.spatial(15, i)\n        A[vi] = 1.0',
        'T.block("B")',
        "axis vi of block 'B' has the range 0:15, but its loop i has 0:16; make them equal, or say with T.where when the block runs",
    ),
    (
        'for i in range(16):\n    with T.block("B"):\n        vi = T.axis.spatial(i, 16)\n        A[vi] = 1.0',
        "T.axis.spatial(i, 16)",
        "axis vi has the extent i, a loop, and the value 16; the extent comes first",
    ),
    (
        'for i in range(16):\n    with T.block("B"):\n        vi = T.axis.spatial(16, i)\n        T.where(vi < 4)\n        A[vi] = 1.0',
        "T.where(vi < 4)",
        "T.where says for which values of loops a block runs, and vi is an axis of the block; write i instead",
    ),
    # Calls.
    ("T.evaluate(T.call_llvm_pure_intrin('int32', A, n))", "T.call_llvm_pure_intrin('int32', A, n)", "this takes other values: "),
    ("x = T.Shuffle(T.max, n)", "T.Shuffle(T.max, n)", "this takes other values: "),
    ("x = T.writes[0]", "T.writes[0]", "T.writes can't be indexed; expected a buffer"),
    ("x = print(3)", "print", "'print' is not defined here"),
    ("x = n(3)", "n(3)", "a Var can't be called"),
    ("T.attr(A)", "T.attr(A)", "T.attr: missing a required argument: 'attr_key'; it is T.attr(node, attr_key, value)"),
    ("for i in T.serial(4, foo=3):\n    pass", "T.serial(4, foo=3)", "T.serial: got an unexpected keyword argument 'foo'; it is "),
    ("A[0] = T.exp(1.0, 2.0)", "T.exp(1.0, 2.0)", "T.exp takes 1 operand, not 2"),
    ("A[0] = T.max(A[1], 0, dtype='int8')", "T.max(A[1], 0, dtype='int8')", "T.max of these operands is float32, not int8; convert it"),
    ("A[0] = T.exp(**n)", "n", "arguments are written out in a script; ** has no place in it"),
    ("A[0] = T.max(*n)", "n", "expected a tuple or a list after *"),
    ("A[0] = T.Let(n)", "T.Let(n)", "expected T.Let(body, where={x: value})"),
    ("A[0] = T.Let(n, where={n + 1: 2})", "n + 1", "expected the name of a variable"),
    ("T.func_attr({**n})", "{**n}", "a dict is written out in a script; ** has no place in it"),
    ("T.func_attr({1: 2})", "T.func_attr({1: 2})", "T.func_attr takes a dict with strings for keys"),
    # Expressions.
    ("A[0] = 1 / 0", "1 / 0", "division by zero"),
    ("A[0] = 2 ** 999999", "2 ** 999999", "the power has more than 4096 bits"),
    ("A[0] = (2 ** 1000) ** 1000", "(2 ** 1000) ** 1000", "the power has more than 4096 bits"),
    ("A[0] = 2 << 999999", "2 << 999999", "a shift by 999999 is out of 0 to 4096"),
    ("A[0] = n / 2", "n / 2", "`/` of the integers n and 2 is ambiguous"),
    ("A[0] = n @ n", "n @ n", "@ has no meaning on expressions"),
    ("A[0] = n in (1, 2)", "n in (1, 2)", "expected one of == != < <= > >="),
    ("A[0] = 1.0 if n > 3 else 2.0", "1.0 if n > 3 else 2.0", "`a if c else b` chooses by constants only; write T.if_then_else(c, a, b)"),
    ("A[0] = A", "A", "buffer A stands where a value belongs; write an element, A[...], or the pointer, A.data"),
    ("A[0] = T.max", "T.max", "T.max stands where a value belongs; call it"),
    ("A[0] = T", "T", "T stands where a value belongs"),
    ("A[0] = [1]", "[1]", "a list stands where a value belongs; expected a number or an expression"),
    ("A[0] = 'x'", "'x'", '"x" (handle) can\'t be converted to float32'),
    ("A[0] = T.float32('x')", "T.float32('x')", '\'x\' is no float; write "inf", "-inf" or "nan"'),
    ("A[0] = T.int32('3')", "T.int32('3')", "a string is no int32"),
    ("A[0] = T.int8(300)", "T.int8(300)", "300 does not fit int8"),
    ("A[0] = T.Broadcast(1.0, n)", "T.Broadcast(1.0, n)", "the number of lanes is a positive constant, or one times T.vscale(), not n"),
    ("A[0] = T.Shuffle([], [])", "T.Shuffle([], [])", "T.Shuffle takes a list of vectors and a list of constants"),
    ("A[0] = T.Cast('floaty', n)", "T.Cast('floaty', n)", "'floaty' is no dtype"),
    ("A[0] = T.allocate([1], 'float32')", "T.allocate([1], 'float32')", "T.allocate needs a name: assign it first"),
    ("T.evaluate(T.Buffer((3,)))", "T.evaluate(T.Buffer((3,)))", "T.Buffer needs a name: assign it first"),
    ("T.evaluate(T.tvm_call_trace_packed('f'))", "T.tvm_call_trace_packed('f')", "takes the name of a function and at least one value"),
    # Elements, slices and regions.
    ("A[0, 1] = 2.0", "A[0, 1]", "buffer A has 1 dimensions, accessed with 2 indices"),
    ("A[0:n] = 2.0", "A[0:n]", "a slice of n elements is no vector"),
    ("A[0:8:n] = 2.0", "0:8:n", "the step of a slice is a positive constant"),
    ("A[0:8:3] = 2.0", "A[0:8:3]", "a slice over 8 elements can't have a step of 3"),
    ("A[0:n] = 1.0", "A[0:n]", "a slice of n elements is no vector"),
    ("A[0.5:2] = 1.0", "A[0.5:2]", "bounds are integers"),
    ("x = n[0]", "n[0]", "n can't be indexed; expected a buffer"),
    ("T.realize(A)", "T.realize(A)", "T.realize takes a box of a buffer, such as A[0:16, 0:16]"),
    ("T.realize(A[0:8:2])", "T.realize(A[0:8:2])", "a region has no gaps"),
    # Statements.
    ("A", "A", "this has no effect"),
    ("T.exp", "T.exp", "this has no effect"),
    ("T.evaluate('a' * 10**10)", "'a' * 10**10", "1 elements repeated 10000000000 times are more than 65536"),
    ("x = (1 << 4000) * (1 << 4000)", "(1 << 4000) * (1 << 4000)", "the product has more than 4096 bits"),
    ("T.evaluate('%9999999d' % 3)", "'%9999999d' % 3", "strings are not formatted with % in a script"),
    ("A[0] = p + 2", "p + 2", "p (handle) and 2 (int32) can't be combined"),
    ("x = n + 1\nx = n + 2", "x", "x is defined already in this block; take another name"),
    ("y = T.alloc_buffer((-8,))", "T.alloc_buffer((-8,))", "the extents of a shape are integers of at least 0, not (-8)"),
    ("y = T.alloc_buffer('(8, 8)')", "T.alloc_buffer('(8, 8)')", "the extents of a shape are integers of at least 0"),
    ("with T.If(n < 3):\n    A[0] = 1.0", "T.If(n < 3)", "what belongs to T.If stands in `with T.Then():`"),
    ("with T.Then():\n    A[0] = 1.0", "T.Then()", "T.Then stands outside of `with T.If(condition):`"),
    ("T.func_attr({'a': 1})\nT.func_attr({'b': 1})", "T.func_attr({'b': 1})", "the attributes of a function are stated twice"),
    ("A[0] = T.comm_reducer(lambda x: x, [n])", "T.comm_reducer(lambda x: x, [n])", "a combiner of 1 values takes 2 parameters, not 1"),
    ("T.int32()", "T.int32()", "makes something that has no name; assign it"),
    ("A.foo = 3", "A.foo", "this can't be assigned; expected a name or an element such as A[i, j]"),
    ("x, y = T.int32()", "x, y", "2 names for 1 value"),
    ("n += 1", "n += 1", "expected an element on the left, such as A[i] += value; variables can't change"),
    ("while n < 3:\n    n = n + 1", "n", "n is a variable of the block around and can't change"),
    ("x: T.float32 = n", "n", "x is float32, and its value int32; convert it with T.Cast"),
    ("x: A = n", "A", "expected a type, such as T.int32 or T.handle"),
    ("x: T.int32", "x: T.int32", "expected name: T.type = value"),
    ("for i in A:\n    pass", "A", "expected the header of a loop: range, T.serial, T.parallel"),
    ("for i, j in range(3):\n    pass", "i, j", "2 names for 1 value"),
    ("for A[0] in range(3):\n    pass", "A[0]", "expected the name of a loop variable"),
    ("for i in range(3):\n    pass\nelse:\n    pass", "pass", "a loop has no else here"),
    ("for i in range(0, 10, 2):\n    A[i] = 0", "range(0, 10, 2)", "a loop has steps of 1, not 2"),
    ("for i in range(0.5):\n    A[i] = 0", "range(0.5)", "bounds are integers"),
    ("for i in T.grid():\n    A[i] = 0", "T.grid()", "T.grid takes one extent or more"),
    ("for i in T.thread_binding(4, thread='warp'):\n    pass", "T.thread_binding(4, thread='warp')", "one of blockIdx.x, .y, .z"),
    ("T.launch_thread('foo', 3)", "T.launch_thread('foo', 3)", "'foo' is no thread; threads: blockIdx.x"),
    ("T.launch_thread(n, 3)", "T.launch_thread(n, 3)", "T.launch_thread takes a tag, one of"),
    ("with A:\n    pass", "A", "expected a block, as in `with T.block(\"name\"):`"),
    ("with T.int32() as k:\n    pass", "T.int32()", "T.int32() surrounds nothing; assign it: k = "),
    ("with T.allocate([1], 'int8') as A[0]:\n    pass", "A[0]", "expected a name after `as`"),
    ("with T.LetStmt(n, var=3):\n    pass", "T.LetStmt(n, var=3)", "T.LetStmt takes a variable, not 3"),
    ("T.attr(T.iter_var(n, None, 'Odd'), 'x', 1)", "T.iter_var(n, None, 'Odd')", "its range and one of DataPar"),
    # Buffers.
    ("y = T.match_buffer(n, (16,))", "T.match_buffer(n, (16,))", "the parameter n is int32; a buffer comes as a T.handle"),
    ("y = T.match_buffer(3, (16,))", "T.match_buffer(3, (16,))", "T.match_buffer takes a parameter of the function, or a region"),
    ("y = T.match_buffer(p)", "T.match_buffer(p)", "the buffer behind p needs a shape"),
    ("y = T.match_buffer(p, (16,))\nz = T.match_buffer(p, (16,))", "T.match_buffer(p, (16,))", "the parameter p has a buffer already, y"),
    ("y = T.match_buffer(p, (16,), buffer_type='odd')", "T.match_buffer(p, (16,), buffer_type='odd')", "'odd' is not supported"),
    ("y = T.Buffer((16,), data=3)", "T.Buffer((16,), data=3)", "buffer y: data is a pointer variable, such as A.data, not 3"),
    ("y = T.Buffer((16,), data=A.data, scope='local')", "T.Buffer((16,), data=A.data, scope='local')", "its data A is in 'global'"),
    ("y = T.Buffer((16,), strides=(1, 1))", "T.Buffer((16,), strides=(1, 1))", "buffer y has 1 dimensions and 2 strides"),
    ("y = T.match_buffer(A[0:16], (4, 4))", "T.match_buffer(A[0:16], (4, 4))", "shape (4, 4) can't stand for a box of (16) elements"),
    # Blocks.
    ("T.block('x')", "T.block('x')", "T.block opens a block; write `with T.block(...):`"),
    ("T.init()", "T.init()", "T.init opens a block"),
    ("with T.init():\n    pass", "T.init()", "T.init() stands outside of a block"),
    ("T.reads(A[0])", "T.reads(A[0])", 'T.reads stands outside of a block; it belongs in `with T.block("name"):`'),
    ("vi = T.axis.spatial(16, n)", "T.axis.spatial(16, n)", "T.axis stands outside of a block"),
    ("vi = T.axis.spatail(16, n)", "T.axis.spatail", "T.axis has no 'spatail'; did you mean spatial?"),
]  # fmt: skip
IN_BLOCK: list[tuple[str, str, str]] = [
    ("vi = T.axis.spatial(16)", "T.axis.spatial(16)", "axis vi is bound to nothing; give its value, as in T.axis.spatial(16, i)"),
    ("vi = T.axis.spatial((1, 2, 3), n)", "T.axis.spatial((1, 2, 3), n)", "the range of an axis is its extent, or a pair"),
    ("vi = T.axis.spatial(16, A[0])", "T.axis.spatial(16, A[0])", "axis vi is bound to A[0] (float32); axes are integers"),
    ("vi = T.axis.remap('S', [n])", "T.axis.remap('S', [n])", "T.axis.remap takes variables of loops, not n"),
    ("vi = T.axis.remap('SR', [n])", "T.axis.remap('SR', [n])", "one letter, S or R, for each of its 1 loops, not 'SR'"),
    ("vi = T.axis.remap('X', [n])", "T.axis.remap('X', [n])", "one letter, S or R, for each of its 1 loops, not 'X'"),
    ("T.reads(n)", "T.reads(n)", "expected a region of a buffer, such as A[i, 0:16]"),
    ("T.reads(A[0])\nT.reads(A[0])", "T.reads(A[0])", "block 'x' states its reads twice"),
    ("T.writes(A[0])\nT.writes(A[0])", "T.writes(A[0])", "block 'x' states its writes twice"),
    ("T.where(n < 3)\nT.where(n < 4)", "T.where(n < 4)", "block 'x' states its predicate twice"),
    ("T.block_attr({'a': 1})\nT.block_attr({'b': 1})", "T.block_attr({'b': 1})", "block 'x' states its attributes twice"),
    ("T.block_attr(3)", "T.block_attr(3)", "T.block_attr takes a dict with strings for keys"),
    ("with T.init():\n    pass\nwith T.init():\n    pass", "T.init()", "block 'x' has an init already; a block has one"),
    ("y = T.match_buffer(A[0:16], (4, 4))", "T.match_buffer(A[0:16], (4, 4))", "shape (4, 4) can't stand for a box of (16) elements"),
]  # fmt: skip


def fails(text: str, marked: str, message: str) -> None:
    """The error of `text` says `message`, and its caret stands under `marked`."""
    with pytest.raises(ParseError) as caught:
        parse(text)
    first, line, carets = str(caught.value).split("\n")[-3:]
    assert message in str(caught.value)
    start, stop = carets.index("^"), carets.rindex("^") + 1
    assert line[start:stop] == marked, caught.value
    number, column = caught.value.line, caught.value.column
    assert number is not None and column is not None and first.startswith(f"<script>:{number}:{column}: ")
    assert text.split("\n")[number - 1][column - 1 :].startswith(marked)


def indented(body: str, levels: int = 1) -> str:
    return "\n".join("    " * levels + line for line in body.split("\n"))


@pytest.mark.parametrize(("body", "marked", "message"), CASES, ids=[case[0] for case in CASES])
def test_statements(body: str, marked: str, message: str) -> None:
    fails(HEADER + indented(body), marked, message)


@pytest.mark.parametrize(("body", "marked", "message"), IN_BLOCK, ids=[case[0] for case in IN_BLOCK])
def test_statements_of_blocks(body: str, marked: str, message: str) -> None:
    fails(f'{HEADER}    with T.block("x"):\n{indented(body, 2)}', marked, message)


FUNCTION = "@T.prim_func\ndef f(A: T.Buffer((16,))):\n    A[0] = 1.0"
PROGRAMS: list[tuple[str, str, str]] = [
    ("", "", "expected one function or class, not 0; several belong in a class"),
    (f"{FUNCTION}\n{FUNCTION}", "def f(A: T.Buffer((16,))):", "expected one function or class, not 2"),
    ("x = 3", "x = 3", "expected a function under @T.prim_func or a class under @I.ir_module"),
    ("def f(A: T.handle):\n    pass", "def f(A: T.handle):", "function 'f' is not under @T.prim_func or @R.function"),
    ("@odd\ndef f(A: T.handle):\n    pass", "odd", "function 'f' is not under @T.prim_func"),
    ("@T.prim_func(private=3)\ndef f(A: T.handle):\n    pass", "3", "the option private of @T.prim_func is True or False"),
    ("@T.prim_func\ndef f(A):\n    pass", "A", "parameter A has no type; expected T.Buffer((16, 16), \"float32\"), T.handle"),
    ("@T.prim_func\ndef f(A: 3):\n    pass", "3", "expected a type, such as T.int32 or T.handle"),
    ("@T.prim_func\ndef f(n: T.int32 = 3):\n    pass", "3", "parameters have neither defaults nor stars"),
    ("@T.prim_func\ndef f(*n: T.int32):\n    pass", "n: T.int32", "parameters have neither defaults nor stars"),
    ("@I.ir_module\nclass M:\n    x = 3", "x = 3", "a module has functions, under @T.prim_func or @R.function, and registered ones"),
    ("@I.ir_module\nclass M:\n    I.ir_modul()", "I.ir_modul", "I has no 'ir_modul'; did you mean ir_module?"),
    (
        '@T.prim_func\ndef f(A: T.Buffer((16,))):\n    with T.block("x"):\n        v = T.axis.S(4, 3)\n        '
        'T.call_extern("int32", "f", A.data)',
        'T.block("x")',
        "block 'x' hands the pointer of A to a call, so nobody sees what is read and written",
    ),
    (
        '@T.prim_func\ndef f(A: T.Buffer((16,))):\n    with T.block("x") as y:\n        A[0] = 1.0',
        'T.block("x")',
        "a block has no value to call y",
    ),
    (
        '@T.prim_func(private=True)\ndef f(A: T.Buffer((16,))):\n    T.func_attr({"global_symbol": "g"})',
        'T.func_attr({"global_symbol": "g"})',
        "a private function has no global_symbol",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marked", "message"), PROGRAMS, ids=[case[0] for case in PROGRAMS])
def test_programs(text: str, marked: str, message: str) -> None:
    if text:
        fails(text, marked, message)
    else:
        with pytest.raises(ParseError, match=message):
            parse(text)


def test_the_place_is_that_in_the_file() -> None:
    with pytest.raises(ParseError, match=r"decorated_programs\.py:\d+:16: 'B' is not defined here; known here: A") as caught:
        programs.unknown_name()
    line = caught.value.line
    assert line is not None
    assert Path(programs.__file__).read_text().split("\n")[line - 1].lstrip().startswith("A[0] = B[0]")


def test_values_of_python_that_are_no_constants() -> None:
    with pytest.raises(ParseError, match="helper: of no use"):
        programs.calls_python()
    with pytest.raises(ParseError, match="a set stands where a value belongs"):
        parse(f"{HEADER}    A[0] = odd", {"odd": {1}})


@pytest.mark.parametrize("decorate", [T.prim_func, I.ir_module])
def test_decorators_of_other_things(decorate: object) -> None:
    assert callable(decorate)
    with pytest.raises(ParseError, match="stands above a"):
        decorate(3)


def test_a_source_that_is_not_there() -> None:
    scope: dict[str, object] = {}
    made = type("M", (), scope)
    with pytest.raises(ParseError, match="scripts are read from files, so write it to one or pass its text to"):
        I.ir_module(made)


def test_language_words_outside_of_scripts() -> None:
    with pytest.raises(TensorExprError, match=r"T\.match_buffer is read by @T\.prim_func and can't be called outside of a script"):
        T.match_buffer(3)
    with pytest.raises(AttributeError, match="T has no 'gird'"):
        _ = T.gird


def test_text_that_is_too_deep() -> None:
    with pytest.raises(ParseError, match=r"can't be read|no Python syntax"):
        parse(f"{HEADER}    A[0] = {'(' * 5000}n{')' * 5000}")

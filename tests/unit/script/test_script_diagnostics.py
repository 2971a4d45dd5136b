"""Errors in texts as values, texts with their trees, and expressions by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

import tensorexpr
from tensorexpr import error, ir
from tensorexpr.ir.diagnostics import Diagnostic, DiagnosticContext, DiagnosticLevel, get_renderer, override_renderer
from tensorexpr.script import from_source
from tensorexpr.script.parser.core.diagnostics import Source
from tensorexpr.script.parser.core.evaluator import ExprEvaluator, eval_assign, eval_expr

WRONG = '@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    for i in range(8):\n        A[i] = B[i]\n'


@pytest.fixture
def found() -> Iterator[list[Diagnostic]]:
    messages: list[Diagnostic] = []
    override_renderer(lambda context: messages.extend(context.diagnostics))
    yield messages
    override_renderer(None)


def test_an_override_gets_the_place_and_the_message(found: list[Diagnostic]) -> None:
    with pytest.raises(error.DiagnosticError, match="'B' is not defined here"):
        from_source(WRONG)
    (only,) = found
    assert only.level == DiagnosticLevel.ERROR and only.message.startswith("'B' is not defined here")
    assert (only.span.line, only.span.column, only.span.end_column) == (4, 16, 17)


def test_without_an_override_the_error_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(tensorexpr.TVMError, match=r"4:16: 'B' is not defined here"):
        from_source(WRONG)
    assert capsys.readouterr() == ("", "")


def test_contexts_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    context = DiagnosticContext(None, get_renderer())
    span = ir.Span(ir.SourceName("x.py"), 3, 3, 1, 5)
    context.emit(Diagnostic(DiagnosticLevel.NOTE, span, "so it is"))
    context.render()
    assert capsys.readouterr().out == "x.py:3:1: note: so it is\n"
    context.emit(Diagnostic(DiagnosticLevel.ERROR, span, "wrong"))
    with pytest.raises(error.DiagnosticError, match=r"x\.py:3: wrong"):
        context.render()


def test_sources_have_trees() -> None:
    source = Source("def f(x):\n    return x\n")
    tree: Any = source.as_ast()
    assert (source.source_name, source.start_line, source.start_column) == ("<str>", 1, 0) and source.full_source == source.source
    first: Any = tree.body[0]
    assert isinstance(tree, ast.Module) and first.name == "f"
    own = Source(test_sources_have_trees)
    assert own.source_name == __file__ and own.start_line > 1 and len(own.full_source) > len(own.source)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1, -2, 'x'", (1, -2, "x")), ("f(a, b=2)", 14), ("items[1:3] + items[::-1]", [2, 3, 3, 2, 1]), ("not a or b", 7), ("7 / 2", 3.5)],
)
def test_expressions_by_themselves(text: str, value: Any) -> None:
    names = {"a": 7, "b": 7, "f": lambda a, b: a * b, "items": [1, 2, 3]}
    node = ast.parse(text, mode="eval")
    assert ExprEvaluator.eval(None, names, node.body) == value == eval_expr(None, node, names)


def test_assignments_by_themselves() -> None:
    target = ast.parse("a, (b, *c), d = 0").body[0].targets[0]  # type: ignore[attr-defined]
    assert eval_assign(None, target, (1, (2, 3, 4), 5)) == {"a": 1, "b": 2, "c": [3, 4], "d": 5}
    with pytest.raises(ValueError, match="neither a name nor a tuple"):
        eval_assign(None, ast.parse("a.b").body[0].value, 3)  # type: ignore[attr-defined]


def test_error_classes_of_programs() -> None:
    @error.register_error
    class OwnError(error.OpError):
        pass

    assert issubclass(OwnError, tensorexpr.TVMError) and error.register_error("other", OwnError) is OwnError
    assert issubclass(error.OpNotImplemented, NotImplementedError) and issubclass(error.OpAttributeInvalid, AttributeError)

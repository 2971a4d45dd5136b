"""What passes do with what is known to be stored, and with what is overwritten before it is read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import Pass
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret

HEAD = '@T.prim_func\ndef main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):\n'
DECIDE = {"tir.Simplify": {"propagate_knowns_to_prove_conditional": True}}
FILL = {"tir.Simplify": {"propagate_knowns_to_simplify_expressions": True}}
UNREAD = {"tir.RemoveNoOp": {"use_dataflow_analysis": True}}
OVERCOMPUTE = {"tir.ReduceBranchingThroughOvercompute": {"use_dataflow_analysis": True}}
PASSES: dict[str, Pass] = {
    "tir.Simplify": transform.Simplify(),
    "tir.RemoveNoOp": transform.RemoveNoOp(),
    "tir.ReduceBranchingThroughOvercompute": transform.ReduceBranchingThroughOvercompute(),
}


def parsed(text: str) -> PrimFunc:
    func = from_source(text)
    assert isinstance(func, PrimFunc)
    return func


def applied(config: dict[str, Any], func: PrimFunc) -> PrimFunc:
    (key,) = config
    with PassContext(config=config):
        return PASSES[key](IRModule({"main": func}))["main"]


def body(func: PrimFunc) -> str:
    lines = func.script().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[start + 1 :])


PADDED = "    for i in range(16):\n        T.evaluate(T.assume(i < 14 or A[i] == 0))\n"
CASES = [
    (
        "conditions on what was stored are decided",
        DECIDE,
        "    for i in range(16):\n        A[i] = 5\n    for j in range(8):\n        if A[j * 2] == 5 and j < n:\n            B[j] = A[j]",
        "for i in range(16):\n    A[i] = 5\nfor j in range(8):\n    if j < n:\n        B[j] = A[j]",
    ),
    (
        "not where an iteration before stored something else",
        DECIDE,
        "    A[0] = 0\n    for i in range(4):\n        if A[0] == 0:\n            B[i] = 1\n        A[0] = 1",
        "A[0] = 0\nfor i in range(4):\n    if A[0] == 0:\n        B[i] = 1\n    A[0] = 1",
    ),
    (
        "an assumption holds where it says, until something is stored there",
        DECIDE,
        PADDED + "    for i in range(16):\n        if i >= 13:\n            if A[i] == 0:\n                B[i] = 1\n"
        "        if i >= 14:\n            if A[i] == 0:\n                A[i] = 2",
        PADDED.replace("    for", "for", 1).replace("        T", "    T").replace("T.evaluate(", "").replace("0))", "0)")
        + "for i in range(16):\n    if 13 <= i:\n        if A[i] == 0:\n            B[i] = 1\n    if 14 <= i:\n        A[i] = 2",
    ),
    (
        "loads of what loops of another form stored are that",
        FILL,
        "    for i, j in T.grid(4, 4):\n        A[i * 4 + j] = i + j\n    for k in range(16):\n        B[k] = A[k]",
        "for i, j in T.grid(4, 4):\n    A[i * 4 + j] = i + j\nfor k in range(16):\n    B[k] = k - k // 4 * 3",
    ),
    (
        "of two stores the first goes, where nobody reads it",
        UNREAD,
        "    for i in range(8):\n        A[i] = 1\n        B[i] = 2\n    B[9] = A[2]\n    for i, j in T.grid(4, 4):\n"
        "        A[i * 4 + j] = 3\n        B[i * 4 + j] = 4",
        "for i in range(8):\n    A[i] = 1\nfor i, j in T.grid(4, 4):\n    A[i * 4 + j] = 3\n    B[i * 4 + j] = 4",
    ),
    (
        "two stores may be needed to overwrite one",
        UNREAD,
        "    for i in range(16):\n        A[i] = 1\n    for i in range(16):\n        if i < n:\n            A[i] = 2\n"
        "    for i in range(16):\n        if i >= n:\n            A[i] = 3",
        "for i in range(16):\n    if i < n:\n        A[i] = 2\nfor i in range(16):\n    if i >= n:\n        A[i] = 3",
    ),
    (
        "of two equal stores one stays",
        UNREAD,
        "    A[n] = 1\n    A[n] = 1",
        "A[n] = 1",
    ),
    (
        "branches may store what is overwritten",
        OVERCOMPUTE,
        "    for i in range(16):\n        if i < 14:\n            A[i] = 1\n"
        "    for i in range(16):\n        if i >= 12:\n            A[i] = 2",
        "for i in range(16):\n    A[i] = 1\nfor i in range(16):\n    if i >= 12:\n        A[i] = 2",
    ),
    (
        "and add what is known to be zero",
        OVERCOMPUTE,
        PADDED + "    for i in range(16):\n        if i < 14:\n            B[0] = B[0] + A[i]",
        PADDED.replace("    for", "for", 1).replace("        T", "    T").replace("T.evaluate(", "").replace("0))", "0)")
        + "for i in range(16):\n    B[0] = B[0] + A[i]",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "before", "after"), CASES, ids=[case[0] for case in CASES])
def test_what_comes_out(name: str, config: dict[str, Any], before: str, after: str) -> None:
    assert body(applied(config, parsed(HEAD + before))) == after


@pytest.mark.parametrize(
    "opaque",
    ['T.evaluate(T.call_extern("int32", "f", A.data))', "while B[0] < n:\n        B[0] = B[0] + 1"],
)
def test_nothing_is_known_behind_what_cannot_be_seen_through(opaque: str) -> None:
    func = parsed(f"{HEAD}    A[0] = 1\n    {opaque}\n    A[0] = 1\n    B[1] = A[0]")
    assert body(applied(UNREAD, func)).count("A[0] = 1") == 2


def _index(draw: random.Random, loops: list[str]) -> str:
    if not loops or draw.random() < 0.1:
        return str(draw.randrange(8))
    one, other = draw.choice(loops), draw.choice(loops)
    return draw.choice([one, f"{one} * 2", f"7 - {one}", f"{one} // 2", f"{one} * 4 + {other}", f"{one} + {other}"])


def _statements(draw: random.Random, depth: int, loops: list[str]) -> list[str]:
    lines: list[str] = []
    for _ in range(draw.choice([1, 2]) if loops else 4):
        kind = draw.random()
        if depth == 0 or kind < 0.4:
            buffer, index = draw.choice("AAB"), _index(draw, loops)
            value = draw.choice(["0", "1", f"{draw.choice('AB')}[{_index(draw, loops)}]", f"{buffer}[{index}] + A[{_index(draw, loops)}]"])
            lines.append(f"{buffer}[{index}] = {value}")
        elif kind < 0.8:
            name = f"i{draw.randrange(10**6)}"
            lines += [
                f"for {name} in range({draw.choice([2, 4])}):",
                *("    " + line for line in _statements(draw, depth - 1, [*loops, name])),
            ]
        else:
            condition = draw.choice([f"{_index(draw, loops)} < {draw.randrange(5)}", f"A[{_index(draw, loops)}] == 0", "n > 2"])
            lines += [f"if {condition}:", *("    " + line for line in _statements(draw, 0, loops)[:1])]
    return lines


@pytest.mark.parametrize("seed", range(8))
def test_programs_still_compute_the_same(seed: int) -> None:
    text = HEAD.replace("16", "24") + "\n".join("    " + line for line in _statements(random.Random(seed), 3, []))
    func = parsed(text)
    start = np.random.default_rng(seed).integers(0, 2, (2, 24)).astype("int32")
    wanted = start.copy()
    interpret(func, [*wanted, seed % 5])
    for config in ({"tir.Simplify": {**DECIDE["tir.Simplify"], **FILL["tir.Simplify"]}}, UNREAD, OVERCOMPUTE):
        found = start.copy()
        interpret(applied(config, func), [*found, seed % 5])
        np.testing.assert_array_equal(found, wanted, text)

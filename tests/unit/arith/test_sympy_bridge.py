"""The bridge to sympy, and that nothing affine crosses it."""

from __future__ import annotations

import subprocess
import sys

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.arith.sympy_bridge import Translation, divide_polynomials
from tensorexpr.tir import arithmetic as op
from tensorexpr.tir.expr import SizeVar, Var

n, m = SizeVar("n"), SizeVar("m")
i, j = Var("i"), Var("j")


def test_translations_come_back() -> None:
    translation = Translation()
    for expr in (n * m + i, (i + j) // n, op.minimum(i, j) * 3, i % 4 - j, n * n * n):
        back = translation.from_sympy(translation.to_sympy(expr), "int32")
        assert Analyzer().known_equal(back, expr), f"{expr} -> {back}"


def test_division_of_polynomials() -> None:
    found = divide_polynomials(n * i + i + j, n + 1)
    assert found is not None
    assert [str(part) for part in found] == ["i", "j"]
    assert divide_polynomials(i, n + 1) is None


def test_affine_work_never_imports_sympy() -> None:
    program = (
        "import sys; from tensorexpr.arith import relax; from tensorexpr.arith.analyzer import Analyzer\n"
        "from tensorexpr.tir.expr import Var, SizeVar, Range\n"
        "i, j, n = Var('i'), Var('j'), SizeVar('n'); a = Analyzer({i: Range.from_min_extent(0, n), j: Range.from_min_extent(0, 32)})\n"
        "a.simplify((i * 32 + j) // 32 % 8 + i * n // n); a.known_less(i * 32 + j, n * 32)\n"
        "relax(i + j, {j: Range.from_min_extent(0, 4)}, a)\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

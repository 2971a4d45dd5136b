"""Where two programs differ, for `assert_structural_equal`."""

from __future__ import annotations

from typing import Any

from .buffer import Buffer
from .expr import PrimExpr
from .function import IRModule, PrimFunc
from .stmt import Stmt
from .structural import Comparison, Structural


def assert_structural_equal(lhs: Structural, rhs: Structural, map_free_vars: bool = False) -> None:
    """Check that two programs are the same up to the renaming of bound variables.

    Args:
        map_free_vars: let a free variable of `lhs` stand for one of `rhs`, one to one.

    Raises:
        ValueError: with the first parts that differ, and the statements around them.
    """
    found = first_difference(lhs, rhs, map_free_vars)
    if found is not None:
        raise ValueError(f"the programs differ:\n{found}")


def first_difference(lhs: Structural, rhs: Structural, map_free_vars: bool = False) -> str | None:
    """A text that shows the first parts that differ, or None if the programs are equal."""
    comparison = _Located(map_free_vars)
    return None if comparison.run(lhs, rhs) else comparison.explain()


class _Located(Comparison):
    """A comparison that remembers which nodes each pair stands in."""

    def __init__(self, map_free_vars: bool) -> None:
        super().__init__(map_free_vars)
        self._around: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._kept: list[Any] = []  # pairs are known by identity, so none of them may die
        self._now: tuple[Any, Any] | None = None

    def _compare(self, a: Any, b: Any) -> bool:
        self._now = (a, b)
        return super()._compare(a, b)

    def _push(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        if self._now is not None:
            self._kept.append((left, right))
            for pair in zip(left, right, strict=False):
                self._around.setdefault((id(pair[0]), id(pair[1])), self._now)
        return super()._push(left, right)

    def explain(self) -> str:
        """The last pair compared, which differs, and the nearest function or statement around it that fits on few lines."""
        assert self._now is not None
        a, b = self._now
        lines = [f"    lhs: {_shown(a)}", f"    rhs: {_shown(b)}"]
        seen: set[tuple[int, int]] = set()
        pair: tuple[Any, Any] | None = (a, b)
        while pair is not None and (id(pair[0]), id(pair[1])) not in seen:
            seen.add((id(pair[0]), id(pair[1])))
            pair = self._around.get((id(pair[0]), id(pair[1])))
            if pair is not None and isinstance(pair[0], (Stmt, PrimFunc, Buffer)) and pair[0] is not a:
                lines += [f"in lhs: {_shown(pair[0])}", f"in rhs: {_shown(pair[1])}"]
                break
        return "\n".join(lines)


def _shown(value: Any) -> str:
    """A value on one line: of a statement the line that it begins with."""
    if isinstance(value, (PrimFunc, IRModule)):
        return f"{type(value).__name__} {value.attrs}"
    if isinstance(value, (Stmt, PrimExpr)):
        lines = [line for line in str(value).split("\n") if " = T.Buffer(" not in line and " = T.int" not in line]
        return lines[0] + (" ..." if len(lines) > 1 else "")
    return repr(value) if isinstance(value, Buffer) else f"{value!r}"

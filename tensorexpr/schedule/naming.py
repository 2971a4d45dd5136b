"""Python names for stages and axes, as a printed schedule uses them: matmul_i_o, matmul_i_i."""

from __future__ import annotations

import re
from collections.abc import Sequence
from keyword import iskeyword

from ..te.operation import ComputeOp
from ..te.scan_op import ScanOp
from .factors import Factor, is_symbolic, sampled_value, size_of
from .tree import ScheduleTree, StageNode


def identifier(name: str) -> str:
    """`name` as a Python identifier."""
    made = re.sub(r"\W", "_", name)
    return f"{made}_" if iskeyword(made) or not made or made[0].isdigit() else made


class PythonNames:
    """The names given so far while a trace is printed line by line."""

    def __init__(self, tree: ScheduleTree) -> None:
        self._stages: dict[int, str] = {}
        self._axes: dict[tuple[int, int], str] = {}
        self._redefined: set[int] = set()
        self._tree = tree
        for stage in tree.in_order():
            self.name_stage(stage)

    def name_stage(self, stage: StageNode) -> str:
        """Give a stage its name."""
        return self._stages.setdefault(stage.id, identifier(stage.name))

    def stage(self, stage: StageNode) -> str:
        """The name of a stage."""
        return self._stages[stage.id]

    def name_axis(self, stage: StageNode, axis: int, name: str) -> str:
        """Give an axis its name."""
        self._axes[stage.id, axis] = name
        return name

    def axis(self, stage: StageNode, axis: int) -> str:
        """The name of an axis; root axes are named after the stage."""
        return self._axes.get((stage.id, axis)) or self.name_axis(stage, axis, f"{self.stage(stage)}_{identifier(stage.axes[axis].name)}")

    def short(self, stage: StageNode, axis: int) -> str:
        """The name of an axis without its stage."""
        return self.axis(stage, axis).removeprefix(f"{self.stage(stage)}_")

    def redefined(self, stage: StageNode) -> None:
        """From now on the stage's name stands for a tensor whose operation isn't what is computed."""
        self._redefined.add(stage.id)

    def axis_lines(self, stage: StageNode) -> list[str]:
        """The line that binds a stage's root axes."""
        if isinstance(stage.op, ScanOp):
            return [f"{self.axis(stage, 0)} = {self.stage(stage)}.op.scan_axis"]
        if not isinstance(stage.op, ComputeOp) or not stage.axes:
            return []
        name = self.stage(stage)
        roots = [*stage.spatial, *stage.reduction]
        bound = ", ".join(self.axis(stage, axis) for axis in roots) + ("," if len(roots) == 1 else "")
        name = f"s[{name}]" if stage.id in self._redefined else name
        reduce = f" + tuple({name}.op.reduce_axis)" if len(stage.reduction) else ""
        return [f"{bound} = tuple({name}.op.axis){reduce}"]

    def split_lines(self, stage: StageNode, axis: int, parts: tuple[int, ...], factors: Sequence[Factor]) -> list[str]:
        """The chain of two-way splits that makes a multi-way split, innermost factor first."""
        name, stem = self.stage(stage), self.axis(stage, axis)
        values = [self._value(stage, factor) for factor in factors]
        lines, rest = [], stem
        low, high = 0, len(parts) - 1
        # Each two-way split leaves one part open: factors behind the open part come off from the inside, those before it from outside.
        open_part = list(factors).index(None)
        while low < high:
            parent = rest
            if high > open_part:
                outer, inner, keyword, value = (f"{parent}_o", f"{parent}_i", "factor", values[high])
                self.name_axis(stage, parts[high], inner)
                rest, high = outer, high - 1
            else:
                outer, inner, keyword, value = (f"{parent}_o", f"{parent}_i", "nparts", values[low])
                self.name_axis(stage, parts[low], outer)
                rest, low = inner, low + 1
            lines.append(f"{outer}, {inner} = s[{name}].split({parent}, {keyword}={value})")
        self.name_axis(stage, parts[low], rest)
        return lines

    def _value(self, stage: StageNode, factor: Factor) -> str:
        if is_symbolic(factor):
            return str(size_of(self._tree, stage, factor))
        return str(sampled_value(self._tree, stage, factor) if isinstance(factor, tuple) else factor)

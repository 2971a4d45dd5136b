"""What every schedule step is: a frozen record that checks itself, applies itself, prints itself and becomes JSON."""

from __future__ import annotations

from abc import abstractmethod
from math import isfinite
from typing import Any, ClassVar

from ...dataclass import dataclass, fields
from ...errors import RecordError, ScheduleError
from ..naming import PythonNames
from ..scans import check_scan_primitive
from ..tree import Inline, ScheduleTree, StageNode

# Filled by subclasses as they are defined: a record of a log names steps by these codes, so a code is never given a new meaning.
REGISTRY: dict[str, type[Step]] = {}
JsonText = str  # of any length that a log may have


@dataclass(frozen=True)
class Step:
    """One schedule primitive with its arguments. Stages and axes are numbers, so a step fits any equal program.

    Subclasses set `code`, the name in JSON, and give `apply` (which raises ScheduleError if the step is illegal
    on the tree and leaves the tree alone) and `python` (the lines that do the same by hand).
    """

    code: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.code:
            REGISTRY[cls.code] = cls

    @abstractmethod
    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree after this step.

        Raises:
            ScheduleError: if the step is illegal there.
        """

    @abstractmethod
    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        """The Python lines that make this step."""

    def to_json(self) -> list[Any]:
        """The step as JSON: its code and then its fields in order."""
        return [self.code, *(_plain(getattr(self, f.name)) for f in fields(self))]

    @classmethod
    def from_fields(cls, values: list[Any]) -> Step:
        """The step of JSON fields, checked by the declared types of the dataclass."""
        declared = fields(cls)
        if len(values) != len(declared):
            raise RecordError(
                f"step {cls.code!r} has {len(values)} fields; it takes {len(declared)}: {', '.join(f.name for f in declared)}"
            )
        # annotations aren't evaluated, so a field's type is its text: the key of `_FIELD_TYPES`
        return cls(*(_checked(cls.code, f.name, str(f.type), value) for f, value in zip(declared, values, strict=True)))


@dataclass(frozen=True)
class StageStep(Step):
    """A step on one stage; Python writes it as a method of that stage: `s[C].storage_align(C_j, 8, 1)`."""

    stage: int

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        """What stands between the parentheses of the method."""
        return ""

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage = after[self.stage]
        return [f"s[{names.stage(stage)}].{self.code}({self.arguments(stage, names)})"]


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _is_int(value: Any) -> bool:
    # `type`, as True is an instance of int
    return type(value) is int and -(1 << 62) < value < 1 << 62


# Declared field type -> (what JSON must hold, how it becomes the field)
_FIELD_TYPES: dict[str, Any] = {
    "int": (_is_int, int),
    # Lengths are bounded, as logs come from anywhere: a record may be wrong, but not eat the memory of whoever reads it.
    "str": (lambda v: isinstance(v, str) and len(v) <= 256, str),
    "JsonText": (lambda v: isinstance(v, str) and len(v) <= 1 << 20, str),
    "bool": (lambda v: isinstance(v, bool), bool),
    "int | None": (lambda v: v is None or _is_int(v), lambda v: v),
    "PragmaValue": (
        lambda v: isinstance(v, bool) or (isinstance(v, str) and len(v) <= 1 << 20) or (v is not None and _is_factor(v)),
        lambda v: tuple(v) if isinstance(v, list) else v,
    ),
    "tuple[str, ...]": (lambda v: isinstance(v, list) and len(v) <= 16 and all(isinstance(x, str) and len(x) <= 64 for x in v), tuple),
    "tuple[int, ...]": (lambda v: isinstance(v, list) and len(v) <= 4096 and all(map(_is_int, v)), tuple),
    "tuple[int, ...] | None": (
        lambda v: v is None or (isinstance(v, list) and all(map(_is_int, v))),
        lambda v: None if v is None else tuple(v),
    ),
    "AxisExpression": (lambda v: _is_int(v) or (isinstance(v, list) and len(str(v)) <= 1 << 14), lambda v: _tuples(v)),
    "tuple[AxisExpression, ...]": (
        lambda v: isinstance(v, list) and len(v) <= 64 and len(str(v)) <= 1 << 14 and all(isinstance(x, list) or _is_int(x) for x in v),
        lambda v: _tuples(v),
    ),
    "PadValue": (
        lambda v: v is None or _is_int(v) or (type(v) is float and isfinite(v)) or v in ("inf", "-inf", "nan"),
        lambda v: v,
    ),
    "tuple[float, ...]": (lambda v: isinstance(v, list) and all(isinstance(x, (int, float)) for x in v), lambda v: tuple(map(float, v))),
    "tuple[Factor, ...]": (
        lambda v: isinstance(v, list) and 2 <= len(v) <= 64 and all(_is_factor(x) or _is_symbolic(x) for x in v),
        lambda v: tuple(_tuples(x) for x in v),
    ),
}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _is_factor(value: Any) -> bool:
    return value is None or _is_int(value) or (isinstance(value, list) and 2 <= len(value) <= 16 and all(map(_is_int, value)))


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str) and len(str(value)) <= 1 << 12


def _checked(code: str, name: str, declared: str, value: Any) -> Any:
    accepts, make = _FIELD_TYPES[declared]
    if not accepts(value):
        raise RecordError(f"step {code!r}: field {name} is {str(value)[:80]!r}; it takes {declared}")
    return make(value)


def step_from_json(data: Any) -> Step:
    """The step of a JSON value.

    Raises:
        RecordError: unless it is a list that starts with the code of a known step, followed by its fields.
    """
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise RecordError(f"a step is a list that starts with its name, not {str(data)[:80]!r}")
    known = REGISTRY.get(data[0])
    if known is None:
        raise RecordError(f"no step is called {data[0][:40]!r}; known: {', '.join(sorted(REGISTRY))}")
    return known.from_fields(data[1:])


def stage_of(tree: ScheduleTree, number: int, primitive: str) -> StageNode:
    """The stage a step is about.

    Raises:
        ScheduleError: if the number is no stage, or the stage is a placeholder (which has no loops).
    """
    if not 0 <= number < len(tree.stages):
        raise ScheduleError(f"{primitive}: the schedule has no stage {number}; stages: {', '.join(s.name for s in tree.in_order())}")
    stage = tree[number]
    if stage.is_placeholder:
        raise ScheduleError(f"{primitive}: {stage.name} is a placeholder and has no loops; use cache_read to stage its elements")
    if primitive not in _FOR_EXTERNS:
        check_has_loops(stage, primitive)
    check_scan_primitive(tree, stage, primitive)
    return stage


# What can be said about a stage that only has a statement.
_FOR_EXTERNS = ("compute_root", "set_scope", "bind_loops")


def check_has_loops(stage: StageNode, primitive: str) -> None:
    """Refuse a stage of te.extern for what is about axes."""
    if not stage.has_loops and not stage.is_placeholder:
        raise stage.refused(
            f"{primitive} needs loops to schedule, but the stage is an extern, whose statement is taken "
            "as it is and computed at the root; write its loops as they shall run (ib.for_range(..., kind='parallel'))"
        )


def check_leaf(stage: StageNode, axis: int, primitive: str) -> None:
    """Refuse an axis that is no loop of the stage (any more)."""
    if axis in stage.leaf:
        return
    if 0 <= axis < len(stage.axes):
        name = stage.axes[axis].name
        raise stage.refused(f"axis {name!r} was split or fused, so it can't be given to {primitive}; axes: {stage.axis_names()}")
    raise stage.refused(f"no axis number {axis} to {primitive}; axes: {stage.axis_names()}")


def loops_of(tree: ScheduleTree, number: int, axes: tuple[int, ...], primitive: str) -> StageNode:
    """The stage of a number, which has loops of its own and, among them, those axes.

    Raises:
        ScheduleError: for what `stage_of` refuses, an inlined stage, and axes that are no loops (any more).
    """
    stage = stage_of(tree, number, primitive)
    check_not_inlined(stage, primitive)
    for axis in axes:
        check_leaf(stage, axis, primitive)
    return stage


def check_not_inlined(stage: StageNode, primitive: str) -> None:
    """Refuse loops of a stage that has none because it is inlined."""
    if isinstance(stage.attach, Inline):
        raise stage.refused(f"{primitive} needs loops, but the stage is inlined; use compute_root or compute_at first")

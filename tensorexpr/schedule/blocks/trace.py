"""A trace of instructions and decisions: it is the schedule. It prints as Python, becomes JSON, and is replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...arith import index_map_from_json
from ...errors import RecordError
from ...tir.expr import FloatImm, IntImm, PrimExpr, StringImm, Var
from .handles import RV, BlockRV, LoopRV
from .instruction import Instruction, primitive_of

if TYPE_CHECKING:
    from .tir_schedule import Schedule

DecisionProvider = Callable[[Instruction, "list[Any]", "list[Any]", Any], Any]

MAX_INSTRUCTIONS = 10_000
HEADER = ("# from tensorexpr import tir", "def apply_trace(sch: tir.Schedule) -> None:")
ENTER_POSTPROC = "EnterPostproc"


class Trace:
    """Instructions in order, and for sampling instructions what was decided.

    Args:
        insts: the instructions.
        decisions: by instruction.
    """

    def __init__(self, insts: Sequence[Instruction] = (), decisions: Mapping[Instruction, Any] | None = None) -> None:
        self.insts: list[Instruction] = list(insts)
        self.decisions: dict[Instruction, Any] = dict(decisions or {})

    def get_decision(self, inst: Instruction) -> Any:
        """What was decided at an instruction; None if nothing was."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add an instruction at the end."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Take the last instruction away; None if there is none."""
        if not self.insts:
            return None
        inst = self.insts.pop()
        self.decisions.pop(inst, None)
        return inst

    def copy(self) -> Trace:
        """A trace with the same instructions that grows on its own."""
        return Trace(self.insts, self.decisions)

    def kept(self, remove_postproc: bool) -> list[Instruction]:
        """The instructions, without those of postprocessing if asked."""
        if not remove_postproc:
            return list(self.insts)
        end = next((n for n, inst in enumerate(self.insts) if inst.kind == ENTER_POSTPROC), len(self.insts))
        return self.insts[:end]

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """This trace with another decision at one instruction.

        Raises:
            RecordError: if the instruction is not of this trace, or samples nothing.
        """
        if inst not in self.insts or not inst.primitive.is_sampling:
            raise RecordError(f"{inst.kind} is no sampling instruction of this trace; it has no decision to replace")
        kept = self.kept(remove_postproc)
        return Trace(kept, {**{i: d for i, d in self.decisions.items() if i in set(kept)}, inst: decision})

    def simplified(self, remove_postproc: bool) -> Trace:
        """This trace without instructions that only ask, or sample, for what nobody uses."""
        used: set[RV] = set()
        found: list[Instruction] = []
        for inst in reversed(self.kept(remove_postproc)):
            if inst.primitive.is_pure and not used.intersection(inst.outputs):
                continue
            found.append(inst)
            used.update(_handles(inst.inputs))
        found.reverse()
        return Trace(found, {inst: self.decisions[inst] for inst in found if inst in self.decisions})

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool, decision_provider: DecisionProvider | None = None) -> None:
        """Do the same to another schedule.

        Args:
            decision_provider: called as (instruction, inputs, attrs, decision) for each sampling instruction; what it gives is decided.
        """
        meaning: dict[RV, RV] = {}
        for inst in self.kept(remove_postproc):
            inputs = [_mapped(value, meaning) for value in inst.inputs]
            decision = self.decisions.get(inst)
            if decision_provider is not None and inst.primitive.is_sampling:
                decision = decision_provider(inst, inputs, list(inst.attrs), decision)
            made = sch.run(inst.kind, inputs, inst.attrs, decision)
            meaning.update(zip(inst.outputs, made, strict=True))

    def names(self) -> dict[RV, str]:
        """A name for each handle that an instruction gives: b, l or v and a number in order."""
        found: dict[RV, str] = {}
        for inst in self.insts:
            for rv in inst.outputs:
                letter = "b" if isinstance(rv, BlockRV) else "l" if isinstance(rv, LoopRV) else "v"
                found[rv] = f"{letter}{len(found)}"
        return found

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """One line of Python for each instruction."""
        names = self.names()
        return [self._line(inst, names) for inst in self.kept(remove_postproc)]

    def _line(self, inst: Instruction, names: Mapping[RV, str]) -> str:
        primitive = inst.primitive
        arguments = primitive.arguments(inst.inputs, inst.attrs)
        if inst in self.decisions:
            arguments.append(("decision", self.decisions[inst]))
        shown = ", ".join(f"{name}={_python(value, names)}" if name else _python(value, names) for name, value in arguments)
        outputs = ", ".join(names[rv] for rv in inst.outputs)
        return f"{outputs} = sch.{primitive.method}({shown})" if outputs else f"sch.{primitive.method}({shown})"

    def as_json(self, remove_postproc: bool = False) -> Any:
        """Instructions and decisions as TVM writes them: [[kind, inputs, attrs, outputs], ...], [[place, decision], ...]."""
        names, kept = self.names(), self.kept(remove_postproc)
        insts = [
            [inst.kind, [_json(v, names) for v in inst.inputs], _plain(inst.attrs), [names[rv] for rv in inst.outputs]] for inst in kept
        ]
        return [insts, [[n, _plain(self.decisions[inst])] for n, inst in enumerate(kept) if inst in self.decisions]]

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Schedule) -> None:
        """Do what the JSON of a trace says.

        Raises:
            RecordError: if it is none.
            ScheduleError: if an instruction is illegal on this schedule.
        """
        insts, decisions = _checked(json_obj)
        decided = dict(decisions)
        meaning: dict[str, RV] = {}
        for number, (kind, inputs, attrs, outputs) in enumerate(insts):
            given = primitive_of(kind).attrs_from_json(attrs)
            made = sch.run(kind, [_from_json(value, meaning) for value in inputs], given, decided.get(number))
            if len(made) != len(outputs):
                raise RecordError(f"instruction {number} ({kind}) gives {len(made)} values here, {len(outputs)} in the trace")
            meaning.update(zip(outputs, made, strict=True))

    @staticmethod
    def from_json(json_obj: Any) -> Trace:
        """The trace that JSON describes, with handles of its own; nothing is applied, so whether it is legal anywhere shows later.

        Raises:
            RecordError: if it is none, or has instructions that nobody knows.
        """
        insts, decisions = _checked(json_obj)
        meaning: dict[str, RV] = {}
        found: list[Instruction] = []
        for kind, inputs, attrs, outputs in insts:
            primitive_of(kind)
            made = tuple(BlockRV() if name[0] == "b" else LoopRV() if name[0] == "l" else Var("v", "int32") for name in outputs)
            found.append(Instruction(kind, tuple(_from_json(value, meaning) for value in inputs), tuple(attrs), made))
            meaning.update(zip(outputs, made, strict=True))
        return Trace(found, {found[number]: decision for number, decision in decisions})

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the trace as Python.

        Args:
            style: "ansi", "light" or "dark" for colours, "plain" for none; None for colours on a terminal alone.
            black_format: accepted and without effect.
        """
        print(PrimExpr._printers["shown"](str(self), style))

    def __str__(self) -> str:
        return "\n".join((*HEADER, *(f"  {line}" for line in self.as_python())))

    def __len__(self) -> int:
        return len(self.insts)


def _handles(values: Sequence[Any]) -> list[RV]:
    found: list[RV] = []
    for value in values:
        if isinstance(value, (BlockRV, LoopRV, Var)):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _handles(value)
        elif isinstance(value, Mapping):
            found += _handles(list(value.values()))
    return found


def _mapped(value: Any, meaning: Mapping[RV, RV]) -> Any:
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return meaning.get(value, value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, meaning) for item in value)
    return {key: _mapped(item, meaning) for key, item in value.items()} if isinstance(value, dict) else value


def _python(value: Any, names: Mapping[RV, str]) -> str:
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return names.get(value, "_")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_python(item, names) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_python(k, names)}: {_python(v, names)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    as_python = getattr(value, "as_python", None)
    return as_python() if as_python is not None else str(value) if isinstance(value, PrimExpr) else repr(value)


def _json(value: Any, names: Mapping[RV, str]) -> Any:
    """An input: a handle by its name, a string in quotes."""
    if isinstance(value, (BlockRV, LoopRV, Var)):
        return names[value]
    if value is None:
        return "None"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return {key: _json(item, names) for key, item in value.items()}
    return [_json(item, names) for item in value] if isinstance(value, (list, tuple)) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    to_json = getattr(value, "to_json", None)
    return int(value) if isinstance(value, bool) else to_json() if to_json is not None else value


def _from_json(value: Any, meaning: Mapping[str, RV]) -> Any:
    if isinstance(value, str):
        if value.startswith('"') and value.endswith('"') and len(value) > 1:
            return value[1:-1]
        if value.startswith("{"):
            return index_map_from_json(value)
        if value == "None":
            return None
        if value not in meaning:
            raise RecordError(f"the trace uses {value[:40]!r} before an instruction gives it")
        return meaning[value]
    if isinstance(value, dict):
        return {key: _from_json(item, meaning) for key, item in value.items()}
    return [_from_json(item, meaning) for item in value] if isinstance(value, list) else value


def _checked(data: Any) -> tuple[list[Any], list[Any]]:
    """The instructions and decisions of JSON, by shape.

    Raises:
        RecordError: if they have another one.
    """
    if not isinstance(data, (list, tuple)) or len(data) != 2 or not all(isinstance(part, list) for part in data):
        raise RecordError("a trace is a list of two lists: instructions and decisions")
    insts, decisions = data
    if len(insts) > MAX_INSTRUCTIONS:
        raise RecordError(f"a trace has at most {MAX_INSTRUCTIONS} instructions, not {len(insts)}")
    for number, inst in enumerate(insts):
        shape = isinstance(inst, list) and len(inst) == 4 and isinstance(inst[0], str) and all(isinstance(part, list) for part in inst[1:])
        if not shape or not all(isinstance(name, str) and name[:1] in "blv" for name in inst[3]):
            raise RecordError(f"instruction {number} is no [kind, inputs, attrs, outputs]: {str(inst)[:80]}")
    for decision in decisions:
        if not isinstance(decision, list) or len(decision) != 2 or type(decision[0]) is not int or not 0 <= decision[0] < len(insts):
            raise RecordError(f"a decision is [number of the instruction, value], not {str(decision)[:80]}")
    return insts, decisions

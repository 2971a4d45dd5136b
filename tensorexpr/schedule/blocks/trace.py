"""A trace of instructions and decisions: it is the schedule. It prints as Python, becomes JSON, and is replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import RecordError, ScheduleError, TensorExprError
from ...tir.expr import PrimExpr, Var
from ...tir.printer.program import known_package
from .handles import RV, BlockRV, LoopRV
from .instruction import Instruction, primitive_of
from .trace_values import as_json_value, checked_trace, from_json_value, handles_in, mapped, plain

if TYPE_CHECKING:
    from .schedule import Schedule

DecisionProvider = Callable[[Instruction, "list[Any]", "list[Any]", Any], Any]

HEADER = "def apply_trace(sch: tir.Schedule) -> None:"
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
        decisions = {other: self.decisions[other] for other in kept if other in self.decisions}
        return Trace(kept, {**decisions, inst: decision})

    def simplified(self, remove_postproc: bool, *, keep_samples: bool = False) -> Trace:
        """This trace without instructions that only ask, or sample, for what nobody uses.

        Args:
            remove_postproc: leave out what postprocessors did too.
            keep_samples: leave all that is sampled: it counts as a decision of the trace.
        """
        used: set[RV] = set()
        found: list[Instruction] = []
        # from the end, so that all who use an output are known when its instruction is met
        for inst in reversed(self.kept(remove_postproc)):
            wanted = keep_samples and inst.primitive.is_sampling
            if inst.primitive.is_pure and not wanted and not used.intersection(inst.outputs):
                continue
            found.append(inst)
            used.update(handles_in(inst.inputs))
        found.reverse()
        return Trace(found, {inst: self.decisions[inst] for inst in found if inst in self.decisions})

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool, decision_provider: DecisionProvider | None = None) -> None:
        """Do the same to another schedule.

        Args:
            decision_provider: called as (instruction, inputs, attrs, decision) for each sampling instruction; what it gives is decided.
        """
        meaning: dict[RV, RV] = {}
        for inst in self.kept(remove_postproc):
            inputs = [mapped(value, meaning) for value in inst.inputs]
            decision = self.decisions.get(inst)
            if decision_provider is not None and inst.primitive.is_sampling:
                decision = decision_provider(inst, inputs, list(inst.attrs), decision)
            made = sch.run(inst.kind, inputs, inst.attrs, decision)
            if len(made) != len(inst.outputs):
                raise ScheduleError(
                    f"{inst.primitive.method} gives {len(made)} values here and {len(inst.outputs)} in the trace: keep loops of one "
                    "iteration (preserve_unit_loops=True) where their number depends on decisions"
                )
            meaning.update(zip(inst.outputs, made, strict=True))

    def names(self) -> dict[RV, str]:
        """A name for each handle that an instruction gives: b, l or v and a number in order."""
        found: dict[RV, str] = {}
        for inst in self.insts:
            for rv in inst.outputs:
                letter = "b" if isinstance(rv, BlockRV) else "l" if isinstance(rv, LoopRV) else "v"
                # one count for all kinds, as in TVM's traces
                found[rv] = f"{letter}{len(found)}"
        return found

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """One line of Python for each instruction."""
        names = self.names()
        return [inst.as_python(names, self.decisions.get(inst)) for inst in self.kept(remove_postproc)]

    def as_json(self, remove_postproc: bool = False) -> Any:
        """Instructions and decisions as TVM writes them: [[kind, inputs, attrs, outputs], ...], [[place, decision], ...]."""
        names, kept = self.names(), self.kept(remove_postproc)
        insts = [
            [inst.kind, [as_json_value(v, names) for v in inst.inputs], plain(inst.attrs), [names[rv] for rv in inst.outputs]]
            for inst in kept
        ]
        return [insts, [[n, plain(self.decisions[inst])] for n, inst in enumerate(kept) if inst in self.decisions]]

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Schedule) -> None:
        """Do what the JSON of a trace says.

        Raises:
            RecordError: if it is none.
            ScheduleError: if an instruction is illegal on this schedule.
        """
        insts, decisions = checked_trace(json_obj)
        decided = dict(decisions)
        meaning: dict[str, RV] = {}
        for number, (kind, inputs, attrs, outputs) in enumerate(insts):
            given = primitive_of(kind).attrs_from_json(attrs)
            try:
                made = sch.run(kind, [from_json_value(value, meaning) for value in inputs], given, decided.get(number))
            except TensorExprError:
                raise
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # attributes of another number or kind
                raise RecordError(f"instruction {number}, {kind}, doesn't take the attributes {attrs!r}: {error}") from error
            if len(made) != len(outputs):
                raise RecordError(f"instruction {number} ({kind}) gives {len(made)} values here, {len(outputs)} in the trace")
            meaning.update(zip(outputs, made, strict=True))

    @staticmethod
    def from_json(json_obj: Any) -> Trace:
        """The trace that JSON describes, with handles of its own; nothing is applied, so whether it is legal anywhere shows later.

        Raises:
            RecordError: if it is none, or has instructions that nobody knows.
        """
        insts, decisions = checked_trace(json_obj)
        meaning: dict[str, RV] = {}
        found: list[Instruction] = []
        for kind, inputs, attrs, outputs in insts:
            primitive_of(kind)
            # the first letter tells the kind, as `names` writes it
            made = tuple(BlockRV() if name[0] == "b" else LoopRV() if name[0] == "l" else Var("v", "int32") for name in outputs)
            found.append(Instruction(kind, tuple(from_json_value(value, meaning) for value in inputs), tuple(attrs), made))
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
        return "\n".join((f"# from {known_package()} import tir", HEADER, *(f"  {line}" for line in self.as_python() or ["pass"])))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return PrimExpr._printers["html"](str(self))

    def __len__(self) -> int:
        return len(self.insts)

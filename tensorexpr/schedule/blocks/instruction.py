"""What a primitive is, and one application of it.

A primitive is a class with a kind (its name in JSON), the façade's method and the names of the arguments there; `apply`
takes them with handles resolved and gives the module after it. An instruction is one application: handles and values in,
handles out. The vocabulary is that of TVM's traces.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ...dataclass import dataclass, field, replace
from ...errors import RecordError, ScheduleError
from ...tir.expr import Var
from .diagnostics import WrongTypeError
from .handles import RV, BlockRef, BlockRV, LoopRef, LoopRV, NoLoop, Ref
from .program import BlockProgram
from .trace_values import as_python_text

KINDS: dict[str, Primitive] = {}
# What gives a list, even of one.
_LISTS = {"GetLoops", "GetChildBlocks", "GetProducers", "GetConsumers", "GetOutputBlocks", "Split", "LoopPartition"}


@dataclass(frozen=True)
class State:
    """What primitives change: the programs of a module by name, and the random numbers of sampling primitives."""

    programs: Mapping[str, BlockProgram]
    rng: random.Random = field(default_factory=random.Random)

    def __getitem__(self, func: str) -> BlockProgram:
        return self.programs[func]

    def updated(self, func: str, program: BlockProgram) -> State:
        """The state with one program replaced."""
        return replace(self, programs={**self.programs, func: program})

    def program_of(self, ref: BlockRef | LoopRef) -> BlockProgram:
        """The program that a block or loop belongs to."""
        return self.programs[ref.func]


@dataclass(frozen=True, slots=True)
class Applied:
    """What an application gives: the state after it, what the outputs stand for, and what was decided.

    `renamed` has what handles of before stand for now where that isn't the same block or loop: another name or variable that goes on
    for it, or None for one that is gone. Handles of blocks and loops that keep their name or variable need no mention.
    """

    state: State
    outputs: tuple[Ref | int, ...] = ()
    decision: Any = None
    renamed: Mapping[BlockRef | LoopRef, BlockRef | LoopRef | None] = field(default_factory=dict)


class Primitive(ABC):
    """One kind of instruction.

    Subclasses set `kind` (TVM's name), `method` (of the façade), `inputs` and `attrs` (the names of its arguments, in
    order: inputs may be handles, attrs are plain data; a name with a star or dots takes all that is left) and `output`
    ("block", "loop", "expr" or "" for none).
    `is_pure`: it only asks, so that an instruction whose outputs nobody uses may be dropped.
    """

    kind: ClassVar[str] = ""
    method: ClassVar[str] = ""
    inputs: ClassVar[tuple[str, ...]] = ()
    attrs: ClassVar[tuple[str, ...]] = ()
    output: ClassVar[str] = ""
    is_pure: ClassVar[bool] = False
    is_sampling: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if cls.kind:
            # primitives have no state, so one object serves all instructions
            KINDS[cls.kind] = cls()

    @abstractmethod
    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The state after this primitive.

        Args:
            inputs: with handles replaced by what they stand for (BlockRef, LoopRef, int).
            attrs: plain data.
            decision: for sampling primitives, what to decide; None for a random choice.

        Raises:
            ScheduleError: if it is illegal there; the state is as it was.
        """

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        """The arguments of the façade's method by name, in order; positional ones have no name."""
        named: list[tuple[str, Any]] = []
        for place, name in enumerate(self.inputs):
            if name.startswith("*"):
                named.extend(("", value) for value in inputs[place:])
            elif name.endswith("..."):
                named.append((name.removesuffix("..."), list(inputs[place:])))
            else:
                named.append((name, inputs[place]))
        return named + list(zip(self.attrs, map(self.shown, self.attrs, attrs), strict=True))

    def attrs_from_json(self, attrs: Sequence[Any]) -> Sequence[Any]:
        """The attributes as `apply` takes them, of those in JSON."""
        return attrs

    def shown(self, name: str, value: Any) -> Any:
        """An attribute as the façade's method takes it: JSON has numbers for truth values."""
        return bool(value) if name in _FLAGS and isinstance(value, int) else value


class BlockPrimitive(Primitive):
    """A primitive that is a function of a program, the name of a block and what else the instruction has."""

    inputs: ClassVar[tuple[str, ...]] = ("block",)
    change: ClassVar[Callable[..., BlockProgram | tuple[BlockProgram, str | Sequence[str]]]]
    """Gives the program and, for primitives with outputs, the name or names of the blocks that they stand for."""

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """`change`, with numbers of any type as integers, as traces write them."""
        ref, *given = block_of(state, inputs[0], self.method), *inputs[1:], *attrs
        made = type(self).change(state.program_of(ref), ref.name, *(_plain_number(one) for one in given))
        program, names = made if isinstance(made, tuple) else (made, ())
        blocks = (names,) if isinstance(names, str) else names
        return Applied(state.updated(ref.func, program), tuple(BlockRef(ref.func, name) for name in blocks))


def _plain_number(value: Any) -> Any:
    return int(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value


_FLAGS = {"preserve_unit_iters", "disable_predication", "balanced", "preserve_unit_loops", "assume_injective_transform"}


class InstructionKind(str):
    """The kind of an instruction: its name, which knows what is known of all of the kind."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in traces."""
        return str(self)

    def same_as(self, other: object) -> bool:
        """True if the other is the same kind."""
        return self == other

    @property
    def is_pure(self) -> bool:
        """True if it only asks or samples."""
        return primitive_of(self).is_pure

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of a name.

        Raises:
            RecordError: if there is none.
        """
        return InstructionKind(primitive_of(name).kind)


@dataclass(frozen=True, eq=False)
class Instruction:
    """One application of a primitive: identity is equality, since decisions belong to the place in a trace."""

    kind: str
    inputs: tuple[Any, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[RV, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", InstructionKind(self.kind))

    def same_as(self, other: object) -> bool:
        """True if the other is this very instruction."""
        return self is other

    def __str__(self) -> str:
        """The line of Python; handles have no names outside of a trace."""
        return self.as_python({})

    def as_python(self, names: Mapping[RV, str], decision: Any = None) -> str:
        """The line of Python that does this.

        Args:
            names: of handles.
            decision: what was decided, if something was.
        """
        arguments = self.primitive.arguments(self.inputs, self.attrs)
        if decision is not None:
            arguments.append(("decision", decision))
        shown = ", ".join(f"{name}={as_python_text(value, names)}" if name else as_python_text(value, names) for name, value in arguments)
        outputs = ", ".join(names.get(rv, "_") for rv in self.outputs)
        # `l1, = sch.get_loops(...)`: the call gives a list of one
        if len(self.outputs) == 1 and self.kind in _LISTS:
            outputs += ","
        return f"{outputs} = sch.{self.primitive.method}({shown})" if outputs else f"sch.{self.primitive.method}({shown})"

    @property
    def primitive(self) -> Primitive:
        """The primitive.

        Raises:
            RecordError: if nobody registered one of that name.
        """
        return primitive_of(self.kind)


def primitive_of(kind: str) -> Primitive:
    """The primitive of a name.

    Raises:
        RecordError: if there is none.
    """
    if kind not in KINDS:
        raise RecordError(f"no primitive is called {kind[:40]!r}; known: {', '.join(sorted(KINDS))}")
    return KINDS[kind]


def handle(output: Ref | int) -> RV:
    """A fresh handle for what an instruction gives."""
    if isinstance(output, int):
        return Var("v", "int32")
    return BlockRV() if isinstance(output, BlockRef) else LoopRV()


def block_of(state: State, ref: Any, primitive: str) -> BlockRef:
    """The argument, which must be a block; a name stands for the block in the only function or in "main".

    Raises:
        ScheduleError: if it is something else.
    """
    if isinstance(ref, BlockRef):
        return ref
    if isinstance(ref, str):
        return BlockRef(next(iter(state.programs)) if len(state.programs) == 1 else "main", ref)
    raise WrongTypeError(f"{primitive} takes a block, as get_block gives it, not {_described(ref)}")


def loop_of(ref: Any, primitive: str, func: str | None = None) -> LoopRef:
    """The argument, which must be a loop.

    Args:
        func: the function that it must be of, if there is a block beside it.

    Raises:
        ScheduleError: if it is something else.
    """
    if isinstance(ref, LoopRef):
        if func is not None and ref.func != func:
            raise ScheduleError(f"{primitive}: the loop over {ref.var.name} is of the function {ref.func}, the block of {func}")
        return ref
    if isinstance(ref, NoLoop):
        raise ScheduleError(f"{primitive} takes a loop, not the root or inline place that sample_compute_location gave")
    raise WrongTypeError(f"{primitive} takes a loop, as get_loops gives it, not {_described(ref)}")


def _described(value: Any) -> str:
    return "a block" if isinstance(value, BlockRef) else "a loop" if isinstance(value, LoopRef) else repr(value)


def described(ref: BlockRef | LoopRef) -> str:
    """A block or loop in words."""
    return f"the block {ref.name}" if isinstance(ref, BlockRef) else f"the loop over {ref.var.name}"

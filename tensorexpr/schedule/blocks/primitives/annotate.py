"""Annotate and unannotate: what passes and searches are told about a block or loop. enter_postproc: where postprocessing begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....errors import ScheduleError
from ....tir.attrs import FrozenMap
from ....tir.block import BlockRealize
from ....tir.stmt import For
from ..instruction import Applied, Primitive, State
from ..program import BlockProgram, Node
from .queries import place_of


def annotations_of(node: Node) -> FrozenMap:
    """What a loop or a realized block is annotated with."""
    stmt = node.stmt
    found = stmt.block.annotations if isinstance(stmt, BlockRealize) else stmt.annotations if isinstance(stmt, For) else None
    return FrozenMap() if found is None else found


def with_annotations(program: BlockProgram, node: Node, annotations: Mapping[str, Any]) -> BlockProgram:
    """The program with a loop or block annotated otherwise."""
    stmt = node.stmt
    if isinstance(stmt, BlockRealize):
        return program.replace(stmt, replace(stmt, block=replace(stmt.block, annotations=FrozenMap(annotations))))
    assert isinstance(stmt, For)
    return program.replace(stmt, replace(stmt, annotations=FrozenMap(annotations)))


class Annotate(Primitive):
    """The instruction."""

    kind, method, inputs, attrs = "Annotate", "annotate", ("block_or_loop", "ann_val"), ("ann_key",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref, node = place_of(state, inputs[0], self.method)
        program = with_annotations(state.program_of(ref), node, {**annotations_of(node), str(attrs[0]): _plain(inputs[1])})
        return Applied(state.updated(ref.func, program))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        return [("block_or_loop", inputs[0]), ("ann_key", attrs[0]), ("ann_val", inputs[1])]


class Unannotate(Primitive):
    """The instruction."""

    kind, method, inputs, attrs = "Unannotate", "unannotate", ("block_or_loop",), ("ann_key",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The loop or block without that annotation.

        Raises:
            ScheduleError: if it hasn't it.
        """
        ref, node = place_of(state, inputs[0], self.method)
        known = annotations_of(node)
        if attrs[0] not in known:
            raise ScheduleError(f"unannotate: there is no annotation {attrs[0]!r}; annotations: {', '.join(known) or 'none'}")
        program = with_annotations(state.program_of(ref), node, {key: value for key, value in known.items() if key != attrs[0]})
        return Applied(state.updated(ref.func, program))


class EnterPostproc(Primitive):
    """The instruction: what follows isn't part of the design space."""

    kind, method = "EnterPostproc", "enter_postproc"

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        return Applied(state)


def _plain(value: Any) -> Any:
    """An annotation that nobody can change later."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return FrozenMap({str(key): _plain(item) for key, item in value.items()})
    if isinstance(value, bool):
        return int(value)  # as traces write it
    if not isinstance(value, (str, int, float)) and not hasattr(value, "dtype"):
        raise ScheduleError(f"an annotation is a text, number or expression, or a list or mapping of them, not {value!r}")
    return value

"""Merge: nests side by side become one.

for i, j in T.grid(4, 8):                  ->   for i_m, j_m in T.grid(4, 8):             # merge(j of B, j of C)
    B: vi = i, vj = j                               B: vi = i_m, vj = j_m
for i, j in T.grid(4, 8):                           C: vi = i_m, vj = j_m
    C: vi = i, vj = j

An iteration may not need from an earlier nest what that makes in a later iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, takewhile
from typing import Any

from ....arith.block_access import touched_regions
from ....dataclass import dataclass, replace
from ....errors import ScheduleError
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import Var
from ....tir.rewriting import substitute
from ....tir.stmt import For, SeqStmt, Stmt, seq
from ..apart import is_apart
from ..bindings import ranges_of
from ..diagnostics import PrimitiveError
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State, loop_of
from ..nests import nested
from ..program import BlockProgram, Node, common_ancestors, inner_statements
from ..scope import read, written
from .split import check_plain


@dataclass(frozen=True)
class _Nest:
    """The loops of one nest that are merged, outermost first, and the statement that they are."""

    loops: tuple[For, ...]

    @property
    def body(self) -> Stmt:
        """What stands in the innermost."""
        return self.loops[-1].body


def merge(program: BlockProgram, names: Sequence[Var]) -> tuple[BlockProgram, Var, list[Var]]:
    """The program with nests, down to the loops named, as one; the innermost merged variable; and those that are gone."""
    if len(names) < 2 or len(set(names)) != len(names):
        raise ScheduleError("merge takes at least two loops, each once")
    nodes = [program.loop_node(name) for name in names]
    listed, nests = _nests(program, nodes)
    _check_alike(nests)
    # as in the text, so that the first of a pair in `_check_order` is the one that ran first
    order = sorted(range(len(nests)), key=lambda n: next(place for place, one in enumerate(listed) if one is nests[n].loops[0]))
    nests = [nests[n] for n in order]
    made = tuple(Var(f"{loop.loop_var.name}_m", loop.loop_var.dtype) for loop in nests[0].loops)
    bodies = [substitute(nest.body, dict(zip((loop.loop_var for loop in nest.loops), made, strict=True))) for nest in nests]
    _check_order(program, nodes[0], nests, made, bodies)
    _check_between(listed, nests)
    merged = nested([replace(loop, loop_var=var) for loop, var in zip(nests[0].loops, made, strict=True)], seq(*bodies))
    changes: dict[Stmt, Stmt | None] = {nest.loops[0]: None for nest in nests[:-1]}
    gone = [loop.loop_var for nest in nests for loop in nest.loops]
    return program.replaced({**changes, nests[-1].loops[0]: merged}), made[-1], gone


def _nests(program: BlockProgram, nodes: Sequence[Node]) -> tuple[list[Stmt], list[_Nest]]:
    """The statements at the innermost place around all loops, and the nests from there down to each."""
    place = next((one for one in common_ancestors(nodes) if isinstance(one.stmt, (For, Block, BlockRealize, SeqStmt))), None)
    one_in_another = any(above is other for node in nodes for above in node.ancestors() for other in nodes)
    if place is None or one_in_another:
        raise PrimitiveError("merge takes loops beside each other, not one in another", nodes[0].stmt)
    nests = []
    for node in nodes:
        inside = [one.stmt for one in takewhile(lambda one: one is not place, (node, *node.ancestors()))][::-1]
        loops = [stmt for stmt in inside if isinstance(stmt, For)]
        # Anything else between the loops would run once for each merged iteration, or move past the other nests.
        is_perfect = len(loops) == len(inside) and all(outer.body is inner for outer, inner in pairwise(loops))
        if not is_perfect:
            raise PrimitiveError("merge takes loops that stand alone in the loops around them, in one scope", node.stmt)
        nests.append(_Nest(tuple(loops)))
    body = place.stmt if isinstance(place.stmt, SeqStmt) else inner_statements(place.stmt)[0]
    return (list(body.seq) if isinstance(body, SeqStmt) else [body]), nests


def _check_alike(nests: Sequence[_Nest]) -> None:
    """The same number of loops, over the same ranges, that say nothing on how they run."""
    first = nests[0]
    for nest in nests:
        for loop in nest.loops:
            check_plain(loop, "merge")
        if len(nest.loops) != len(first.loops):
            raise PrimitiveError(
                f"merge takes loops of equal depth, not {len(first.loops)} and {len(nest.loops)} below their common place", nest.loops[-1]
            )
        for one, other in zip(first.loops, nest.loops, strict=True):
            # By identity: extents that are merely proved equal would still read as two.
            if one.extent is not other.extent or one.kind is not other.kind:
                left, right = (f"{loop.loop_var.name} ({loop.extent})" for loop in (one, other))
                raise PrimitiveError(f"merge takes loops of equal extent and kind, not {left} and {right}", other)


def _check_between(listed: Sequence[Stmt], nests: Sequence[_Nest]) -> None:
    """Nests move down to the last: nothing that stands between may depend on them."""
    tops = [nest.loops[0] for nest in nests]
    last = next(n for n, one in enumerate(listed) if one is tops[-1])
    for top in tops[:-1]:
        start = next(n for n, one in enumerate(listed) if one is top)
        for between in listed[start + 1 : last]:
            if any(between is other for other in tops):
                continue
            shared = _conflicts(top, between)
            if shared:
                raise PrimitiveError(
                    f"merge: a statement between the nests depends on {next(iter(shared)).name}, which the nest over "
                    f"{top.loop_var.name} accesses; merge what is next to each other",
                    top,
                )


def _accessed(stmt: Stmt) -> tuple[set[Buffer], set[Buffer]]:
    """The buffers that the blocks in a statement say they read, and those they write."""
    if isinstance(stmt, BlockRealize):
        made = set(written(stmt.block))
        # a reduction with an init reads its own result without stating it
        return set(read(stmt.block)) | (made if stmt.block.init is not None else set()), made
    reads: set[Buffer] = set()
    writes: set[Buffer] = set()
    for inner in inner_statements(stmt):
        r, w = _accessed(inner)
        reads |= r
        writes |= w
    return reads, writes


def _conflicts(one: Stmt, other: Stmt) -> set[Buffer]:
    """The buffers that both access, at least one writing."""
    (r1, w1), (r2, w2) = _accessed(one), _accessed(other)
    return (w1 & (r2 | w2)) | (w2 & r1)


def _check_order(program: BlockProgram, node: Node, nests: Sequence[_Nest], made: Sequence[Var], bodies: Sequence[Stmt]) -> None:
    """Of two nests, no iteration of the second touches what a later iteration of the first does, one of them writing."""
    loops = [replace(loop, loop_var=var) for var, loop in zip(made, nests[0].loops, strict=True)]
    # Loops around stand at one iteration on both sides.
    around = ranges_of(program.loops_above(node))
    for first, second in combinations(range(len(bodies)), 2):
        for buffer in _conflicts(bodies[first], bodies[second]):
            early, late = (touched_regions(bodies[n], [buffer])[buffer] for n in (first, second))
            # Merged, iteration i of the second nest comes before iteration i + 1 of the first, which the nests ran the other way round.
            pairs = ((early.writes, late.reads), (early.writes, late.writes), (early.reads, late.writes))
            if any(a is not None and b is not None and not is_apart(a, b, loops, around) for a, b in pairs):
                top, other = nests[first].loops[0], nests[second].loops[0]
                raise PrimitiveError(
                    f"merge: an iteration of the nest over {other.loop_var.name} may need of {buffer.name} what a later one of the nest "
                    f"over {top.loop_var.name} touches; use compute_at, which computes what is needed",
                    other,
                )


class Merge(Primitive):
    """The instruction."""

    kind, method, output, inputs = "Merge", "merge", "loop", ("*loops",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The program with one loop for all; handles of the others stand for nothing afterwards.

        Raises:
            ScheduleError: for loops of several functions.
        """
        refs = [loop_of(loop, "merge") for loop in inputs]
        if len({ref.func for ref in refs}) != 1:
            raise ScheduleError("merge takes loops of one function")
        func = refs[0].func
        program, var, gone = merge(state[func], [ref.var for ref in refs])
        return Applied(state.updated(func, program), (LoopRef(func, var),), renamed={LoopRef(func, old): None for old in gone})

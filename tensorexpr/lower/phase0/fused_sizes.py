"""Loops that fuse axes of symbolic extents: whether their product fits is known when the function is called. So it is whether a symbolic
factor of a split is one.

for i.j.fused in n * m: body    ->    assert n * m <= 2147483647; for i.j.fused in n * m: body
"""

from __future__ import annotations

from collections.abc import Iterable

from ...schedule.domain import StageDomain
from ...schedule.tree import FuseRelation, SplitRelation
from ...tir.arithmetic import cast
from ...tir.dtype import int_limits
from ...tir.expr import IntImm, PrimExpr, StringImm
from ...tir.rewriting import variables
from ...tir.stmt import AssertStmt, Stmt

_MOST = int_limits("int32")[1]


def counted(domains: Iterable[StageDomain], body: Stmt) -> Stmt:
    """`body`, run only where no fused loop has more iterations than its variable counts."""
    domains = tuple(domains)
    loops = {var for domain in domains for var in domain.loops()}
    checks: dict[PrimExpr, str] = {}
    for domain in domains:
        for relation in domain.stage.relations:
            if isinstance(relation, FuseRelation) and domain.stage.axes[relation.fused].dtype == "int32":
                extents = [domain.extents[part] for part in relation.parts]
                total: PrimExpr = IntImm("int64", 1)
                for extent in extents:
                    total = total * cast(extent, "int64")
                # A constant leaves nothing to ask; extents that depend on loops can't be asserted outside of them.
                if not isinstance(total, IntImm) and variables(total).isdisjoint(loops):
                    name = domain.stage.axes[relation.fused].name
                    checks[total <= IntImm("int64", _MOST)] = f"{domain.stage.name}: the loop {name} over {' * '.join(map(str, extents))}"
    for condition, what in checks.items():
        body = AssertStmt(condition, StringImm(f"{what} is longer than int32 counts; split its axes in place of fusing them"), body)
    for domain in domains:
        for relation in domain.stage.relations:
            if not isinstance(relation, SplitRelation):
                continue
            for factor in relation.factors:
                if factor is not None and not isinstance(factor, IntImm) and variables(factor).isdisjoint(loops):
                    where = f"{domain.stage.name}: the split of {domain.stage.axes[relation.parent].name} by {factor}"
                    body = AssertStmt(factor >= 1, StringImm(f"{where}, which is at least 1"), body)
    return body

"""Groups of asynchronous copies, and the waits for them, as a device's instructions.

    attr async_commit_queue_scope: body                          body; T.ptx_commit_group()
    attr async_wait_queue_scope, async_wait_inflight_count n:    T.ptx_wait_group(n); body
        body                                                ->

A device counts the groups of all queues together, so a kernel has one queue.
"""

from __future__ import annotations

from ...errors import LoweringError
from ...tir.arithmetic import as_int
from ...tir.device_intrin import device_call
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Evaluate, Stmt, seq
from ..async_queues import COMMIT, COUNT, WAIT
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements


def LowerAsyncQueues() -> Pass:
    """`ptx_commit_group` and `ptx_wait_group` for the attributes of asynchronous queues.

    Raises:
        LoweringError: when it runs, for several queues in a kernel, and for waits whose number of groups is no constant.
    """
    return Pass("tir.LowerAsyncQueues", _lowered)


def _lowered(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    queues = {as_int(one.value) for one in walk_statements(func.body) if isinstance(one, AttrStmt) and one.attr_key == COMMIT}
    if not queues:
        return func
    if len(queues) > 1:
        raise LoweringError(
            f"a kernel has {len(queues)} queues of asynchronous copies; a device has one: pipeline one loop, or one stage of it"
        )
    return func.with_body(_instructions(func.body))


def _instructions(stmt: Stmt) -> Stmt:
    if isinstance(stmt, AttrStmt) and stmt.attr_key == COMMIT:
        return seq(_instructions(stmt.body), Evaluate(device_call("ptx_commit_group")))
    if isinstance(stmt, AttrStmt) and stmt.attr_key == WAIT:
        inner = stmt.body
        count = as_int(inner.value) if isinstance(inner, AttrStmt) and inner.attr_key == COUNT else None
        if count is None or not isinstance(inner, AttrStmt):
            raise LoweringError(f"the number of groups that a wait leaves under way is a constant on a device, not that of\n{stmt}")
        # Where nothing is committed any more, fewer than none may be left under way.
        return seq(Evaluate(device_call("ptx_wait_group", max(count, 0))), _instructions(inner.body))
    return map_stmt(stmt, _instructions)

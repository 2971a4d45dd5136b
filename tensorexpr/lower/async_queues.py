"""What marks asynchronous copies: what is begun together, and who waits for it.

attr async_commit_queue_scope q: body                     the copies of `body` are one group of the queue
attr async_wait_queue_scope q, async_wait_inflight_count n: body    `body` runs when all groups but the newest n have arrived
"""

from __future__ import annotations

COMMIT, WAIT, COUNT = "async_commit_queue_scope", "async_wait_queue_scope", "async_wait_inflight_count"
COPY = "async_scope"
"""Marks stores that need not have happened before the group is waited for."""

BULK_COPY = "bulk_copy"
"""Loops that are one copy of the engine, described by a tuple: the tensor's map, the place in shared memory, coordinates."""
BULK_BARRIERS, BULK_GROUP, BULK_WAIT, BULK_PARITY = "bulk_barriers", "bulk_group", "bulk_wait", "bulk_parity"
"""Around a loop: how many mbarriers it has. Copies that are told to the one with a number; `body` runs when the phase of a parity of the
one with a number has ended."""

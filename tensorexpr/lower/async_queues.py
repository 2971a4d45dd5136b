"""What marks asynchronous copies: what is begun together, and who waits for it.

attr async_commit_queue_scope q: body                     the copies of `body` are one group of the queue
attr async_wait_queue_scope q, async_wait_inflight_count n: body    `body` runs when all groups but the newest n have arrived
"""

from __future__ import annotations

COMMIT, WAIT, COUNT = "async_commit_queue_scope", "async_wait_queue_scope", "async_wait_inflight_count"
COPY = "async_scope"
"""Marks stores that need not have happened before the group is waited for."""

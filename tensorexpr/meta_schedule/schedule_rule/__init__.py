"""What may be done with a block.

schedule_rule    the protocol, and the lists for kinds of targets
"""

from __future__ import annotations

from .schedule_rule import PyScheduleRule, ScheduleRule, create

__all__ = ["PyScheduleRule", "ScheduleRule", "create"]

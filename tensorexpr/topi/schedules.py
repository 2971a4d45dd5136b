"""Default schedules of operators, by rules: the plans from which a search starts, as they are."""

from ..spaces import default_schedule, schedule_injective, schedule_reduction, schedule_root_reduction, schedule_rows

__all__ = ["default_schedule", "schedule_injective", "schedule_reduction", "schedule_root_reduction", "schedule_rows"]

"""Names that programs of the releases up to 0.6 use and that later ones dropped; what they stand for is elsewhere in the house.

ir_pass        passes and questions as functions of statements
make           nodes by their classes, with the arguments of that time
build_config   the options of a lowering, today those of a `PassContext`
"""

from .build_config import build_config

__all__ = ["build_config"]

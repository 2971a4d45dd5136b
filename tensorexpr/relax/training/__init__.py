"""What trains networks: derivatives of tensor functions by name."""

from . import utils

__all__ = ["utils"]

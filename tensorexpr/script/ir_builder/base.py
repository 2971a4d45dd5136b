"""IRBuilder and its frames, by the name that programs import them from."""

from .builder import IRBuilder
from .frame import IRBuilderFrame

__all__ = ["IRBuilder", "IRBuilderFrame"]

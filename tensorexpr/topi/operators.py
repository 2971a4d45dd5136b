"""`generic` of the top level: operators by name, of numbers and of tensors alike."""

from .broadcast import add, divide, floor_divide, multiply, subtract
from .math import cast

floordiv = floor_divide

__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]

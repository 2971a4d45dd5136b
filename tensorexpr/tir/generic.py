"""Arithmetic by the names of its operators."""

from .arithmetic import add, cast, ceildiv, floordiv, multiply, subtract

divide = floordiv

__all__ = ["add", "cast", "ceildiv", "divide", "floordiv", "multiply", "subtract"]

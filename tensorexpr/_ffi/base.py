"""The error that programs of TVM catch, and texts of bytes, where they import them from."""

from ..error import TVMError


def py_str(x: bytes) -> str:
    """The text of bytes."""
    return x.decode()


__all__ = ["TVMError", "py_str"]

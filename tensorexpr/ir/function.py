"""Functions of any level, and how they are called."""

from enum import IntEnum

from ..tir.function import PrimFunc

BaseFunc = PrimFunc


class CallingConv(IntEnum):
    """How a function is called, for the attribute "calling_conv"."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2

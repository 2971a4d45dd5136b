"""What can go wrong with a candidate, as the numbers that tuning records hold."""

from __future__ import annotations

from enum import IntEnum


class MeasureErrorNo(IntEnum):
    """Error numbers of a measurement; `error_type` is the name that logs print."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8

    @property
    def error_type(self) -> str:
        """The name in messages, such as RuntimeDeviceError."""
        return _NAMES[self]


_NAMES = {
    MeasureErrorNo.NO_ERROR: "NoError",
    MeasureErrorNo.INSTANTIATION_ERROR: "InstantiationError",
    MeasureErrorNo.COMPILE_HOST: "CompileHostError",
    MeasureErrorNo.COMPILE_DEVICE: "CompileDeviceError",
    MeasureErrorNo.RUNTIME_DEVICE: "RuntimeDeviceError",
    MeasureErrorNo.WRONG_ANSWER: "WrongAnswerError",
    MeasureErrorNo.BUILD_TIMEOUT: "BuildTimeoutError",
    MeasureErrorNo.RUN_TIMEOUT: "RunTimeoutError",
    MeasureErrorNo.UNKNOWN_ERROR: "UnknownError",
}

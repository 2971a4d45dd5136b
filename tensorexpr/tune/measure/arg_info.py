"""What the arguments of a function are: `TensorInfo(dtype, shape)` for each array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import RecordError, TuningError
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm
from ...tir.function import IRModule, PrimFunc

_TENSOR = "TENSOR"
_MAX_RANK = 32


class ArgInfo:
    """What an argument is."""

    def as_json(self) -> Any:
        """The argument as JSON."""
        raise NotImplementedError

    @staticmethod
    def from_json(json_obj: Any) -> ArgInfo:
        """The argument that `as_json` wrote.

        Raises:
            RecordError: for anything else.
        """
        if not isinstance(json_obj, (list, tuple)) or len(json_obj) != 3 or json_obj[0] != _TENSOR:
            raise RecordError(f'an argument is ["{_TENSOR}", dtype, shape], not {str(json_obj)[:80]}')
        _, dtype, shape = json_obj
        known = isinstance(dtype, str) and len(dtype) <= 32 and isinstance(shape, (list, tuple)) and len(shape) <= _MAX_RANK
        # `type`, since True is an int for isinstance
        if not known or not all(type(extent) is int and 0 <= extent < 1 << 62 for extent in shape):
            raise RecordError(f"an argument has a dtype and a shape of integers, not {str(json_obj)[:80]}")
        parse_dtype(dtype)
        return TensorInfo(dtype, tuple(shape))

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[ArgInfo]:
        """The arguments of a function.

        Raises:
            TuningError: if one is no array of constant shape.
        """
        found: list[ArgInfo] = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise TuningError(f"functions are tuned on arrays; the parameter {param.name} is none: specialize the function first")
            shape = tuple(extent.value for extent in buffer.shape if isinstance(extent, IntImm))
            if len(shape) != buffer.ndim:
                raise TuningError(
                    f"functions are tuned with constant shapes; {buffer.name} has {[str(extent) for extent in buffer.shape]}: "
                    "specialize the function first"
                )
            found.append(TensorInfo(buffer.dtype, shape))
        return found

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """The arguments of the function of a module that a search is about.

        Args:
            remove_preproc: accepted; what is done once to constant arguments changes no parameter here.
        """
        return ArgInfo.from_prim_func(entry_func(mod))


@dataclass(frozen=True)
class TensorInfo(ArgInfo):
    """An array.

    Args:
        dtype: of its elements.
        shape: its extents.
    """

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", str(self.dtype))
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))

    def as_json(self) -> Any:
        """The array as JSON."""
        return [_TENSOR, self.dtype, list(self.shape)]


def entry_func(mod: IRModule) -> PrimFunc:
    """The function of a module that a search is about: the only one, or the one called "main".

    Raises:
        TuningError: if there is none.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}
    if len(functions) == 1:
        return next(iter(functions.values()))
    if "main" not in functions:
        raise TuningError(f'a search is about one function: the only one, or "main"; the module has {", ".join(functions) or "none"}')
    return functions["main"]


def shapes_of(args_info: Sequence[ArgInfo]) -> list[TensorInfo]:
    """The arguments, all of which must be arrays.

    Raises:
        TuningError: if one is not.
    """
    for info in args_info:
        if not isinstance(info, TensorInfo):
            raise TuningError(f"functions are measured on arrays, not on a {type(info).__name__}")
    return [info for info in args_info if isinstance(info, TensorInfo)]

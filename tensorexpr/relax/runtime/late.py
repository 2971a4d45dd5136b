"""Constants of an executable by name: those that a library is exported without, and other values for them.

Relax's programs call them "const_0", ..., Relay's "p0", ...; the numbers are places in `constants`, here and in a library.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...errors import ArgumentError
from ...runtime.ndarray import NDArray, array
from ...runtime.params import load_param_dict, save_param_dict
from .constants import bytes_of

_Made = TypeVar("_Made", bound="LateConstants")
LATE = ("load_late_bound_consts", "load_late_bound_consts_from_map")


class LateConstants:
    """What an executable can do with its constants by name."""

    @property
    @abstractmethod
    def constants(self) -> list[NDArray]:
        """The tensors that the functions hold, each once."""

    @property
    @abstractmethod
    def constants_of_others(self) -> set[int]:
        """The identities of those that belong to functions of code generators, and are no parameters."""

    def __init__(self) -> None:
        self.late: dict[str, NDArray] = {}  # what `export_library` leaves out
        self.missing: set[str] = set()  # what a library was exported without, and nothing has set yet

    def get_params(self) -> dict[str, NDArray]:
        """The constants as parameters of a graph executor, by their names, "p0", "p1", ...: weights as kernels take them."""
        fixed = self.constants_of_others
        return {f"p{n}": one for n, one in enumerate(self.constants) if isinstance(one, NDArray) and id(one) not in fixed}

    def without_params(self: _Made) -> _Made:
        """The same network, which `export_library` writes without its parameters: `load_params` of a graph executor sets them then."""
        made = self.with_constants({})
        made.late = made.get_params()
        return made

    @abstractmethod
    def with_constants(self: _Made, values: Mapping[int, NDArray]) -> _Made:
        """The same network on other constants, which has memory of its own.

        Args:
            values: arrays of the same shapes and dtypes, by the identities of those in `constants`.
        """

    def with_params(self: _Made, params: Mapping[str, Any]) -> _Made:
        """The network with values for parameters by their names: itself if these are the values that it has, or lacks.

        Values that a library was exported without are set for all who use this executable; others are seen by what is returned alone.

        Raises:
            ArgumentError: for a name that there isn't, or an array of another shape or dtype; nothing is set then.
        """
        known = self.get_params()
        given = _fitting(params, known, "no parameter of the network")
        absent = {id(one) for name, one in self.late.items() if name in self.missing}
        here = {name: value for name, value in given.items() if id(known[name]) in absent}
        for name, value in here.items():
            known[name].copyfrom(value)
        self.missing -= {name for name, one in self.late.items() if id(one) in {id(known[key]) for key in here}}
        others = {id(known[name]): value for name, value in given.items() if name not in here and not _same(known[name], value)}
        return self.with_constants(others) if others else self

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """The constants of at least so many bytes by their names; `export_library` leaves them out from now on.

        Args:
            byte_limit: smaller constants stay in the library.
        """
        self.late = {f"const_{n}": one for n, one in enumerate(self.constants) if one._array.nbytes >= byte_limit}
        return dict(self.late)

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Write the constants of at least so many bytes to a file, as `save_param_dict` does; `export_library` leaves them out then."""
        from ...runtime.export import write_file  # which a network that only runs doesn't need

        write_file(os.fspath(path), bytes(save_param_dict(self.get_late_bound_consts(byte_limit))))

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        """Set constants that the library was exported without from the file of `move_late_bound_consts`.

        Raises:
            RecordError: for a file that is torn or something else.
            ArgumentError: as of `load_late_bound_consts_from_map`.
        """
        self.load_late_bound_consts_from_map(load_param_dict(Path(path).read_bytes()))

    def load_late_bound_consts_from_map(self, consts: Mapping[str, Any]) -> None:
        """Set constants that the library was exported without: arrays by the names of `get_late_bound_consts`.

        Raises:
            ArgumentError: for a constant that isn't kept apart, or an array of another shape or dtype; nothing is set then.
        """
        given = _fitting(consts, self.late, "no constant that was kept apart")
        for name, value in given.items():
            # In place: machines, and code that has addresses of constants, hold these arrays.
            self.late[name].copyfrom(value)
            self.missing.discard(name)

    def check_complete(self) -> None:
        """Raise an ArgumentError if constants are missing."""
        if self.missing:
            names = ", ".join(name for name in self.late if name in self.missing)
            raise ArgumentError(
                f"the library was exported without {names}: load_late_bound_consts(path), or load_params(bytes) of a graph executor, sets "
                "them, before it runs"
            )


def _fitting(given: Mapping[str, Any], known: Mapping[str, NDArray], wish: str) -> dict[str, NDArray]:
    """Values by name as arrays of the shapes and dtypes of constants.

    Raises:
        ArgumentError: for a name that there isn't, or another shape or dtype.
    """
    made = {name: array(value) for name, value in given.items()}
    for name, value in made.items():
        if name not in known:
            raise ArgumentError(f"{name!r} is {wish}; those are {', '.join(known) or 'none'}")
        wanted = known[name]
        if (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
            raise ArgumentError(f"{name} is {wanted.dtype} of shape {wanted.shape}, not {value.dtype} of {value.shape}")
    return made


def _same(one: NDArray, other: NDArray) -> bool:
    """Whether two arrays have the same bytes: a NaN is itself, and -0.0 isn't 0.0."""
    return bool(np.array_equal(bytes_of(one), bytes_of(other)))

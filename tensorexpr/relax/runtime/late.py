"""Constants that a library is exported without: they are written to a file of their own, and loaded into the library's executable."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from ...runtime.ndarray import NDArray, array
from ...runtime.params import load_param_dict, save_param_dict

LATE = ("load_late_bound_consts", "load_late_bound_consts_from_map")


class LateConstants:
    """What an executable can do with constants that are kept apart. Their names are "const_0", ... by their places in `constants`."""

    @property
    @abstractmethod
    def constants(self) -> list[NDArray]:
        """The tensors that the functions hold, each once."""

    def __init__(self) -> None:
        self.late: dict[str, NDArray] = {}  # what `export_library` leaves out
        self.missing: set[str] = set()  # what a library was exported without, and nothing has set yet

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

        write_file(os.fspath(path), save_param_dict(self.get_late_bound_consts(byte_limit)))

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
        given = {name: array(value) for name, value in consts.items()}
        for name, value in given.items():
            if name not in self.late:
                raise ArgumentError(f"{name!r} is no constant that was kept apart; those are {', '.join(self.late) or 'none'}")
            wanted = self.late[name]
            if (value.shape, value.dtype) != (wanted.shape, wanted.dtype):
                raise ArgumentError(f"{name} is {wanted.dtype} of shape {wanted.shape}, not {value.dtype} of {value.shape}")
        for name, value in given.items():
            # In place: machines, and code that has addresses of constants, hold these arrays.
            self.late[name].copyfrom(value)
            self.missing.discard(name)

    def check_complete(self) -> None:
        """Raise an ArgumentError if constants are missing."""
        if self.missing:
            names = ", ".join(sorted(self.missing))
            raise ArgumentError(f"the library was exported without {names}: load_late_bound_consts(path) sets them, before it runs")

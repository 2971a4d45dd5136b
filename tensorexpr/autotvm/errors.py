"""What can go wrong with templates and their spaces."""

from __future__ import annotations

from ..errors import TuningError


class InstantiationError(TuningError, ValueError):
    """A configuration that makes no program of a template: it says so itself (`cfg.raise_error`), or the template fails."""


class KnobError(TuningError, KeyError):
    """A knob that a configuration doesn't have."""

    def __str__(self) -> str:
        """The message as it is: `KeyError` would print its repr."""
        return str(self.args[0]) if self.args else ""


class LengthError(TuningError, OverflowError):
    """A space of more points than `len` can tell."""


class PointError(TuningError, IndexError):
    """An index or a row that is outside of a space, or left out by its filters."""


class MissingTaskError(TuningError, LookupError):
    """A task whose template or operator isn't registered here."""

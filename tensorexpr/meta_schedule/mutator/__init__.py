"""How a program is varied.

mutator    the protocol, and the sets for kinds of targets
"""

from __future__ import annotations

from .mutator import Mutator, PyMutator, create, mutated

__all__ = ["Mutator", "PyMutator", "create", "mutated"]

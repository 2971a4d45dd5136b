"""How `LegalizeOps` makes tensor functions of operators, for programs that say it themselves."""

from .common import register_legalize

__all__ = ["register_legalize"]

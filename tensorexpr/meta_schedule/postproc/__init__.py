"""What is done with every program before it is measured.

postproc    the protocol, and the lists for kinds of targets
"""

from __future__ import annotations

from .postproc import Postproc, PyPostproc, create

__all__ = ["Postproc", "PyPostproc", "create"]

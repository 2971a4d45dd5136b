"""Instruments of passes on graphs."""

from __future__ import annotations

from ...errors import PassError
from ...lower.instruments import PassInstrument
from ...lower.passes import PassInfo
from ...tir.function import IRModule
from ..analysis.well_formed import problems

_BRING_INTO_FORM = ("Normalize", "NormalizeGlobalVar", "ResolveGlobals")


class WellFormedInstrument(PassInstrument):
    """Checks that modules are well-formed around each pass, but for those that bring them into form.

    Args:
        check_struct_info: also check that what is known of variables fits their values.
        validate_before_transform: check what a pass is given, too.

    Raises:
        PassError: naming the pass, whether it was given or made the module, and what is wrong first.
    """

    def __init__(self, check_struct_info: bool = True, validate_before_transform: bool = True) -> None:
        self.check_struct_info, self.validate_before_transform = check_struct_info, validate_before_transform

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass is about to run."""
        if self.validate_before_transform:
            self._check(mod, info, "is given a graph that isn't well-formed")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """The pass has run."""
        self._check(mod, info, "made a graph that isn't well-formed")

    def _check(self, mod: IRModule, info: PassInfo, what: str) -> None:
        found = None if info.name in _BRING_INTO_FORM else next(problems(mod, self.check_struct_info, is_normal=False), None)
        if found is not None:
            raise PassError(f"pass {info.name} {what}: {found}")

"""The targets of a compilation, one for each kind of device, and which of them is meant where nothing is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..errors import TargetError
from .kinds import KINDS
from .target import Target, TargetLike
from .virtual_device import VirtualDevice

_CPU = KINDS["llvm"].device_type


@dataclass(frozen=True)
class CompilationConfig:
    """What a program is compiled for.

    Args:
        primitive_targets: those that operators may be built for, in the order of their devices' numbers, each with the host.
        host_target: what the code around them is built for.
    """

    primitive_targets: tuple[Target, ...]
    host_target: Target

    @property
    def default_primitive_virtual_device(self) -> VirtualDevice:
        """Where an operator runs if nothing says: on the CPU if that is one of the devices, else on the first."""
        cpus = (target for target in self.primitive_targets if target.get_target_device_type() == _CPU)
        return VirtualDevice(target=next(cpus, self.primitive_targets[0]))

    @property
    def host_virtual_device(self) -> VirtualDevice:
        """Where the code around the operators runs."""
        return VirtualDevice(target=self.host_target)

    @property
    def optional_homogenous_target(self) -> Target | None:
        """The target of all operators, if there is but one."""
        return self.primitive_targets[0] if len(self.primitive_targets) == 1 else None


def make_compilation_config(
    ctxt: Any, target: TargetLike | Sequence[TargetLike] | Mapping[Any, TargetLike], target_host: TargetLike | None = None
) -> CompilationConfig:
    """The targets of a compilation.

    Args:
        ctxt: a PassContext; none of its options has a say in it.
        target: one target, several, or a mapping from devices to theirs.
        target_host: for the code around; else the host that a target names, else this machine.

    Raises:
        TargetError: without a target, or for two of the same device.
    """
    targets = Target.canon_multi_target_and_host(target, target_host)
    by_device = {each.get_target_device_type(): each for each in targets}
    if len(by_device) < len(targets):
        raise TargetError(f"make_compilation_config: one target for each kind of device, not {', '.join(map(str, targets))}")
    host = next((each.host for each in targets if each.host is not None), Target("llvm"))
    return CompilationConfig(tuple(each.with_host(host) for _, each in sorted(by_device.items())), host)

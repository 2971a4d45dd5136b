"""What a module says beside its functions: the devices that values of its functions may live on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..target import Target
from .node import Object


class GlobalInfo(Object):
    """Base of what stands in `IRModule.global_infos`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DummyGlobalInfo(GlobalInfo):
    """A placeholder, for tests."""


@dataclass(frozen=True, slots=True)
class VDevice(GlobalInfo):
    """A device that values live on: what code for it is built for, which of the devices of that kind, and which of its memories.

    Args:
        target: a `Target`, or what makes one: a kind, a line of options, a dict.
        vdevice_id: the number of the device, from 0.
        memory_scope: such as "global".
    """

    target: Target | None = None
    vdevice_id: int = 0
    memory_scope: str = "global"

    def __post_init__(self) -> None:
        target: Any = self.target
        if target is not None and not isinstance(target, Target):
            object.__setattr__(self, "target", Target(dict(target) if isinstance(target, Mapping) else target))
        object.__setattr__(self, "vdevice_id", int(self.vdevice_id))

    @staticmethod
    def of(value: VDevice | str | None, devices: Sequence[GlobalInfo] = ()) -> VDevice | None:
        """A device as scripts name it: "cuda", "cuda:1", "cuda:1:global"; a device itself, or None.

        Args:
            value: the text. Where a module lists devices of that kind, the number is the place among these, and that of "vdevice:1" the
                place among all; else it is the number of the device.
            devices: those of the module.

        Raises:
            DeclarationError: for a text of another form, or a place that the module's list hasn't.
            TargetError: for a kind that there isn't.
        """
        if not isinstance(value, str):
            return value
        kind, number, scope = (*value.split(":", 2), "", "")[:3]
        if number and not number.isdecimal():
            raise DeclarationError(f'a device is written as "cuda", "cuda:1" or "cuda:1:global", not {value!r}')
        place, listed = int(number or 0), [info for info in devices if isinstance(info, VDevice) and kind in ("vdevice", info.kind)]
        if not listed and kind != "vdevice":
            return VDevice(kind, place, scope or "global")  # type: ignore[arg-type]
        if place >= len(listed):
            raise DeclarationError(f"{value!r} is no device of the module, which lists {len(listed)} by that name")
        return listed[place]

    @property
    def kind(self) -> str:
        """The kind of its target; "" without one."""
        return "" if self.target is None else str(self.target.kind)

    def short(self, devices: Sequence[GlobalInfo] = ()) -> str | None:
        """The text that `of` makes it of; None where it is of more than a kind."""
        alike = [info for info in devices if isinstance(info, VDevice) and info.kind == self.kind]
        if not self.kind or (alike and self not in alike):
            return None
        text = f"{self.kind}:{alike.index(self) if alike else self.vdevice_id}:{self.memory_scope}"
        return text if VDevice.of(text, devices) == self else None


def checked_infos(infos: Mapping[str, Any] | None) -> dict[str, tuple[GlobalInfo, ...]]:
    """Global infos by name, as a module keeps them.

    Raises:
        DeclarationError: for values that are no sequences of global infos.
    """
    found: dict[str, tuple[GlobalInfo, ...]] = {}
    for name, items in (infos or {}).items():
        listed = tuple(items) if isinstance(items, Sequence) and not isinstance(items, str) else ()
        if not isinstance(name, str) or (not listed and items) or not all(isinstance(item, GlobalInfo) for item in listed):
            raise DeclarationError(f"global infos are lists of I.vdevice(...) by name, not {name!r}: {items!r}")
        found[name] = listed
    return found

"""Names of operations, and what programs register about them: attributes, and rules that lower intrinsics of their own."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar

from ..errors import DeclarationError


class CallEffectKind(IntEnum):
    """What a call does besides giving a value, for the attribute "TCallEffectKind"."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6

    # by the name of an older release
    Opaque = 3


_attributes: dict[str, dict[str, Any]] = {}
_lowering: dict[str, dict[str, Callable[..., Any]]] = {}
BUILTIN: dict[str, Any] = {}
"""The operations of the language itself, which the table of intrinsics fills in."""


class Op(str):
    """The name of an operation (``"tir.exp"``): a string that also answers to `name` and `get_attr`."""

    __slots__ = ()
    _known: ClassVar[dict[str, Op]] = {}

    @staticmethod
    def of(name: Any) -> Op:
        """The operation of that name, one object for each; a function of the same module is what is called itself."""
        if hasattr(name, "name_hint"):
            return name  # type: ignore[no-any-return]
        text = str(name)
        found = Op._known.get(text)
        # `setdefault`: two threads that ask first both get one object.
        return Op._known.setdefault(text, Op(text)) if found is None else found

    @staticmethod
    def get(op_name: str) -> Op:
        """The operation of that name.

        Raises:
            DeclarationError: for a name that no intrinsic has and nothing was registered for.
        """
        if op_name not in Op.list_op_names():
            raise DeclarationError(f"no operation {op_name!r}; Op.list_op_names() lists all, ir.register_op_attr adds one")
        return Op.of(op_name)

    @staticmethod
    def list_op_names() -> list[str]:
        """All operations."""
        return sorted({*BUILTIN, *_attributes, *_lowering})

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The name, which is all that a text says of an operation."""
        return self.name

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Register an argument, as the attribute "arguments": triples of name, type and description."""
        self.set_attr("arguments", (*(self.get_attr("arguments") or ()), (name, type, description)))

    def set_num_inputs(self, n: int) -> None:
        """Register how many arguments calls have, as the attribute "num_inputs"."""
        self.set_attr("num_inputs", n)

    def set_support_level(self, level: int) -> None:
        """Register how well it is supported, from 0 (best) to 10, as the attribute "support_level"."""
        self.set_attr("support_level", level)

    def set_attrs_type_key(self, key: str) -> None:
        """Register the class of its attributes by name, as the attribute "attrs_type_key"."""
        self.set_attr("attrs_type_key", key)

    @property
    def name(self) -> str:
        """The name."""
        return str.__str__(self)

    def same_as(self, other: object) -> bool:
        """Whether `other` is this operation."""
        return self is other

    def get_attr(self, attr_name: str) -> Any:
        """What was registered as an attribute, or None."""
        return _attributes.get(self, {}).get(attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Whether an attribute was registered."""
        return attr_name in _attributes.get(self, {})

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Register an attribute."""
        _attributes.setdefault(self.name, {})[attr_name] = value

    def reset_attr(self, attr_name: str) -> None:
        """Forget an attribute."""
        _attributes.get(self, {}).pop(attr_name, None)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Register an attribute of an operation, and the operation itself if it is new; as a decorator without `value`.

    Args:
        op_name: such as ``"tir.mylog"``, which `tir.call_intrin` takes from then on.
        attr_key: such as ``"TCallEffectKind"``: `CallEffectKind.Pure` lets passes reorder and drop calls.
        level: accepted; what is registered last counts.
    """

    def register(what: Any) -> Any:
        Op.of(op_name).set_attr(attr_key, what, level)
        return what

    return register if value is None else register(value)


def register_intrin_lowering(op_name: str, target: str, *, f: Callable[[Any], Any] | None = None, level: int = 10) -> Any:
    """Register how calls of an intrinsic are lowered for one kind of target, or for all with "default".

    Args:
        op_name: the intrinsic, a new one or one of the table: the rule goes before the built-in code.
        target: a kind such as ``"llvm"``, or ``"default"``.
        f: the call -> the expression in its place, or None to leave it; without it this is a decorator.
        level: accepted; what is registered last counts.
    """

    def register(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
        _lowering.setdefault(op_name, {})[target] = rule
        return rule

    return register if f is None else register(f)


def has_lowering_rules() -> bool:
    """Whether a program has registered rules, which other processes don't know."""
    return bool(_lowering)


def lowering_rule(op: str, target_kind: str) -> Callable[[Any], Any] | None:
    """The rule of a user for calls of `op`, that of the target's kind before the default one."""
    rules = _lowering.get(op)
    return None if rules is None else rules.get(target_kind, rules.get("default"))


def registered_effect(op: str) -> Any:
    """The effect that was registered for an operation, or None."""
    return _attributes.get(op, {}).get("TCallEffectKind")


def is_registered(op: str) -> bool:
    """Whether a user registered something about an operation."""
    return op in _attributes or op in _lowering

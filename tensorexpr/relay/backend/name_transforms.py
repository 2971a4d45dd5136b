"""Names of generated functions, variables and constants of C, which begin with TVM."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import DeclarationError

_PREFIX, _GENERATED = "TVM", "TVMGen"


def _checked(name: str, what: str) -> str:
    if not name:
        raise DeclarationError(f"{what} name is empty")
    if not name.startswith(_PREFIX):
        raise DeclarationError(f"{what} not {_PREFIX} prefixed: {name}; prefix_name makes such names")
    return name


def to_c_function_style(original_name: str) -> str:
    """`TVM_my_function` as TVMMyFunction.

    Raises:
        DeclarationError: for a name that doesn't begin with TVM.
    """
    first, *words = _checked(original_name, "Function").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in words)


def to_c_variable_style(original_name: str) -> str:
    """`TVM_My_variable` as tvm_my_variable; errors as of `to_c_function_style`."""
    return _checked(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """`TVM_my_constant` as TVM_MY_CONSTANT; errors as of `to_c_function_style`."""
    return _checked(original_name, "Constant").upper()


def _joined(prefix: str, names: str | Sequence[str]) -> str:
    if isinstance(names, str) and not names:
        raise DeclarationError("Name is empty")
    words = [names] if isinstance(names, str) else list(names)
    if not words or not all(words):
        raise DeclarationError("Name segment is empty" if words else "Name segments empty")
    return "_".join([prefix, *words])


def prefix_name(names: str | Sequence[str]) -> str:
    """`["my", "name"]` as TVM_my_name.

    Raises:
        DeclarationError: for no name, or an empty one.
    """
    return _joined(_PREFIX, names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """`["my", "name"]` as TVMGen_my_name; errors as of `prefix_name`."""
    return _joined(_GENERATED, names)

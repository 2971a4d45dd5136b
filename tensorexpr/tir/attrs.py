"""An immutable mapping for annotations and attributes, and the keys of `AttrStmt` that passes and code generation read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .interning import ADAPTERS


class FrozenMap(Mapping[str, Any]):
    """A mapping that can't change, so nodes may share it; identity is its hash, contents its equality."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __getattr__(self, name: str) -> Any:
        """An attribute by name: `call.attrs.strides`."""
        # Names of Python's own are asked for before there are items.
        if name.startswith("_") or name not in self._items:
            raise AttributeError(f"there is no attribute {name!r}")
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMap, (self._items,)

    def __hash__(self) -> int:
        return id(self) >> 4

    def set(self, **items: Any) -> FrozenMap:
        """This mapping with some keys set."""
        return FrozenMap({**self._items, **items})

    def __repr__(self) -> str:
        return repr(self._items)


EMPTY = FrozenMap()
ADAPTERS["FrozenMap"] = (FrozenMap, lambda items: FrozenMap(items) if items else EMPTY, None)

PREFETCH_SCOPE = "prefetch_scope"
"""Node: a Buffer. Each iteration of the loop around the attribute fetches what the body reads so many iterations later."""

EXTERN_SCOPE = "extern_scope"
"""Node: 0. The body came from a hybrid function; for programs that look for it."""

NONTEMPORAL_STORE = "nontemporal_store"
"""Node: the data variable of a parameter. Aligned vectors that the body stores there go past the caches."""

IMPORT_LLVM = "pragma_import_llvm"
"""LLVM IR to link, whose functions the loop calls."""

IMPORT_C = "pragma_import_c"
"""C source to put in front of generated C, whose functions the loop calls."""

"""What all nodes of the language have in common, whatever they stand for: identity, text, copies."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar


class _Printers(dict[str, Callable[..., str]]):
    """What makes texts: the printer enters it here when the first text is asked for. Programs that only build and run print nothing."""

    def __missing__(self, kind: str) -> Callable[..., str]:
        importlib.import_module("tensorexpr.tir.printer")
        return dict(self)[kind]


class Object:
    """Base of expressions, statements, buffers, axes, functions and modules. Nodes don't change, so a copy is the node."""

    __slots__ = ()

    # The printer registers itself here, so that a node has a text without a cycle between the two modules:
    # by kind of node ("expr", "stmt", "function", "module"), and "shown" and "html" of a text.
    _printers: ClassVar[_Printers] = _Printers()

    @property
    def span(self) -> Any:
        """Where a node stands in a source text: None, but for statements after `tir.transform.InstallDebugSpans`."""
        return None

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very object."""
        return self is other

    def script(
        self,
        *,
        name: str | None = None,
        show_meta: bool = False,
        ir_prefix: str = "I",
        tir_prefix: str = "T",
        relax_prefix: str = "R",
        module_alias: str = "cls",
        buffer_dtype: str = "float32",
        int_dtype: str = "int32",
        float_dtype: str = "void",
        verbose_expr: bool = False,
        indent_spaces: int = 4,
        print_line_numbers: bool = False,
        num_context_lines: int = -1,
        syntax_sugar: bool = True,
        show_object_address: bool = False,
        show_all_struct_info: bool = True,
        path_to_underline: Any = None,
        path_to_annotate: Any = None,
        obj_to_underline: Any = None,
        obj_to_annotate: Any = None,
    ) -> str:
        """The node as TVMScript text.

        Args:
            name: of the function or module, in place of its own.
            show_meta: with what the text refers to as metadata, such as strings of several lines.
            ir_prefix, tir_prefix: what I and T are called.
            buffer_dtype, int_dtype, float_dtype: the dtypes that are not written out.
            verbose_expr: an expression by itself has what it mentions declared in front of it.
            indent_spaces, print_line_numbers: how lines begin.
            num_context_lines: how many lines around a mark are shown; all if negative.
            syntax_sugar: with T.grid, T.axis.remap, buffers in the signature; without the root block.
            show_object_address: names end with the address of what they name.
            path_to_underline, obj_to_underline: parts to mark, by `ObjectPath` or as nodes.
            path_to_annotate, obj_to_annotate: statements -> remarks about them.
            relax_prefix, module_alias, show_all_struct_info: of graphs, without effect here.
        """
        # First of all, so that the locals are the parameters.
        options = {key: value for key, value in locals().items() if key != "self"}
        return self._printers["node"](self, **options)

    def show(self, style: str | None = None, black_format: bool | None = None, *, name: str | None = None, **options: Any) -> None:
        """Print the node as TVMScript.

        Args:
            style: "ansi", "light" or "dark" for colours, "plain" for none; None for colours on a terminal alone.
            black_format: accepted and without effect; the layout is always the printer's own.
            name, options: as of `script`.
        """
        print(self._printers["shown"](self.script(name=name, **options), style))

    def _repr_html_(self) -> str:
        return self._printers["html"](self.script())

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle: the class and its fields, so that a node read again is built, checked and hash-consed as any other."""
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)  # type: ignore[arg-type]

"""The documents as a site: `pip install -e '.[docs]' && python -m sphinx -W -b html docs build/docs`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorexpr

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "tensorexpr"
release = tensorexpr.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
highlight_language = "none"  # plain fences show what programs print
html_theme = "furo"
html_show_copyright = False
html_title = f"tensorexpr {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 3  # links to a heading of another page work here as they do where the repository is read

default_role = "code"  # `x` in a docstring is code
autodoc_default_options = {"members": True, "undoc-members": True, "imported-members": True}
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python"]  # types of one name in two modules, such as Schedule, aren't linked
toc_object_entries_show_parents = "hide"

_COLUMNS = re.compile(r"^ |\S {2,}\S", re.MULTILINE)
_TYPE = ":type: "  # of the field that napoleon makes
_DOCUMENTED = re.compile(r"automodule:: (\S+)")
_modules = sorted(m for page in Path(__file__).parent.glob("reference/*.md") for m in _DOCUMENTED.findall(page.read_text()))


def home_of(thing: Any, name: str) -> str | None:
    """The documented module that a thing is described in: the one nearest to its definition that has it by this name."""
    defined = getattr(thing, "__module__", None) or ""
    nearest = [m for m in _modules if defined == m or defined.startswith(f"{m}.")]
    return next((m for m in reversed(nearest) if getattr(importlib.import_module(m), name, None) is thing), None)


def skip_what_has_another_home(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """A name that several modules offer is described once."""
    here = app.env.temp_data.get("autodoc:module")
    home = home_of(thing, name) if what == "module" else None
    return True if home and here and home != here else None


def show_modules(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A module begins with its name; its tables and drawings, which have columns, are shown as they are written."""
    if what == "module":
        shown = [f".. rubric:: {name}"]
        for part in "\n".join(lines).strip().split("\n\n"):
            shown += ["", "::", "", *(f"    {line}" for line in part.splitlines())] if _COLUMNS.search(part) else ["", *part.splitlines()]
        lines[:] = [*shown, ""]


def keep_the_colons_of_attributes(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """napoleon takes "a: b" in an attribute's first line for a type and a text, which no docstring here means: undone."""
    said = next((line for line in lines if line.startswith(_TYPE)), None)
    if what in ("attribute", "property", "data") and said is not None:
        lines.remove(said)
        lines[0] = f"{said.removeprefix(_TYPE)}: {lines[0]}"


def setup(app: Sphinx) -> None:
    """Connect the handlers."""
    app.connect("autodoc-process-docstring", keep_the_colons_of_attributes, priority=600)  # after napoleon, which has 500
    app.connect("autodoc-process-docstring", show_modules)
    app.connect("autodoc-skip-member", skip_what_has_another_home)

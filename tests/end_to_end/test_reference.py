"""The reference has a page for every public module, and what the pages show runs."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import tensorexpr
from tests.end_to_end.documents import BLOCK, run_blocks

PAGES = Path(__file__).parents[2] / "docs/reference"
MODULES = {name: page for page in PAGES.glob("*.md") for name in re.findall(r"automodule:: (\S+)", page.read_text())}


def test_every_public_module_has_a_page() -> None:
    public = {value.__name__ for name in tensorexpr.__all__ if isinstance(value := getattr(tensorexpr, name), ModuleType)}
    assert public - set(MODULES) == set()


def test_every_page_is_in_the_index() -> None:
    listed = set((PAGES / "index.md").read_text().split("```{toctree}")[1].split())
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} - listed == set()


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_public_name_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    functions = {n: value for n in getattr(module, "__all__", ()) if callable(value := getattr(module, n))}
    assert [n for n, value in functions.items() if not value.__doc__] == []


@pytest.mark.parametrize("page", sorted(page.stem for page in PAGES.glob("*.md")))
def test_the_examples_of_a_page_print_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, others = run_blocks((PAGES / f"{page}.md").read_text())
    assert printed == "".join(others)


def test_every_public_name_is_in_an_example_of_its_page() -> None:
    """Who adds a name adds an example."""
    assert [f"{module}.{name}" for module in sorted(MODULES) for name in _without_example(module)] == []


def _without_example(module: str) -> list[str]:
    """The functions and classes that a module offers, and its page's code doesn't mention; a loop over `__all__` is about all."""
    space = importlib.import_module(module)
    own = [name for name, value in vars(space).items() if getattr(value, "__module__", None) == module and not name.startswith("_")]
    offered = {name for name in getattr(space, "__all__", own) if callable(getattr(space, name))}
    trees = [ast.parse(code) for kind, code in BLOCK.findall(MODULES[module].read_text()) if kind]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {node.id for node in nodes if isinstance(node, ast.Name)}
    whole = {ast.unparse(node.value).rpartition(".")[2] for node in nodes if isinstance(node, ast.Attribute) and node.attr == "__all__"}
    return [] if module.rpartition(".")[2] in whole else sorted(offered - used)

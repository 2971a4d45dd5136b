"""The house stands: every module imports only from rows above its own, nothing heavy at import time, and says what its functions do."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensorexpr

PACKAGE = Path(tensorexpr.__file__).parent
ROWS = (
    ("errors", "error", "target", "processor", "log", "config", "later", "dataclass"),
    ("tir",),
    ("ir",),
    ("arith",),
    ("te",),
    ("schedule",),
    ("lower",),
    ("codegen",),
    ("runtime",),
    ("contrib", "early", "support", "_ffi"),
    ("spaces",),
    ("tune",),
    ("fleet",),
    ("rpc",),
    ("auto_scheduler", "meta_schedule", "autotvm"),
    ("topi",),
    ("workloads",),
    ("script",),
    ("relax", "frontend"),
    ("dlight", "relay"),
    ("driver",),
    ("testing",),
    ("__main__",),
)
ROW_OF = {name: number for number, names in enumerate(ROWS) for name in names}
HEAVY = {"sympy", "llvmlite", "xgboost", "ml_dtypes", "psutil", "rich", "hypothesis", "onnx", "matplotlib", "dask", "distributed"}


GLANCE = 6  # lines of a function, with its signature, that need no docstring


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def rooms() -> list[str]:
    return sorted({package_of(path) for path in modules()})


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(tree: ast.AST, path: Path) -> Iterator[tuple[str, int]]:
    """The modules that are imported, by absolute name, and the line."""
    parents = ["tensorexpr", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            # `from .. import x` may import the module x.
            yield from ((f"{name}.{alias.name}" if name in ("tensorexpr",) else name, node.lineno) for alias in node.names)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def without_reexports(tree: ast.Module, path: Path) -> ast.Module:
    """A package's `__init__` may offer names of higher rows lazily: in `__getattr__`, and to the type checker."""
    if path.name != "__init__.py":
        return tree
    body = [node for node in tree.body if not is_type_checking(node)]
    lazy = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    return ast.Module(body=[node for node in body if node not in lazy], type_ignores=[])


def imports_of_lower_rows(tree: ast.Module, path: Path) -> Iterator[str]:
    own = package_of(path)
    for name, line in imports(without_reexports(tree, path), path):
        parts = name.split(".")
        if parts[0] != "tensorexpr" or len(parts) < 2 or parts[1] not in ROW_OF:
            continue
        if parts[1] != own and ROW_OF[parts[1]] > ROW_OF[own]:
            yield f"line {line}: {name}"


def heavy_imports(tree: ast.Module, path: Path) -> Iterator[str]:
    if package_of(path) == "testing":  # which is for users who have hypothesis
        return
    flat = ast.Module(body=[node for node in tree.body if not is_type_checking(node)], type_ignores=[])
    level = [node for node in ast.walk(flat) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {id(child) for function in level for child in ast.walk(function)}
    outer = ast.Module(body=[], type_ignores=[])
    outer.body = [node for node in ast.walk(flat) if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in inside]
    yield from (f"line {line}: {name}" for name, line in imports(outer, path) if name.split(".")[0] in HEAVY)


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions of a module and of its public classes; those inside functions are their own affair."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)
        elif isinstance(node, ast.If):
            yield from public_functions([*node.body, *node.orelse])
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def says_it_elsewhere(function: ast.FunctionDef) -> bool:
    """A setter has its property's docstring, an overload its implementation's."""
    return any(getattr(mark, "id", getattr(mark, "attr", "")) in ("setter", "overload") for mark in function.decorator_list)


def silent_functions(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in public_functions(tree.body):
        if (node.end_lineno or 0) - node.lineno >= GLANCE and not ast.get_docstring(node) and not says_it_elsewhere(node):
            yield f"line {node.lineno}: {node.name}"


CHECKS = (imports_of_lower_rows, heavy_imports, silent_functions)


@functools.cache
def found_in(room: str) -> dict[str, list[str]]:
    """What each check finds in a room's files. Of a file's tree, which is large, nothing stays."""
    found: dict[str, list[str]] = {check.__name__: [] for check in CHECKS}
    for path in modules():
        if package_of(path) != room:
            continue
        tree = ast.parse(path.read_text())
        for check in CHECKS:
            found[check.__name__] += [f"{path.relative_to(PACKAGE)}, {what}" for what in check(tree, path)]
    return found


@pytest.mark.parametrize("room", rooms())
def test_imports_go_upward_only(room: str) -> None:
    assert room in ROW_OF, f"{room} has no row: add it to the map of the house"
    assert found_in(room)["imports_of_lower_rows"] == [], f"{room} may not know the rows below it"


@pytest.mark.parametrize("room", rooms())
def test_heavy_packages_are_imported_inside_functions(room: str) -> None:
    assert found_in(room)["heavy_imports"] == []


@pytest.mark.parametrize("room", rooms())
def test_long_public_functions_have_docstrings(room: str) -> None:
    assert found_in(room)["silent_functions"] == [], "say what they make and refuse"


def test_the_check_sees_a_wrong_import() -> None:
    tree = ast.parse("from ..tune import records\nfrom .. import driver\nimport tensorexpr.relax\nfrom ..tir.expr import Var")
    names = [name for name, _ in imports(tree, PACKAGE / "te" / "example.py")]
    assert names == ["tensorexpr.tune", "tensorexpr.driver", "tensorexpr.relax", "tensorexpr.tir.expr"]
    assert list(imports_of_lower_rows(tree, PACKAGE / "te" / "example.py")) == [
        "line 1: tensorexpr.tune", "line 2: tensorexpr.driver", "line 3: tensorexpr.relax",
    ]  # fmt: skip


def test_the_checks_see_a_heavy_import_and_a_silent_function() -> None:
    tree = ast.parse("import sympy\ndef late():\n    import numpy, llvmlite\ndef long():\n" + "    pass\n" * GLANCE)
    path = PACKAGE / "te" / "example.py"
    assert list(heavy_imports(tree, path)) == ["line 1: sympy"]
    assert list(silent_functions(tree, path)) == ["line 4: long"]


def loaded_by(statement: str) -> set[str]:
    """The modules that a process has after an import, without Python's own."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_loads_nothing_that_is_not_asked_for() -> None:
    loaded = loaded_by("import tensorexpr")
    assert not loaded & {*HEAVY, "fractions", "html"}
    assert {name for name in loaded if name.startswith("tensorexpr.")} == {"tensorexpr.errors", "tensorexpr.later"}


def test_declaring_loads_what_declarations_are_made_of_and_no_more() -> None:
    """The index algebra comes with the first compute, the printer with the first text, the rest with the first schedule."""
    loaded = loaded_by("import tensorexpr; tensorexpr.te.placeholder; tensorexpr.Target; tensorexpr.IRModule")
    assert not loaded & {*HEAVY, "fractions", "html"}
    own = {name.partition(".")[2] for name in loaded if name.startswith("tensorexpr.")}
    assert {name.partition(".")[0] for name in own} == {"dataclass", "errors", "later", "processor", "target", "te", "tir"}
    assert not own & {"te.autodiff", "te.bounds", "te.to_prim_func", "te.tensor_intrin", "tir.printer", "tir.serialize", "tir.structural"}
    assert len(own) <= 60


@pytest.mark.parametrize("name", ["arith", "te", "tir", "tir.analysis"])
def test_what_is_loaded_on_demand_is_called_like_no_module_beside_it(name: str) -> None:
    """Whoever imports that module first puts it where the table would put the function."""
    package = importlib.import_module(f"tensorexpr.{name}")
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    shown = {asked for names in package._HOMES.values() for asked in names.split()}
    assert not modules & shown


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_nothing_lies_about_beside_the_package() -> None:
    top = PACKAGE.parent
    if not (top / "pyproject.toml").exists():
        pytest.skip("the package is installed, not checked out")
    wanted = {"setup.cfg", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert {path.name for path in top.iterdir() if path.is_file() and not path.name.startswith(".")} == wanted

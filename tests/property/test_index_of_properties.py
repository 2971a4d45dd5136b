"""Every bug class has a test that names it: the number of a property stands in its file's docstring and its tests' names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
NUMBERS = frozenset(range(1, 41))
# Numbers without a test here, with the reason.
MISSING: dict[int, str] = {}


def numbers_in(docstring: str) -> set[int]:
    """The numbers that follow "Property" or "Properties": 3, 5 and 7; 1-6; 10 to 14."""
    found: set[int] = set()
    for match in re.finditer(r"[Pp]ropert(?:y|ies) ((?:\d+(?:\s*(?:-|to|,|and)\s*)?)+)", docstring):
        tokens = re.findall(r"\d+|-|to", match[1])
        for place, token in enumerate(tokens):
            if token in ("-", "to") and 0 < place < len(tokens) - 1:
                found |= set(range(int(tokens[place - 1]), int(tokens[place + 1]) + 1))
            elif token.isdigit():
                found.add(int(token))
    return found


def named_tests(module: ast.Module) -> set[int]:
    """The numbers in names such as test_11_splits and test_13_and_14_init; a class counts as its methods."""
    names = [node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    return {int(number) for name in names if re.match(r"test_\d", name) for number in re.findall(r"(?<=[_])\d+(?=_)", name)}


def indexed() -> dict[int, list[str]]:
    """For each number the files that name it in their docstring and test it."""
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if not numbers_in(text):
            continue  # of hundreds of files few are worth parsing
        module = ast.parse(text)
        said, tested = numbers_in(ast.get_docstring(module) or ""), named_tests(module)
        for number in said & tested:
            found.setdefault(number, []).append(str(path.relative_to(TESTS)))
    return found


def test_every_property_has_a_test() -> None:
    found = indexed()
    without = sorted(NUMBERS - found.keys() - MISSING.keys())
    assert not without, f"no test names the properties {without} in its docstring and its name"
    late = sorted(found.keys() & MISSING.keys())
    assert not late, f"{late} have tests now: take them out of MISSING"


def test_docstrings_promise_no_more_than_their_files_test() -> None:
    """Of property tests: a number in a docstring has a test of that name in the file."""
    for path in sorted((TESTS / "property").glob("test_*.py")):
        module = ast.parse(path.read_text())
        missing = numbers_in(ast.get_docstring(module) or "") - named_tests(module)
        assert not missing, f"{path.name} names the properties {sorted(missing)} and has no test of theirs"


def test_numbers_are_read_as_people_read_them() -> None:
    assert numbers_in("Properties 1-3, 7 and 9: and 12 things.") == {1, 2, 3, 7, 9}
    assert numbers_in("Property 15, lanes. Properties 10 to 12 and 24.") == {15, 10, 11, 12, 24}
    assert numbers_in("no number 5") == set()

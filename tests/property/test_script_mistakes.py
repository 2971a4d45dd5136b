"""Property: a text with mistakes in it is a program or a ParseError with a place, never anything else."""

from __future__ import annotations

import ast
import random
import re
from copy import deepcopy
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.errors import ParseError
from tensorexpr.script import parse
from tests.effort import share_of

FOLDER = Path(__file__).parent.parent / "golden"
FILES = (
    "blocks/argmax.py", "blocks/tiles.py", "lowered/tensorized.phase0.py", "printer/module.py", "printer/realize_with.py",
    "printer/scopes.py", "printer/symbolic.py", "printer/vectors.py", "script/tvm_blockized.py", "script/tvm_statements.py",
)  # fmt: skip
TEXTS = [(FOLDER / name).read_text() for name in FILES]
TOKEN = re.compile(r'"[^"\n]*"|[\w.]+|\s+|[^\w\s]')
WORDS = sorted({token for text in TEXTS for token in TOKEN.findall(text) if token.strip()})
STRANGE = [
    "None", "True", "-1", "1.5", "1e400", "T", "T.axis", "I", "A.shape", "A.data", "T.max", "lambda: 0", "()", "[]", "{}", "*", "**", "é",
    '"x"', "0 ** 0", "10 ** 100", "T.int32", "T.int32()", "T.handle", "T.float32x4", "...", "not", "if", "for", "T.Buffer",
]  # fmt: skip


POOL = [node for text in TEXTS for node in ast.walk(ast.parse(text)) if isinstance(node, ast.expr)]
POOL += [ast.parse(text, mode="eval").body for text in STRANGE if "*" not in text.split(" ")[0] and text not in ("not", "if", "for")]


def other_tokens(rng: random.Random) -> str:
    """A program with one to three tokens deleted, doubled, swapped or replaced."""
    tokens = TOKEN.findall(rng.choice(TEXTS))
    for _ in range(rng.randint(1, 3)):
        place, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        edit = rng.randrange(5)
        if edit == 0:
            del tokens[place]
        elif edit == 1:
            tokens.insert(place, tokens[place])
        elif edit == 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            tokens[place] = rng.choice(WORDS if edit == 3 else STRANGE)
    return "".join(tokens)


def other_expressions(rng: random.Random) -> str:
    """A program with one to three expressions replaced by some of another place or program, or statements moved: valid Python."""
    tree = ast.parse(rng.choice(TEXTS))
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.2:
            blocks: list[list[ast.stmt]] = [
                node.body
                for node in ast.walk(tree)
                if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With))
            ]
            source, target = rng.choice(blocks), rng.choice(blocks)
            target.insert(rng.randint(0, len(target)), deepcopy(rng.choice(source)))
            continue
        owner = rng.choice([node for node in ast.walk(tree) if any(isinstance(child, ast.expr) for child in ast.iter_child_nodes(node))])
        field, value = rng.choice([(name, value) for name, value in ast.iter_fields(owner) if _holds_expressions(value)])
        if isinstance(value, list):
            value[rng.randrange(len(value))] = deepcopy(rng.choice(POOL))
        else:
            setattr(owner, field, deepcopy(rng.choice(POOL)))
    return ast.unparse(tree)


def _holds_expressions(value: object) -> bool:
    return isinstance(value, ast.expr) or (isinstance(value, list) and bool(value) and all(isinstance(item, ast.expr) for item in value))


def spoiled(rng: random.Random) -> str:
    """A program with mistakes."""
    return other_tokens(rng) if rng.random() < 0.3 else other_expressions(rng)


@settings(max_examples=share_of(250), deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_mistakes_are_reported(seed: int) -> None:
    text = spoiled(random.Random(seed))
    try:
        parse(text, check_well_formed=bool(seed % 2))
    except ParseError as error:
        assert re.match(r"<script>(:\d+:\d+)?: ", str(error)), error

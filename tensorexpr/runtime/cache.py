"""What is found on disk instead of being made again: the code of a program, and the machine code of a text.

Two steps, two kinds of entries (see `store`): a program that was lowered before gives its LLVM IR text (`program_key` says
when two programs are the same), and a text that was compiled before gives its object file. An object's key is all that the
object depends on: the text, the machine, the level, LLVM's version, and the module that runs LLVM.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pkgutil
import time
from collections.abc import Mapping
from functools import lru_cache

from .. import config
from ..codegen.signature import Signature
from ..dataclass import dataclass
from ..errors import TensorExprError
from ..target import Target
from . import engine, sidecar, store

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Program:
    """LLVM IR text, how to call its functions, and the C functions that it calls by name."""

    text: str
    signatures: Mapping[str, Signature]
    externs: tuple[str, ...] = ()


def compile_text(text: str, target: Target, opt_level: int = 3) -> engine.CompiledObject:
    """What `engine.compile_text` gives, from the cache if it is there. Then `timings` has `cache`, the seconds of the search."""
    if not config.cache_enabled():
        return engine.compile_text(text, target, opt_level)
    start = time.perf_counter()
    key = object_key(text, target, opt_level)
    found = store.fetch(key)
    if found is not None and len(found) == 1:
        return engine.CompiledObject(found[0], {"cache": time.perf_counter() - start})
    made = engine.compile_text(text, target, opt_level)
    store.keep(key, (made.data,))
    return made


def object_key(text: str, target: Target, opt_level: int) -> bytes:
    """Everything that the object file of a text depends on."""
    machine = [target.triple, target.mcpu, target.feature_string, f"level {opt_level}"]
    # The text comes last: whatever lines it holds, those before it can't be mistaken for them.
    return "\n".join(["object", f"LLVM {engine.llvm_version()}", _engine_digest(), *machine, text]).encode()


@lru_cache(maxsize=1)
def _engine_digest() -> str:
    """The hash of the source that drives LLVM: another sequence of passes is another object."""
    return hashlib.sha256(pkgutil.get_data("tensorexpr.runtime", "engine.py") or b"").hexdigest()


def fetch_program(key: bytes) -> Program | None:
    """The program that was kept under a key of `program_key`."""
    found = store.fetch(key)
    if found is None or len(found) != 2:
        return None
    try:
        described = json.loads(found[0])
        return Program(found[1].decode(), sidecar.signatures_from_json(described["functions"]), tuple(described["externs"]))
    except (ValueError, KeyError, TypeError, TensorExprError) as error:
        logger.debug("an entry that can't be read is made anew: %s", error)
        return None


def keep_program(key: bytes, program: Program) -> None:
    """Keep a program under a key of `program_key`."""
    described = {"functions": sidecar.signatures_to_json(program.signatures), "externs": list(program.externs)}
    store.keep(key, (json.dumps(described).encode(), program.text.encode()))

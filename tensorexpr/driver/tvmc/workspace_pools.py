"""Pools of memory, which networks don't have: one arena is all that a run takes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


def generate_workspace_pools_args(parser: argparse.ArgumentParser) -> None:
    """--workspace-pools, which is refused."""
    parser.add_argument("--workspace-pools", help="refused: a network has one arena")


def workspace_pools_recombobulate(parsed: argparse.Namespace, targets: Sequence[Any], extra_target: Any = None) -> Any:
    """The pools of an option: what it says, which `compiler.build` refuses."""
    return getattr(parsed, "workspace_pools", None)

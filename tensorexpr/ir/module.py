"""Modules of functions."""

from __future__ import annotations

from ..tir.function import GlobalVar, IRModule

__all__ = ["GlobalVar", "IRModule"]

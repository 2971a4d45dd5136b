"""Modules of functions."""

from ..tir.function import GlobalVar, IRModule

string_types = (str,)

__all__ = ["GlobalVar", "IRModule", "string_types"]

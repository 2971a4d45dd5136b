"""tir."""

from . import printer as printer

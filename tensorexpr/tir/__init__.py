"""tir."""

from . import interpreter as interpreter
from . import printer as printer

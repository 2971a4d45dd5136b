"""What can be told of graphs without running them."""

from ..visitor import bindings_of, operands, post_order_visit, walk
from .unused import is_pure, remove_all_unused

__all__ = ["bindings_of", "is_pure", "operands", "post_order_visit", "remove_all_unused", "walk"]

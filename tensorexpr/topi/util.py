"""`topi.utils`, as programs of early releases spell it."""

from .utils import get_const_float, get_const_int, get_const_tuple, get_shape, nchw_pack_layout, nchw_xc_layout, simplify, traverse_inline

__all__ = [
    "get_const_float",
    "get_const_int",
    "get_const_tuple",
    "get_shape",
    "nchw_pack_layout",
    "nchw_xc_layout",
    "simplify",
    "traverse_inline",
]

"""`topi.utils` as programs find it beside the operators of networks."""

from ..utils import get_const_tuple, get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d

__all__ = ["get_const_tuple", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d"]

"""As `conv2d_avx_common`, for convolutions of each channel."""

from .conv2d_avx_common import fallback_knobs

_fallback_schedule = fallback_knobs

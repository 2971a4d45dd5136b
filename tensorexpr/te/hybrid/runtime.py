"""The words of hybrid functions that aren't Python's own."""

from __future__ import annotations

LOOPS = ("range", "serial", "parallel", "vectorize", "unroll", "const_range", "grid", "bind")
INTRINSICS = (
    "sqrt",
    "rsqrt",
    "log",
    "exp",
    "tanh",
    "sigmoid",
    "power",
    "popcount",
    "round",
    "likely",
    "min",
    "max",
    "ceil_div",
    "abs",
    "floor",
)
CASTS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)

HYBRID_GLOBALS: dict[str, str] = {
    **{name: "loop" for name in LOOPS if name != "range"},
    **{name: "intrinsic" for name in INTRINSICS if name not in ("round", "min", "max", "abs")},
    **{name: "cast" for name in CASTS},
    **{name: "tensor" for name in ("output_tensor", "allocate")},
    "max_num_threads": "number",
}
"""What a hybrid function may call besides `range`, `len`, `min`, `max`, `round` and `abs`: the name, and of which kind it is."""

"""Each core has panels of columns to itself."""

from __future__ import annotations

from lesson import LANES, PANEL, ROWS, Program, product, run


def schedule(size: int) -> Program:
    """As before, with one line more."""
    s, a, b, c = product(size)
    tile = s.cache_write(c, "local")
    jo, io, ji, ii = s[c].tile(c.op.axis[1], c.op.axis[0], PANEL, ROWS)
    jv, jl = s[c].split(ji, factor=LANES)
    s[c].reorder(jo, io, ii, jv, jl)
    s[c].vectorize(jl)
    s[c].parallel(jo)
    s[tile].compute_at(s[c], io)
    (i, j), (k,) = s[tile].op.axis, s[tile].op.reduce_axis
    v, lane = s[tile].split(j, factor=LANES)
    s[tile].reorder(k, i, v, lane)
    s[tile].unroll(i)
    s[tile].unroll(v)
    s[tile].vectorize(lane)
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)

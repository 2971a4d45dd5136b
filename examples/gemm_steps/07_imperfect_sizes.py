"""Sizes that no tile divides cost nothing: the last panel is packed with zeros, and tiles of rows come in two sizes."""

from __future__ import annotations

from lesson import LANES, PANEL, ROWS, Program, product, run


def schedule(size: int) -> Program:
    """As before; only C is masked, and no tile is much smaller than the others."""
    s, a, b, c = product(size)
    tile = s.cache_write(c, "local")
    packed = s.cache_read(b, "global", [tile])
    *_, column = s[packed].transform_layout(lambda k, j: [j // PANEL, k, j % PANEL], pad_value=0.0)
    jo, ji = s[c].split(c.op.axis[1], factor=PANEL)
    io, ii = s[c].split(c.op.axis[0], factor=ROWS, balanced=True)
    jv, jl = s[c].split(ji, factor=LANES)
    s[c].reorder(jo, io, ii, jv, jl)
    s[c].vectorize(jl)
    s[c].parallel(jo)
    s[packed].compute_at(s[c], jo)
    s[packed].vectorize(column)
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

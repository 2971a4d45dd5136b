"""Half the bits: an instruction that adds the products of pairs of bfloat16 to float32."""

from __future__ import annotations

from lesson import PANEL, ROWS, TARGET, Program, run

from tensorexpr import te

NEEDS = "avx512bf16"
OUTPUTS, PAIR = 16, 2  # of one instruction: out[i] += a[0] * b[i, 0] + a[1] * b[i, 1]
MULTIPLE = OUTPUTS  # of which sizes are


def schedule(size: int) -> Program:
    """As before, with pairs of rows of B packed side by side, and the innermost loops left to the instruction."""
    a, b = te.placeholder((size, size), "bfloat16", name="A"), te.placeholder((size, size), "bfloat16", name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    s = te.create_schedule(c.op)
    tile = s.cache_write(c, "local")
    packed = s.cache_read(b, "global", [tile])
    *_, lane, pair = s[packed].transform_layout(
        lambda k, j: [j // PANEL, k // PAIR, j // OUTPUTS % (PANEL // OUTPUTS), j % OUTPUTS, k % PAIR], pad_value=0.0
    )
    jo, ji = s[c].split(c.op.axis[1], factor=PANEL)
    io, ii = s[c].split(c.op.axis[0], factor=ROWS, balanced=True)
    jv, jl = s[c].split(ji, factor=OUTPUTS)
    s[c].reorder(jo, io, ii, jv, jl)
    s[c].vectorize(jl)
    s[c].parallel(jo)
    s[packed].compute_at(s[c], jo)
    s[packed].unroll(lane)
    s[packed].vectorize(pair)
    s[tile].compute_at(s[c], io)
    (i, j), (step,) = s[tile].op.axis, s[tile].op.reduce_axis
    v, lane = s[tile].split(j, factor=OUTPUTS)
    pairs, within = s[tile].split(step, factor=PAIR)
    s[tile].reorder(pairs, i, v, lane, within)
    s[tile].unroll(i)
    s[tile].unroll(v)
    s[tile].tensorize(lane, te.intrinsics.dot_16x2_avx512_bf16())
    return s, [a, b, c]


if __name__ == "__main__":
    if NEEDS in TARGET.features:
        run(schedule)
    else:
        print(f"this processor has no {NEEDS}")

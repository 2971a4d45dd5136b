# from tensorexpr.script import tir as T

@T.prim_func
def main(X: T.Buffer((4, 6, 6), "float32"), W: T.Buffer((8, 4, 3, 3), "float32"), out: T.Buffer((8, 6, 6), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    pad = T.alloc_buffer((4, 8, 8))
    conv = T.alloc_buffer((8, 6, 6))
    for ch, i, j in T.grid(4, 8, 8):
        with T.block("pad"):
            v_ch, v_i, v_j = T.axis.remap("SSS", [ch, i, j])
            T.reads(X[v_ch, v_i - 1, v_j - 1])
            T.writes(pad[v_ch, v_i, v_j])
            pad[v_ch, v_i, v_j] = T.if_then_else(1 <= v_i and v_i < 7 and 1 <= v_j and v_j < 7, X[v_ch, v_i - 1, v_j - 1], T.float32(0.0))
    for o, i, j, rc, ri, rj in T.grid(8, 6, 6, 4, 3, 3):
        with T.block("conv"):
            v_o, v_i, v_j, v_rc, v_ri, v_rj = T.axis.remap("SSSRRR", [o, i, j, rc, ri, rj])
            T.reads(pad[v_rc, v_i + v_ri, v_j + v_rj], W[v_o, v_rc, v_ri, v_rj])
            T.writes(conv[v_o, v_i, v_j])
            with T.init():
                conv[v_o, v_i, v_j] = T.float32(0.0)
            conv[v_o, v_i, v_j] = conv[v_o, v_i, v_j] + pad[v_rc, v_i + v_ri, v_j + v_rj] * W[v_o, v_rc, v_ri, v_rj]
    for o, i, j in T.grid(8, 6, 6):
        with T.block("out"):
            v_o, v_i, v_j = T.axis.remap("SSS", [o, i, j])
            T.reads(conv[v_o, v_i, v_j])
            T.writes(out[v_o, v_i, v_j])
            out[v_o, v_i, v_j] = T.max(conv[v_o, v_i, v_j], T.float32(0.0))

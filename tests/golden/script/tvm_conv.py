# from tvm.script import tir as T

@T.prim_func
def main(X: T.Buffer((2, 8, 8), "float32"), W: T.Buffer((4, 2, 3, 3), "float32"), R_1: T.Buffer((4, 8, 8), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    P = T.alloc_buffer((2, 10, 10))
    Y = T.alloc_buffer((4, 8, 8))
    for c, i, j in T.grid(2, 10, 10):
        with T.block("P"):
            v_c, v_i, v_j = T.axis.remap("SSS", [c, i, j])
            T.reads(X[v_c, v_i - 1, v_j - 1])
            T.writes(P[v_c, v_i, v_j])
            P[v_c, v_i, v_j] = T.if_then_else(1 <= v_i and v_i < 9 and 1 <= v_j and v_j < 9, X[v_c, v_i - 1, v_j - 1], T.float32(0.0))
    for o, i, j, rc, ri, rj in T.grid(4, 8, 8, 2, 3, 3):
        with T.block("Y"):
            v_o, v_i, v_j, v_rc, v_ri, v_rj = T.axis.remap("SSSRRR", [o, i, j, rc, ri, rj])
            T.reads(P[v_rc, v_i + v_ri, v_j + v_rj], W[v_o, v_rc, v_ri, v_rj])
            T.writes(Y[v_o, v_i, v_j])
            with T.init():
                Y[v_o, v_i, v_j] = T.float32(0.0)
            Y[v_o, v_i, v_j] = Y[v_o, v_i, v_j] + P[v_rc, v_i + v_ri, v_j + v_rj] * W[v_o, v_rc, v_ri, v_rj]
    for o, i, j in T.grid(4, 8, 8):
        with T.block("R"):
            v_o, v_i, v_j = T.axis.remap("SSS", [o, i, j])
            T.reads(Y[v_o, v_i, v_j])
            T.writes(R_1[v_o, v_i, v_j])
            R_1[v_o, v_i, v_j] = T.max(Y[v_o, v_i, v_j], T.float32(0.0))

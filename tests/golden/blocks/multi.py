# from tensorexpr.script import tir as T

@T.prim_func
def main(V: T.Buffer((16,), "float32"), W: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    U_v0 = T.alloc_buffer((8,))
    U_v1 = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("U_v0"):
            v_i = T.axis.spatial(8, i)
            T.reads(V[v_i])
            T.writes(U_v0[v_i])
            U_v0[v_i] = V[v_i] + T.float32(1.0)
        with T.block("U_v1"):
            v_i = T.axis.spatial(8, i)
            T.reads(V[v_i])
            T.writes(U_v1[v_i])
            U_v1[v_i] = V[v_i] * T.float32(2.0)
    for i in range(8):
        with T.block("W"):
            v_i = T.axis.spatial(8, i)
            T.reads(U_v0[v_i], U_v1[v_i])
            T.writes(W[v_i])
            W[v_i] = U_v0[v_i] + U_v1[v_i]

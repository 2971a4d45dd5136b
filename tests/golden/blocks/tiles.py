# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i, j in T.grid(4, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.block_attr({"x": 1, "y": "z"})
            D = T.alloc_buffer((4, 4), "float64", scope="local")
            M = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=("s0", "s1"), elem_offset="e")
            for x, y in T.grid(4, 4):
                with T.block("load"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    T.reads(M[vx, vy])
                    T.writes(D[vx, vy])
                    D[vx, vy] = T.Cast("float64", M[vx, vy])
            for p, q in T.grid(4, 4):
                with T.block("store"):
                    vp, vq = T.axis.remap("SS", [p, q])
                    T.reads(D[vp, vq])
                    T.writes(B[vi * 4 + vp, vj * 4 + vq])
                    B[vi * 4 + vp, vj * 4 + vq] = T.Cast("float32", D[vp, vq]) + T.float32(1.0)

# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((10,), "float32"), D: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    B = T.alloc_buffer((10,))
    C = T.alloc_buffer((10,))
    for i in range(10):
        with T.block("B"):
            v_i = T.axis.spatial(10, i)
            T.reads(A[v_i])
            T.writes(B[v_i])
            B[v_i] = A[v_i] + T.float32(1.0)
    for i in range(10):
        with T.block("C"):
            v_i = T.axis.spatial(10, i)
            T.reads(B[v_i])
            T.writes(C[v_i])
            C[v_i] = B[v_i] * T.float32(2.0)
    for i in range(8):
        with T.block("D"):
            v_i = T.axis.spatial(8, i)
            T.reads(C[v_i], B[v_i + 2])
            T.writes(D[v_i])
            D[v_i] = C[v_i] - B[v_i + 2]

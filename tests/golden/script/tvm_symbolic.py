# from tvm.script import tir as T

@T.prim_func
def main(var_A: T.handle, var_B: T.handle):
    T.func_attr({"tir.noalias": T.bool(True)})
    n, m = T.int32(), T.int32(is_size_var=True)
    A = T.match_buffer(var_A, (n, m))
    B = T.match_buffer(var_B, (n, m))
    # with T.block("root"):
    for i, j in T.grid(n, m):
        with T.block("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(A[v_i, v_j])
            T.writes(B[v_i, v_j])
            B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0) + T.float32(1.0)

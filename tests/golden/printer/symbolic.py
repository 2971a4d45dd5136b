# from tensorexpr.script import tir as T

@T.prim_func
def scale(A: T.handle, B: T.handle, C: T.handle, alpha: T.float32):
    n, m = T.int32(is_size_var=True), T.int64(is_size_var=True)
    A_1 = T.match_buffer(A, (n, m))
    B_1 = T.match_buffer(B, (n + 1,), "float16", strides=("stride",))
    C_1 = T.match_buffer(C, (n,), "int8", elem_offset=4, scope="local", align=128, offset_factor=4)
    for i, j in T.grid(n, m):
        A_1[i, j] = A_1[i, j] * alpha + T.Cast("float32", B_1[i]) + T.Cast("float32", C_1[i])

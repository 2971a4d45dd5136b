# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.handle, B: T.Buffer((4,), "float32"), n: T.int32):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    A_1 = T.match_buffer(A, (n, 4))
    for i in range(n):
        A_1[i, 3] = B[0]

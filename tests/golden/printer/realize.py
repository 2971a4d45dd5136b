# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), out: T.Buffer((16, 16), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    for i in range(16):
        B = T.Buffer((16, 16), scope="local")
        T.realize(B[i:i + 1, 0:16])
        for j in T.unroll(16, annotations={"pragma_unroll_explicit": T.bool(True)}):
            B[i, j] = T.exp(A[i, j])
        for j in T.serial(16, annotations={"pragma_auto_unroll_max_step": 64}):
            out[i, j] = B[i, j] * T.float32(2.0)

# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((2, 8, 8), "float32"), W: T.Buffer((16, 2, 3, 3), "float32"), out: T.Buffer((16, 8, 8), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(8):
            for j_outer in T.serial(2, annotations={"pragma_loop_partition_hint": T.bool(True)}):
                conv = T.allocate([64], "float32", "global")
                conv_1 = T.Buffer((64,), data=conv)
                for j_init in range(4):
                    for o_init in T.vectorized(16):
                        conv_1[o_init * 4 + j_init] = T.float32(0.0)
                for ri, rj, rc, j in T.grid(3, 3, 2, 4):
                    for o in T.vectorized(16):
                        if i + ri >= 1 and i + ri < 9 and j_outer * 4 + j + rj >= 1 and j_outer * 4 + j + rj < 9:
                            X_1 = T.Buffer((128,), data=X.data)
                            W_1 = T.Buffer((288,), data=W.data)
                            conv_1[o * 4 + j] = conv_1[o * 4 + j] + X_1[rc * 64 + i * 8 + ri * 8 + j_outer * 4 + j + rj - 9] * W_1[o * 18 + rc * 9 + ri * 3 + rj]
                for j_inner in range(4):
                    for o in T.vectorized(16):
                        out_1 = T.Buffer((1024,), data=out.data)
                        out_1[o * 64 + i * 8 + j_outer * 4 + j_inner] = T.max(conv_1[o * 4 + j_inner], T.float32(0.0))

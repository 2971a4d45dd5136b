# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((2, 4, 4), "float32"), W: T.Buffer((4, 2, 3, 3), "float32"), out: T.Buffer((4, 4, 4), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        pad = T.allocate([72], "float32", "global")
        conv = T.allocate([64], "float32", "global")
        pad_1 = T.Buffer((72,), data=pad)
        for ch, i, j in T.grid(2, 6, 6):
            X_1 = T.Buffer((32,), data=X.data)
            pad_1[ch * 36 + i * 6 + j] = T.if_then_else(i >= 1 and i < 5 and j >= 1 and j < 5, X_1[ch * 16 + i * 4 + j - 5], T.float32(0.0))
        conv_1 = T.Buffer((64,), data=conv)
        for o, i, j in T.grid(4, 4, 4):
            conv_2 = T.allocate([1], "float32", "register")
            conv_3 = T.Buffer((1,), data=conv_2, scope="register")
            conv_3[0] = T.float32(0.0)
            for rc, ri, rj in T.grid(2, 3, 3):
                W_1 = T.Buffer((72,), data=W.data)
                conv_3[0] = conv_3[0] + pad_1[rc * 36 + i * 6 + ri * 6 + j + rj] * W_1[o * 18 + rc * 9 + ri * 3 + rj]
            conv_1[o * 16 + i * 4 + j] = conv_3[0]
        for o, i in T.grid(4, 4):
            out_1 = T.Buffer((64,), data=out.data)
            out_1[o * 16 + i * 4:o * 16 + i * 4 + 4] = T.max(conv_1[o * 16 + i * 4:o * 16 + i * 4 + 4], T.Broadcast(T.float32(0.0), 4))

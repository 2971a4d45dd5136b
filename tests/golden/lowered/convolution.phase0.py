# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((2, 4, 4), "float32"), W: T.Buffer((4, 2, 3, 3), "float32"), out: T.Buffer((4, 4, 4), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        pad = T.Buffer((2, 6, 6))
        T.realize(pad[0:2, 0:6, 0:6])
        for ch, i, j in T.grid(2, 6, 6):
            pad[ch, i, j] = T.if_then_else(i >= 1 and i < 5 and j >= 1 and j < 5, X[ch, i - 1, j - 1], T.float32(0.0))
        conv = T.Buffer((4, 4, 4))
        T.realize(conv[0:4, 0:4, 0:4])
        for o, i, j in T.grid(4, 4, 4):
            conv[o, i, j] = T.float32(0.0)
            for rc, ri, rj in T.grid(2, 3, 3):
                conv[o, i, j] = conv[o, i, j] + pad[rc, i + ri, j + rj] * W[o, rc, ri, rj]
        for o, i in T.grid(4, 4):
            for j in T.vectorized(4):
                out[o, i, j] = T.max(conv[o, i, j], T.float32(0.0))

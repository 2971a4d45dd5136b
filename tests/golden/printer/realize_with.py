# from tensorexpr.script import tir as T

@T.prim_func
def main(out: T.Buffer((4,), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    for i in range(4):
        B = T.Buffer((8,))
        with T.realize(B[i * 2:i * 2 + 2], condition=i < 3):
            B[i * 2] = T.float32(1.0)
        out[i] = T.float32(0.0)

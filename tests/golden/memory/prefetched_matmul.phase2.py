# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((16, 32), "float32"), C: T.Buffer((4, 32), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(4):
            C_1 = T.allocate([1], "float32x32", "register")
            C_2 = T.Buffer((1,), "float32x32", data=C_1, scope="register")
            C_2[0] = T.Broadcast(T.float32(0.0), 32)
            for k in range(16):
                B_1 = T.Buffer((512,), data=B.data)
                T.prefetch(B_1[k * 32 + 128], 0, 3, 1)
                T.prefetch(B_1[k * 32 + 16 + 128], 0, 3, 1)
                A_1 = T.Buffer((64,), data=A.data)
                C_2[0] = C_2[0] + T.Broadcast(A_1[i * 16 + k], 32) * B_1[k * 32:k * 32 + 32]
            C_3 = T.Buffer((128,), data=C.data)
            C_3[i * 32:i * 32 + 32] = C_2[0]

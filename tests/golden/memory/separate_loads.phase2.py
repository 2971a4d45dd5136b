# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 6), "float32"), W: T.Buffer((8, 3, 16), "float32"), out: T.Buffer((4, 16), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        out_1 = T.allocate([4], "float32x16", "register")
        out_2 = T.Buffer((4,), "float32x16", data=out_1, scope="register")
        out_2[0] = T.Broadcast(T.float32(0.0), 16)
        out_2[1] = T.Broadcast(T.float32(0.0), 16)
        out_2[2] = T.Broadcast(T.float32(0.0), 16)
        out_2[3] = T.Broadcast(T.float32(0.0), 16)
        for c in range(8):
            T.no_load_merge()
            A_1 = T.Buffer((48,), data=A.data)
            W_1 = T.Buffer((384,), data=W.data)
            out_2[0] = out_2[0] + T.Broadcast(A_1[c * 6], 16) * W_1[c * 48:c * 48 + 16]
            out_2[1] = out_2[1] + T.Broadcast(A_1[c * 6 + 1], 16) * W_1[c * 48:c * 48 + 16]
            out_2[2] = out_2[2] + T.Broadcast(A_1[c * 6 + 2], 16) * W_1[c * 48:c * 48 + 16]
            out_2[3] = out_2[3] + T.Broadcast(A_1[c * 6 + 3], 16) * W_1[c * 48:c * 48 + 16]
            T.no_load_merge()
            out_2[0] = out_2[0] + T.Broadcast(A_1[c * 6 + 1], 16) * W_1[c * 48 + 16:c * 48 + 16 + 16]
            out_2[1] = out_2[1] + T.Broadcast(A_1[c * 6 + 1 + 1], 16) * W_1[c * 48 + 16:c * 48 + 16 + 16]
            out_2[2] = out_2[2] + T.Broadcast(A_1[c * 6 + 2 + 1], 16) * W_1[c * 48 + 16:c * 48 + 16 + 16]
            out_2[3] = out_2[3] + T.Broadcast(A_1[c * 6 + 3 + 1], 16) * W_1[c * 48 + 16:c * 48 + 16 + 16]
            T.no_load_merge()
            out_2[0] = out_2[0] + T.Broadcast(A_1[c * 6 + 2], 16) * W_1[c * 48 + 32:c * 48 + 32 + 16]
            out_2[1] = out_2[1] + T.Broadcast(A_1[c * 6 + 1 + 2], 16) * W_1[c * 48 + 32:c * 48 + 32 + 16]
            out_2[2] = out_2[2] + T.Broadcast(A_1[c * 6 + 2 + 2], 16) * W_1[c * 48 + 32:c * 48 + 32 + 16]
            out_2[3] = out_2[3] + T.Broadcast(A_1[c * 6 + 3 + 2], 16) * W_1[c * 48 + 32:c * 48 + 32 + 16]
        out_3 = T.Buffer((64,), data=out.data)
        out_3[0:16] = out_2[0]
        out_3[16:32] = out_2[1]
        out_3[32:48] = out_2[2]
        out_3[48:64] = out_2[3]

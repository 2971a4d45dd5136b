# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((2, 8, 8), "float32"), W: T.Buffer((16, 2, 3, 3), "float32"), out: T.Buffer((16, 8, 8), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(8):
            X_1 = T.Buffer((128,), data=X.data)
            W_1 = T.Buffer((288,), data=W.data)
            out_1 = T.Buffer((1024,), data=out.data)
            with T.allocate([4], "float32x16", "register") as conv:
                conv_1 = T.Buffer((4,), "float32x16", data=conv, scope="register")
                conv_1[0] = T.Broadcast(T.float32(0.0), 16)
                conv_1[1] = T.Broadcast(T.float32(0.0), 16)
                conv_1[2] = T.Broadcast(T.float32(0.0), 16)
                conv_1[3] = T.Broadcast(T.float32(0.0), 16)
                for ri in range(T.max(1 - i, 0), T.max(1 - i, 0) + (T.min(9 - i, 3) - T.max(1 - i, 0))):
                    for rc in range(2):
                        conv_1[1] = conv_1[1] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 1 - 9], 16) * W_1[rc * 9 + ri * 3:rc * 9 + ri * 3 + 288:18]
                        conv_1[2] = conv_1[2] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 2 - 9], 16) * W_1[rc * 9 + ri * 3:rc * 9 + ri * 3 + 288:18]
                        conv_1[3] = conv_1[3] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 3 - 9], 16) * W_1[rc * 9 + ri * 3:rc * 9 + ri * 3 + 288:18]
                    for rj in range(1, 3):
                        for rc in range(2):
                            conv_1[0] = conv_1[0] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                            conv_1[1] = conv_1[1] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 1 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                            conv_1[2] = conv_1[2] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 2 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                            conv_1[3] = conv_1[3] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 3 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                out_1[i * 8:i * 8 + 1024:64] = T.max(conv_1[0], T.Broadcast(T.float32(0.0), 16))
                out_1[i * 8 + 1:i * 8 + 1 + 1024:64] = T.max(conv_1[1], T.Broadcast(T.float32(0.0), 16))
                out_1[i * 8 + 2:i * 8 + 2 + 1024:64] = T.max(conv_1[2], T.Broadcast(T.float32(0.0), 16))
                out_1[i * 8 + 3:i * 8 + 3 + 1024:64] = T.max(conv_1[3], T.Broadcast(T.float32(0.0), 16))
            conv = T.allocate([4], "float32x16", "register")
            conv_1 = T.Buffer((4,), "float32x16", data=conv, scope="register")
            conv_1[0] = T.Broadcast(T.float32(0.0), 16)
            conv_1[1] = T.Broadcast(T.float32(0.0), 16)
            conv_1[2] = T.Broadcast(T.float32(0.0), 16)
            conv_1[3] = T.Broadcast(T.float32(0.0), 16)
            for ri in range(T.max(1 - i, 0), T.max(1 - i, 0) + (T.min(9 - i, 3) - T.max(1 - i, 0))):
                for rj, rc in T.grid(2, 2):
                    conv_1[0] = conv_1[0] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                    conv_1[1] = conv_1[1] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 1 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                    conv_1[2] = conv_1[2] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 2 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                    conv_1[3] = conv_1[3] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 3 + rj - 9], 16) * W_1[rc * 9 + ri * 3 + rj:rc * 9 + ri * 3 + rj + 288:18]
                for rc in range(2):
                    conv_1[0] = conv_1[0] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 2 - 9], 16) * W_1[rc * 9 + ri * 3 + 2:rc * 9 + ri * 3 + 2 + 288:18]
                    conv_1[1] = conv_1[1] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 1 + 2 - 9], 16) * W_1[rc * 9 + ri * 3 + 2:rc * 9 + ri * 3 + 2 + 288:18]
                    conv_1[2] = conv_1[2] + T.Broadcast(X_1[rc * 64 + i * 8 + ri * 8 + 4 + 2 + 2 - 9], 16) * W_1[rc * 9 + ri * 3 + 2:rc * 9 + ri * 3 + 2 + 288:18]
            out_1[i * 8 + 4:i * 8 + 4 + 1024:64] = T.max(conv_1[0], T.Broadcast(T.float32(0.0), 16))
            out_1[i * 8 + 4 + 1:i * 8 + 4 + 1 + 1024:64] = T.max(conv_1[1], T.Broadcast(T.float32(0.0), 16))
            out_1[i * 8 + 4 + 2:i * 8 + 4 + 2 + 1024:64] = T.max(conv_1[2], T.Broadcast(T.float32(0.0), 16))
            out_1[i * 8 + 4 + 3:i * 8 + 4 + 3 + 1024:64] = T.max(conv_1[3], T.Broadcast(T.float32(0.0), 16))

# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((4, 2, 4), "float32"), Wx: T.Buffer((4, 4, 4), "float32"), Wh: T.Buffer((4, 4, 4), "float32"), lstm_v0: T.Buffer((4, 2, 4), "float32"), lstm_v1: T.Buffer((4, 2, 4), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        start = T.Buffer((1, 2, 4))
        T.realize(start[0:1, 0:2, 0:4])
        for i1, i2 in T.grid(2, 4):
            start[0, i1, i2] = T.float32(0.0)
        for lstm_out0_i1, lstm_out0_i2 in T.grid(2, 4):
            lstm_v0[0, lstm_out0_i1, lstm_out0_i2] = start[0, lstm_out0_i1, lstm_out0_i2]
        for lstm_out1_i1, lstm_out1_i2 in T.grid(2, 4):
            lstm_v1[0, lstm_out1_i1, lstm_out1_i2] = start[0, lstm_out1_i1, lstm_out1_i2]
        for lstm_idx in range(3):
            projected = T.Buffer((4, 2, 4, 4))
            T.realize(projected[lstm_idx + 1:lstm_idx + 1 + 1, 0:2, 0:4, 0:4])
            for b, g, n in T.grid(2, 4, 4):
                projected[lstm_idx + 1, b, g, n] = T.float32(0.0)
                for ki in range(4):
                    projected[lstm_idx + 1, b, g, n] = projected[lstm_idx + 1, b, g, n] + X[lstm_idx + 1, b, ki] * Wx[g, n, ki]
            recurrent = T.Buffer((4, 2, 4, 4))
            T.realize(recurrent[lstm_idx + 1:lstm_idx + 1 + 1, 0:2, 0:4, 0:4])
            for b, g, n in T.grid(2, 4, 4):
                recurrent[lstm_idx + 1, b, g, n] = T.float32(0.0)
                for kh in range(4):
                    recurrent[lstm_idx + 1, b, g, n] = recurrent[lstm_idx + 1, b, g, n] + lstm_v1[lstm_idx + 1 - 1, b, kh] * Wh[g, n, kh]
            for b, n in T.grid(2, 4):
                lstm_v0[lstm_idx + 1, b, n] = T.sigmoid(projected[lstm_idx + 1, b, 2, n] + recurrent[lstm_idx + 1, b, 2, n]) * lstm_v0[lstm_idx + 1 - 1, b, n] + T.sigmoid(projected[lstm_idx + 1, b, 0, n] + recurrent[lstm_idx + 1, b, 0, n]) * T.tanh(projected[lstm_idx + 1, b, 1, n] + recurrent[lstm_idx + 1, b, 1, n])
            for b, n in T.grid(2, 4):
                lstm_v1[lstm_idx + 1, b, n] = T.sigmoid(projected[lstm_idx + 1, b, 3, n] + recurrent[lstm_idx + 1, b, 3, n]) * T.tanh(lstm_v0[lstm_idx + 1, b, n])

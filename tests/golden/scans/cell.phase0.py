# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((5, 4, 8), "float32"), W: T.Buffer((8, 8), "float32"), rnn: T.Buffer((5, 4, 8), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for rnn_out0_i1, rnn_out0_i2 in T.grid(4, 8):
            rnn[0, rnn_out0_i1, rnn_out0_i2] = T.float32(0.0)
        for rnn_idx in range(4):
            for b in T.parallel(4):
                h_local = T.Buffer((5, 4, 8), scope="local")
                T.realize(h_local[rnn_idx:rnn_idx + 1, b:b + 1, 0:8])
                for ax2 in range(8):
                    h_local[rnn_idx, b, ax2] = rnn[rnn_idx, b, ax2]
                for i_outer in range(2):
                    product = T.Buffer((5, 4, 8))
                    T.realize(product[rnn_idx + 1:rnn_idx + 1 + 1, b:b + 1, i_outer * 4:i_outer * 4 + 4])
                    for i in range(4):
                        product[rnn_idx + 1, b, i_outer * 4 + i] = T.float32(0.0)
                        for k in range(8):
                            product[rnn_idx + 1, b, i_outer * 4 + i] = product[rnn_idx + 1, b, i_outer * 4 + i] + h_local[rnn_idx + 1 - 1, b, k] * W[i_outer * 4 + i, k]
                    for i_inner in T.vectorized(4):
                        rnn[rnn_idx + 1, b, i_outer * 4 + i_inner] = T.tanh(product[rnn_idx + 1, b, i_outer * 4 + i_inner] + X[rnn_idx + 1, b, i_outer * 4 + i_inner])

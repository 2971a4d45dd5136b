# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((21,), "float32"), B: T.Buffer((21,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in range(2):
            B[i_outer * 8:i_outer * 8 + 8] = T.exp(A[i_outer * 8:i_outer * 8 + 8])
        B.vstore([T.Ramp(16, 1, 8)], T.exp(A.vload([T.Ramp(16, 1, 8)], predicate=T.Ramp(16, 1, 8) < T.Broadcast(21, 8))), predicate=T.Ramp(16, 1, 8) < T.Broadcast(21, 8))

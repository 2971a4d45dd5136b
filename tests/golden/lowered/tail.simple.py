# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((21,), "float32"), B: T.Buffer((21,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in range(3):
            B.vstore([T.Ramp(i_outer * 8, 1, 8)], T.exp(A.vload([T.Ramp(i_outer * 8, 1, 8)], predicate=T.Ramp(i_outer * 8, 1, 8) < T.Broadcast(21, 8))), predicate=T.Ramp(i_outer * 8, 1, 8) < T.Broadcast(21, 8))

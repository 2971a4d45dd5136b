# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(V: T.Buffer((16,), "float32"), Q: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i in range(4):
            Q[i] = T.float32(0.0)
            for k in range(2, 10):
                if i < k:
                    Q[i] = Q[i] + V[i + k]

# from tensorexpr.script import tir as T

@T.prim_func
def main(V: T.Buffer((16,), "float32"), Q: T.Buffer((4,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i in range(4):
        for k in range(2, 10):
            with T.block("Q"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(V[v_i + v_k])
                T.writes(Q[v_i])
                with T.init():
                    Q[v_i] = T.float32(0.0)
                if v_i < v_k:
                    Q[v_i] = Q[v_i] + V[v_i + v_k]

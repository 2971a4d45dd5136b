# from tensorexpr.script import tir as T

@T.prim_func
def main(X: T.Buffer((5, 12), "float32"), out: T.Buffer((5, 12), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    top = T.alloc_buffer((5,))
    e = T.alloc_buffer((5, 12))
    total = T.alloc_buffer((5,))
    for i, k1 in T.grid(5, 12):
        with T.block("top"):
            v_i, v_k1 = T.axis.remap("SR", [i, k1])
            T.reads(X[v_i, v_k1])
            T.writes(top[v_i])
            with T.init():
                top[v_i] = T.float32(-340282346638528859811704183484516925440.0)
            top[v_i] = T.max(top[v_i], X[v_i, v_k1])
    for i, j in T.grid(5, 12):
        with T.block("e"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(X[v_i, v_j], top[v_i])
            T.writes(e[v_i, v_j])
            e[v_i, v_j] = T.exp(X[v_i, v_j] - top[v_i])
    for i, k2 in T.grid(5, 12):
        with T.block("total"):
            v_i, v_k2 = T.axis.remap("SR", [i, k2])
            T.reads(e[v_i, v_k2])
            T.writes(total[v_i])
            with T.init():
                total[v_i] = T.float32(0.0)
            total[v_i] = total[v_i] + e[v_i, v_k2]
    for i, j in T.grid(5, 12):
        with T.block("out"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(e[v_i, v_j], total[v_i])
            T.writes(out[v_i, v_j])
            out[v_i, v_j] = e[v_i, v_j] / total[v_i]

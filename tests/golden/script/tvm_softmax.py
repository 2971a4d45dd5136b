# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), O: T.Buffer((8, 16), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    mx = T.alloc_buffer((8,))
    ex = T.alloc_buffer((8, 16))
    s = T.alloc_buffer((8,))
    for i, k in T.grid(8, 16):
        with T.block("mx"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(A[v_i, v_k])
            T.writes(mx[v_i])
            with T.init():
                mx[v_i] = T.float32(-340282346638528859811704183484516925440.0)
            mx[v_i] = T.max(mx[v_i], A[v_i, v_k])
    for i, j in T.grid(8, 16):
        with T.block("ex"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(A[v_i, v_j], mx[v_i])
            T.writes(ex[v_i, v_j])
            ex[v_i, v_j] = T.exp(A[v_i, v_j] - mx[v_i])
    for i, k2 in T.grid(8, 16):
        with T.block("s"):
            v_i, v_k2 = T.axis.remap("SR", [i, k2])
            T.reads(ex[v_i, v_k2])
            T.writes(s[v_i])
            with T.init():
                s[v_i] = T.float32(0.0)
            s[v_i] = s[v_i] + ex[v_i, v_k2]
    for i, j in T.grid(8, 16):
        with T.block("O"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(ex[v_i, v_j], s[v_i])
            T.writes(O[v_i, v_j])
            O[v_i, v_j] = ex[v_i, v_j] / s[v_i]

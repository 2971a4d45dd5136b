# from tensorexpr.script import tir as T

@T.prim_func
def main(S: T.Buffer((), "float32"), Y: T.Buffer((), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    with T.block("Y"):
        vi = T.axis.spatial(1, 0)
        T.reads(S[()])
        T.writes(Y[()])
        Y[()] = S[()] * T.float32(2.0)

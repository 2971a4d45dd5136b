import tensorexpr as tvm
from tensorexpr.script import tir as T
from tensorexpr import tir
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    T.attr(0, "device_scope", 0)
    i = T.launch_thread("threadIdx.x", 16)
    A[i] = 0.0
    T.evaluate(T.assume(A[i] > 0.0))
print(f.script())
a=f.body
print(type(a.node), a.value, type(a.body.node), a.body.attr_key)

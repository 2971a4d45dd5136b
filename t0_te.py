import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.script import tir as T
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i]=1.0
p=tir.transform.Simplify()
print(p.info, p.info.name, p.info.opt_level, list(p.info.required))
try:
    tvm.transform.PassContext(config={"tir.foo":1})
except Exception as e: print(type(e).__name__, isinstance(e, tvm.TVMError), str(e)[-400:])
try:
    tvm.transform.PassContext(config={"tir.noalias":"x"})
except Exception as e: print(type(e).__name__, str(e)[-300:])
with tvm.transform.PassContext(config={"tir.noalias":True}) as c: print(c.config, type(c.config['tir.noalias']).__name__, c.opt_level, list(c.required_pass), c.instruments)
for bad in (lambda: tvm.transform.Sequential(3), lambda: tvm.transform.PassContext(required_pass=3), lambda: tvm.transform.PassContext(instruments=3), lambda: tvm.transform.module_pass(lambda m,c:m), lambda: tir.transform.prim_func_pass(3,opt_level=1)):
    try: print(bad())
    except Exception as e: print(type(e).__name__, str(e)[-200:])
@tvm.instrument.pass_instrument
class PI:
    def enter_pass_ctx(self): print("enter"); 
    def exit_pass_ctx(self): print("exit")
    def should_run(self, mod, info): print("should", info.name); return True
    def run_before_pass(self, mod, info): print("before", info.name)
    def run_after_pass(self, mod, info): print("after", info.name)
timing=tvm.instrument.PassTimingInstrument()
with tvm.transform.PassContext(instruments=[PI(), timing]):
    m=tvm.transform.Sequential([tir.transform.Simplify(), tir.transform.RemoveNoOp()])(tvm.IRModule.from_expr(f))
    print(timing.render())
with tvm.transform.PassContext(instruments=[tvm.instrument.PrintAfterAll()]):
    tir.transform.Simplify()(m)
    tvm.transform.PrintIR("hdr")(m)
print(isinstance(p, tvm.ir.transform.Pass), isinstance(p,tir.transform.PrimFuncPass))
try:
    tvm.instrument.pass_instrument(3)
except Exception as e: print(type(e).__name__, e)
class Bad:
    def run_before_pass(self, m, i): raise ValueError("oh")
    def exit_pass_ctx(self): print("left")
with tvm.transform.PassContext(instruments=[PI()]) as c:
    try:
        c.override_instruments([tvm.instrument.pass_instrument(Bad)()])
        tir.transform.Simplify()(m)
    except Exception as e: print(type(e).__name__, str(e)[-60:])
@tvm.transform.module_pass(opt_level=1)
class MP:
    def __init__(self, k): self.k=k
    def transform_module(self, mod, ctx):
        print("k", self.k); return mod
mp=MP(3)
print(mp.info); mp(m); print(mp.k, isinstance(mp, tvm.transform.ModulePass))
@tir.transform.prim_func_pass(opt_level=1, name="ff")
class FP:
    def __init__(self, k): self.k=k
    def transform_function(self, func, mod, ctx):
        print("k", self.k); return func
fp=FP(4)
print(fp.info); fp(m); print(fp.k, isinstance(fp, tir.transform.PrimFuncPass))
@tir.transform.prim_func_pass(opt_level=1)
def ggg(f, m, c): return f
print(ggg.info, type(ggg).__name__)
class Own(tvm.instrument.PassInstrument):
    def run_before_pass(self, mod, info): print("own", info.name)
with tvm.transform.PassContext(instruments=[Own()]): ggg(m)

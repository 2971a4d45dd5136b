"""Code generation: phase-3 loop IR in, the text of an LLVM module out.

`emit.emit_module` is the door. Everything below it works on one function at a time through a
`context.FunctionContext`, which finds the code for a node in tables keyed by the node's class.
"""

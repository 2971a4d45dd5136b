"""Code generation: phase-3 loop IR in, the text of an LLVM module (or of a C file) out.

`emit.emit_module` is the door. Everything below it works on one function at a time through a
`context.FunctionContext`, which finds the code for a node in tables keyed by the node's class.

emit, function, signature     the door; a function put together; what a caller must know
context, builder, memo, types     what a function being written knows: text, values, spellings
arithmetic, division, casts, low_precision, conditionals, vectors     expressions
intrinsics, llvm_calls, packed_calls, memory_calls, libm     calls
lanes, vector_math (exp, log, power, trig: vector_math_exp, vector_math_log, vector_math_power, vector_math_trig)     math functions
control, parallel     loops and branches; those of several threads
memory, address, masks, odd_vectors, nontemporal     loads and stores
storage, registers    allocations; buffers whose slots are SSA values
spills                registers that a loop saves to the stack, counted
c_module, c_entries   C text of the same functions: the door; how the runtime calls it
c_lanes, c_context     vectors as scalars; what a function being written knows
c_expressions, c_calls, c_statements, c_parameters     nodes; arguments
c_types, c_helpers, c_unused    spellings; functions of the text's own; definitions that nothing uses
ranges                what is known of the values of variables
debug_lines           which line of the lowered program an instruction comes from
"""

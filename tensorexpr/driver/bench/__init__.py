"""`python -m tensorexpr bench`: our kernels and every installed peer, interleaved in one process run.

probes      the limits of the machine, measured in the same run: FMA peak and memory bandwidth
networks    whole networks, as ONNX models
ours        a case as a kernel: default schedule, records, or tuned now
peers/      the same case by NumPy, PyTorch, oneDNN, ONNX Runtime, OpenVINO, TVM
isa         instruction sets that all are held to
priority    real-time priority
timing      contenders in turn, warm and cold
rows        what was measured, as JSON
table       ... as text
page        ... as one HTML page with a bar chart
command     the subcommand
"""

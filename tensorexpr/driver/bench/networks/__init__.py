"""Whole networks in the benchmark.

models       the networks, as ONNX models
contenders   a model by us and by each peer, measured
"""

"""A small network: its text, inputs and result."""

from __future__ import annotations

import numpy as np

TEXT = """def @main(%x: Tensor[(3, 4), float32], %w: Tensor[(2, 4), float32]) {
  nn.relu(nn.dense(%x, %w))
}"""
X = np.linspace(-1, 1, 12).astype("float32").reshape(3, 4)
W = np.linspace(-2, 1, 8).astype("float32").reshape(2, 4)
EXPECTED = np.maximum(X @ W.T, 0)

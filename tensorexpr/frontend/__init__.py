"""Models of other frameworks become graphs: `frontend.onnx`, `frontend.torch`."""

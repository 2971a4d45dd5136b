"""Models of other frameworks become graphs: `frontend.onnx`."""

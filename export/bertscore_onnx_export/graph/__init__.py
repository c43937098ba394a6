"""Writes the ONNX graph of a model, and rewrites it in other precisions."""

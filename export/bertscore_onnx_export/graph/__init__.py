"""Writes the ONNX graph of a model, its scoring graph, and versions in reduced precision."""

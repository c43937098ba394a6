"""ONNX Runtime: which provider runs a graph, its session, and a run of it."""

"""SharedSession of ONNX Runtime: which provider runs a graph, and how it is opened and run."""

"""Token ids to unit token embeddings, on ONNX Runtime."""

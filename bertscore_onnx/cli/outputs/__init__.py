"""What `bertscore-onnx score` writes: pairs as a table or as JSON, and the line with their means."""

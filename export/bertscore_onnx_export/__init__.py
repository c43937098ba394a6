"""The build-time half of bertscore-onnx: exports a transformer, cut at its layer, into a bundle
(extra `export`).
"""

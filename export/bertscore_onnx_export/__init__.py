"""The build-time half of bertscore-onnx (extra `export`).

It exports a transformer, cut at its layer, into a bundle.
"""

"""Writes the ONNX graph of a model.

Writes its scoring graph too, and versions in reduced precision.
"""

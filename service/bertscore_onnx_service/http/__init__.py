"""The HTTP server, on Starlette and uvicorn: the extra `server`. Only `bertscore-onnx serve`
imports it.
"""

"""The HTTP server, on Starlette and uvicorn.

It is the extra `server`; only `bertscore-onnx serve` imports it.
"""

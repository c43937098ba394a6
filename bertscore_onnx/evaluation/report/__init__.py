"""A comparison as a page to read, print and hand on, and as a fragment for notebooks."""

from bertscore_onnx.evaluation.report.page import notebook_html, report_html

__all__ = ["notebook_html", "report_html"]

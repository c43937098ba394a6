"""Judging systems by their scores, and metrics by people's judgements; the extra `evaluation`."""

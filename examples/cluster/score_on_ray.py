"""Scores Parquet files on Ray, and writes Parquet files.

    pip install 'bertscore-onnx[cpu,ray]'
    python score_on_ray.py BUNDLE PAIRS SCORES

PAIRS has the columns `candidate` and `reference`, with one reference per row or a list of them.
Every node must see the three paths; for files in an object store, pass PAIRS and SCORES in a form
that Ray accepts, such as `s3://…`.
"""

import sys

import ray

from bertscore_onnx_service.jobs.ray import score_dataset

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, pairs, scores = sys.argv[1:]
    score_dataset(ray.data.read_parquet(pairs), bundle).write_parquet(scores)

"""BERTScore in lighteval: its own metric `bert_score`, with the scores of a bundle.

    pip install lighteval 'bertscore-onnx[cpu]'
    export BERTSCORE_BUNDLE=path/to/bundle
    lighteval accelerate MODEL TASK --custom-tasks lighteval_metric.py

lighteval has a copy of bert-score's code with one model and its baseline built in. This file puts a
scorer of the bundle into the metric, for every task that has it, such as `summarization:xsum`; add
your own tasks to `TASKS_TABLE`.
"""

import os

from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig

from bertscore_onnx import BERTScorer

TASKS_TABLE: list[LightevalTaskConfig] = []

Metrics.bert_score.value.sample_level_fn.bert_scorer = BERTScorer(os.environ["BERTSCORE_BUNDLE"])

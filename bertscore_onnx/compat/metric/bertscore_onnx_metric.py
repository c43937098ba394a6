"""BERTScore as a metric of Hugging Face's `evaluate`.

`evaluate` copies this file and runs the copy.
"""

from typing import Any

import datasets
import evaluate

from bertscore_onnx.functional import score

_DESCRIPTION = (
    "Precision, recall and F1 of matching contextual token embeddings greedily, on ONNX Runtime."
)

_INPUTS = """
Args:
    predictions: the candidates, strings.
    references: for each of them a string, or a list of strings, where the best counts.
    **options: of `bertscore_onnx.score`, such as lang="en", model_type="path/to/bundle", idf=True,
        rescale_with_baseline=True.

Returns:
    precision, recall, f1: lists of float, each with a value for each prediction.
    hashcode: the signature, which states all that can change a digit.
"""

_CITATION = """@inproceedings{zhang2020bertscore,
  title = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and \
Artzi, Yoav},
  booktitle = {International Conference on Learning Representations},
  year = {2020},
  url = {https://openreview.net/forum?id=SkeHuCVFDr}
}
"""


class BertScoreOnnx(evaluate.Metric):  # type: ignore[misc] # evaluate carries no types
    """BERTScore, whose models stay loaded between calls."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
                datasets.Features({"predictions": text, "references": text}),
            ],
            reference_urls=["https://arxiv.org/abs/1904.09675"],
        )

    def _compute(
        self, predictions: list[str], references: list[Any], **options: Any
    ) -> dict[str, Any]:
        scores, signature = score(predictions, references, return_hash=True, **options)
        precision, recall, f1 = (values.tolist() for values in scores)
        return {"precision": precision, "recall": recall, "f1": f1, "hashcode": signature}

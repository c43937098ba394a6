"""BERTScore as a descriptor of evidently: F of each row's output against its reference.

    pip install evidently 'pandas<3' 'bertscore-onnx[cpu]'
    python evidently_descriptor.py BUNDLE TABLE.json

evidently 0.7.23 fails with newer versions of pandas. The table is JSON as pandas reads it, with the
columns `output` and `reference`; a reference may be a list of texts.
"""

import sys

import pandas as pd
from evidently import Dataset, Report
from evidently.core.datasets import DatasetColumn
from evidently.descriptors import CustomDescriptor
from evidently.presets import TextEvals

from bertscore_onnx import BERTScorer


def bertscore(
    scorer: BERTScorer, output: str = "output", reference: str = "reference"
) -> CustomDescriptor:
    """Return the descriptor, for `descriptors` of `Dataset.from_pandas`, with the names of the two
    columns.
    """

    def score(dataset: Dataset) -> DatasetColumn:
        outputs = dataset.column(output).data
        f1 = scorer.score(outputs.tolist(), dataset.column(reference).data.tolist()).F
        return DatasetColumn("num", pd.Series(f1, index=outputs.index))

    return CustomDescriptor(score, alias="BERTScore F")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bundle, table = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        dataset = Dataset.from_pandas(pd.read_json(table), descriptors=[bertscore(scorer)])
    print(Report([TextEvals()]).run(dataset).json())

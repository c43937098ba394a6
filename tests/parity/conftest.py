"""The oracle: bert-score 0.3.13 itself, run live on the same weights and texts, one pair a
batch.
"""

import pytest
import transformers


@pytest.fixture(scope="session")
def peer_of():
    """Return a function that makes bert-score's scorer for a model's folder."""
    import bert_score

    transformers.logging.set_verbosity_error()
    scorers = {}

    def make(model, num_layers, **options):
        if options:
            return bert_score.BERTScorer(
                str(model), num_layers=num_layers, device="cpu", nthreads=0, **options
            )
        if (model, num_layers) not in scorers:
            scorers[model, num_layers] = bert_score.BERTScorer(
                str(model), num_layers=num_layers, device="cpu"
            )
        return scorers[model, num_layers]

    return make


@pytest.fixture
def baseline_path(tmp_path):
    """A baseline for each layer of MiniLM, each figure another."""
    path = tmp_path / "baseline.tsv"
    rows = [f"{layer},0.{layer + 1}1,0.{layer + 1}2,0.{layer + 1}3\n" for layer in range(7)]
    path.write_text("LAYER,P,R,F\n" + "".join(rows), encoding="utf-8")
    return path

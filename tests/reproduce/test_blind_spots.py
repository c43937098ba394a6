"""`reproduce.blind_spots`: its edits, and its table against bert-score, sacreBLEU and scipy."""

import numpy as np
import pytest
from bert_score import BERTScorer as Original
from sacrebleu import CHRF
from scipy.stats import binomtest

from reproduce import blind_spots

ROWS = [
    (
        "The council of Leeds is not paying 4.5 million euros this year, says Mary Shaw.",
        "Leeds pays 4.5 million.",
    ),
    (
        "They were paid 1,200 pounds in 2015, he told Radio Leeds.",
        "In 2015 they got 1,200 pounds, he said.",
    ),
    ("He was born in Chemnitz.", "His birth was in Chemnitz."),
    ("The rain stopped.", "It did not rain any longer."),
]


def test_edits():
    assert blind_spots.edits_of([reference for reference, _ in ROWS]) == {
        "negation": [
            "The council of Leeds is paying 4.5 million euros this year, says Mary Shaw.",
            "They were not paid 1,200 pounds in 2015, he told Radio Leeds.",
            "He was not born in Chemnitz.",
            None,
        ],
        "number": [
            "The council of Leeds is not paying 45.0 million euros this year, says Mary Shaw.",
            "They were paid 12,000 pounds in 2015, he told Radio Leeds.",
            None,  # no number
            None,
        ],
        "order": [
            "Says Mary Shaw, the council of Leeds is not paying 4.5 million euros this year.",
            "He told Radio Leeds, they were paid 1,200 pounds in 2015.",
            None,
            None,
        ],
        "half": [
            "The council of Leeds is not paying",
            "They were paid 1,200 pounds",
            "He was",
            None,  # too short
        ],
        "name": [
            "The council of Chemnitz is not paying 4.5 million euros this year, says Mary Shaw.",
            "They were paid 1,200 pounds in 2015, he told Radio Chemnitz.",
            "He was born in Leeds.",
            None,
        ],
    }


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_shares_are_those_of_bert_score_and_sacrebleu(
    tmp_path, capsys, minilm, minilm_bundle, suffix
):
    file = tmp_path / f"table.{suffix}"
    quote, separator = ("", "\t") if suffix == "tsv" else ('"', ",")
    cells = [("reference", "candidate"), *ROWS]
    file.write_text(
        "".join(f"{quote}{row[0]}{quote}{separator}{quote}{row[1]}{quote}\n" for row in cells)
    )
    assert blind_spots.main([str(file), "--model", str(minilm_bundle)]) == 0
    tables = dict(block.split("\n", 1) for block in capsys.readouterr().out.strip().split("\n\n"))
    references, outputs = [[*side] for side in zip(*ROWS[:3], strict=True)]
    edits = [
        text for text in blind_spots.edits_of([reference for reference, _ in ROWS])["half"] if text
    ]
    rows = {
        line[:20].strip(): line[20:].split()
        for line in tables["half, 3 references"].splitlines()[1:]
    }
    original = Original(str(minilm), num_layers=4)
    chrf = CHRF()
    expected = {
        "BERTScore F": [original.score(texts, references)[2].numpy() for texts in (edits, outputs)],
        "chrF": [
            np.array(
                [
                    chrf.sentence_score(*pair).score
                    for pair in zip(texts, zip(references), strict=True)
                ]
            )
            for texts in (edits, outputs)
        ],
    }
    for name, (of_edits, of_outputs) in expected.items():
        test = binomtest(int((of_edits > of_outputs).sum()), 3)
        low, high = test.proportion_ci()
        share = [f"{test.statistic:.2f}", f"({low:.2f}-{high:.2f})"]
        assert rows[name] == [f"{of_edits.mean():.3f}", f"{of_outputs.mean():.3f}", *share]

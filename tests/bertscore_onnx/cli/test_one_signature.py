"""The same scores have one signature by every door: blank contexts are none, and lists in a pipe
are references.
"""

import json

import pyarrow
import pytest

TEXTS = ["the cat", "a dog"]
pytestmark = pytest.mark.filterwarnings("ignore:.* have an empty context:UserWarning")


@pytest.mark.parametrize(
    ("contexts", "is_marked"),
    [([None, None], False), (["", " "], False), ([[], [""]], False), (["", "a mat"], True)],
)
def test_blank_contexts_are_none(run_score, tmp_path, scorer, contexts, is_marked):
    expected = str(scorer.signature.in_context() if is_marked else scorer.signature)
    rows = {"candidate": TEXTS, "reference": TEXTS, "context": contexts}
    scored = scorer.score_frame(pyarrow.table(rows), context="context")
    assert str(scorer.score(TEXTS, TEXTS, contexts=contexts).signature) == expected
    assert scored.schema.metadata[b"bertscore_onnx.signature"].decode() == expected
    file = tmp_path / "in.jsonl"
    file.write_text(
        "\n".join(
            json.dumps(dict(zip(rows, row, strict=True)))
            for row in zip(*rows.values(), strict=True)
        )
    )
    result = run_score("-c", file, "--context", file, "--format", "json")
    assert json.loads(result.stdout)["signature"] == expected


@pytest.mark.usefixtures("stdin_is_a_pipe")
@pytest.mark.parametrize("options", [[], ["-o", "-"]])
def test_references_in_a_pipe_are_counted(run_score, scorer, options):
    references = [["a mat"], ["the cat", "a dog", "a mat"]]
    pairs = zip(TEXTS, references, strict=True)
    lines = [json.dumps({"candidate": text, "references": of_text}) for text, of_text in pairs]
    arguments = ["-c", "-", "--input-format", "jsonl", "--format", "json", *options]
    result = run_score(*arguments, stdin="\n".join(lines).encode())
    assert json.loads(result.stdout)["signature"] == str(scorer.score(TEXTS, references).signature)
    assert "|references:1-3|" in result.stdout

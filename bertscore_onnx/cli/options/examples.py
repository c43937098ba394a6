"""The examples that `--help` shows below each command's options."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "score": """
        bertscore-onnx score --lang en -c candidates.txt -r references.txt
        bertscore-onnx score -m BUNDLE -c candidates.txt -r first.txt second.txt -s > scores.tsv
        bertscore-onnx score -m BUNDLE -c pairs.jsonl -o scores.jsonl --with-texts
        bertscore-onnx score -m BUNDLE -c pairs.csv.gz --candidate-column mt --reference-column ref1 ref2
        bertscore-onnx score -m BUNDLE -c - --input-format tsv --json < pairs.tsv
    """,
    "batch": """
        bertscore-onnx batch -m BUNDLE --input 'pairs/*.parquet' --output scores
        bertscore-onnx batch -m BUNDLE -i a.jsonl b.csv.gz -o scores --candidate mt --columns id --errors null
        bertscore-onnx batch -m BUNDLE -i pairs -o scores --idf --engine ray --nthreads 4
    """,
    "count-documents": """
        bertscore-onnx count-documents -m BUNDLE -r references.txt -o counts.json
        bertscore-onnx count-documents -m BUNDLE -r part-1.jsonl.gz part-2.jsonl.gz -o counts.json
        bertscore-onnx score -m BUNDLE -c candidates.txt -r references.txt --idf-counts counts.json
    """,
    "show": """
        bertscore-onnx show --lang en -c "It is cold today." -r "The weather is cold."
        bertscore-onnx show -m BUNDLE -c "It is cold." -r "The weather is cold." "It is freezing." -o match.html
        bertscore-onnx show -m BUNDLE --idf references.txt -c "It is cold." -r "It is freezing." -o match.svg
    """,
    "compare": """
        bertscore-onnx compare -m BUNDLE -r references.txt -c base.txt other.txt
        bertscore-onnx compare -m BUNDLE -r first.txt second.txt -c a.txt b.txt c.txt --all-pairs --html report.html
        bertscore-onnx compare --metric bleu chrf --test ar -r references.txt -c base.txt other.txt --json
    """,
    "meta": """
        bertscore-onnx meta EVALSET --language-pair he-en --gold mqm --reference refB
        bertscore-onnx meta EVALSET --metric-scores BERTscore-refB BLEU-refB --model BUNDLE --output FOLDER
        bertscore-onnx meta judgements.tsv --score comet bleurt --metric bleu chrf --model BUNDLE
        bertscore-onnx meta systems.csv --score comet --json
        bertscore-onnx meta judgements.tsv --task darr --score comet
        bertscore-onnx meta judgements.tsv --task hybrid --score comet --metric bleu --model BUNDLE
        bertscore-onnx meta paraphrases.tsv --task auc --model BUNDLE --metric bleu
        bertscore-onnx meta phenomena.jsonl --task phenomena --model BUNDLE --metric bleu --bleu-smooth none
    """,
    "export": """
        bertscore-onnx export --model roberta-large
        bertscore-onnx export --model path/to/folder --name roberta-large --output BUNDLE
        bertscore-onnx export --model microsoft/deberta-xlarge-mnli --precision fp16
    """,
    "pull": """
        bertscore-onnx pull ORG/REPO
        bertscore-onnx pull ORG/REPO@REVISION --variant layer-17-slow-fp32
        bertscore-onnx pull https://models.example.org/roberta-large/layer-17-slow-fp32
    """,
    "push": """
        bertscore-onnx push BUNDLE ORG/REPO --private
    """,
    "models": """
        bertscore-onnx models
        bertscore-onnx models deberta
        bertscore-onnx models --here
    """,
    "inspect": """
        bertscore-onnx inspect path/to/bundle
        bertscore-onnx inspect roberta-large --json
        bertscore-onnx inspect path/to/bundle --isolate
    """,
    "doctor": """
        bertscore-onnx doctor
        bertscore-onnx doctor --json
    """,
    "serve": """
        bertscore-onnx serve --model path/to/bundle
        bertscore-onnx serve --model en=roberta-large --host 0.0.0.0 --api-key-file keys.txt
    """,
    "tune-layers": """
        bertscore-onnx tune-layers --model BUNDLE --judgements wmt16.tsv.gz
        bertscore-onnx tune-layers --model BUNDLE --judgements judged.jsonl --language-pair cs-en de-en --json
    """,
    "baseline": """
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz -o baseline.csv
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz --into-bundle en
    """,
}
"""Command lines, one a line, by the name of the command."""


def epilog_of(command: str) -> str:
    r"""Return the text below a command's options; `\b` keeps its lines as they are."""
    lines = "\n".join(f"  {line.strip()}" for line in EXAMPLES.get(command, "").strip().splitlines())
    return f"\b\nExamples:\n{lines}" if lines else ""

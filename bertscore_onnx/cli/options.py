"""The options that say which scorer to make, which the commands that score have in common."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from bertscore_onnx.bundle.store import Precision

# Completes what a shell asks for, beside options and files: names of models.


def complete_model(incomplete: str) -> list[str]:
    """Return the models whose name begins so: those of the catalogue, and those with a bundle here."""
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.resolver import installed_models

    names = dict.fromkeys((*installed_models(), *catalogue.entries()))
    return [name for name in names if name.lower().startswith(incomplete.lower())]


Model = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="A model's name, or the path of a bundle.",
        autocompletion=complete_model,
    ),
]

Lang = Annotated[
    str | None,
    typer.Option(metavar="CODE", help="Language, such as en: for its default model, and for its baseline."),
]

NumLayers = Annotated[
    int | None, typer.Option("-l", "--num-layers", metavar="N", min=0, help="The layer to take tokens from.")
]

Idf = Annotated[bool, typer.Option("--idf", help="Weigh tokens by their inverse document frequency in the references.")]

IdfCounts = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Take idf weights from document counts, as `count-documents` writes them."),
]

RescaleWithBaseline = Annotated[
    bool, typer.Option("--rescale-with-baseline", help="Rescale so that unrelated sentences score about 0.")
]

BaselinePath = Annotated[
    str | None, typer.Option(metavar="FILE", help="A baseline file of your own, with columns LAYER,P,R,F.")
]

AllowFp32Baseline = Annotated[
    bool, typer.Option("--allow-fp32-baseline", help="Rescale scores of another precision with an fp32 baseline too.")
]

Device = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="cpu, cuda, cuda:N, openvino (bfloat16) or coreml.  [default: cuda where it is offered]",
    ),
]

NumThreads = Annotated[
    int | None, typer.Option("--nthreads", metavar="N", min=1, help="CPU threads.  [default: all this process may use]")
]

BatchSize = Annotated[
    int | None, typer.Option("-b", "--batch-size", metavar="N", min=1, help="The most texts in one run of the model.")
]

PrecisionOf = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="Take the bundle exported in this precision.  [default: the bundle's own; fp32 for a model's name]",
    ),
]

UseFastTokenizer = Annotated[
    bool, typer.Option("--use-fast-tokenizer", help="Take the bundle exported with the fast tokenizer's ids.")
]

LongText = Annotated[
    Literal["truncate", "window"],
    typer.Option(help="What becomes of texts beyond the model's maximum: truncated, or encoded in windows."),
]

MaxLength = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="The most tokens of a text, or of a window.  [default: the model's maximum]"),
]

Verbose = Annotated[
    bool,
    typer.Option("-v", "--verbose", help="Show a progress bar at once.  [default: on a terminal, if it takes longer]"),
]

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing on standard error but errors.")]


def check_model(model_type: str | None, lang: str | None) -> None:
    """Raise typer.BadParameter where neither names a model."""
    if not (model_type or lang):
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en. `bertscore-onnx models` "
            "lists the models.",
            param_hint="--model, --lang",
        )


def check_effects(*options: tuple[str, bool, str]) -> None:
    """Raise for the first option that is given and has no effect.

    Args:
        options: the name of each, whether it is given and idle, and what makes it so.
    """
    for option, is_idle, reason in options:
        if is_idle:
            raise typer.BadParameter(f"it has no effect {reason}.", param_hint=option)


# How every command is called: `-r a.txt b.txt`, as bert-score has it, stands for `-r a.txt -r b.txt`.


class Command(TyperCommand):
    """A command whose repeatable options take several values at once, too, and whose other options take one."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands in the line of usage, an argument by its plain name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, and parse that.

        Raises:
            typer.BadParameter: an option that takes one value is given several times.
        """
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        repeated = _repeated(args, names)
        if not ctx.resilient_parsing:  # as it is while a shell completes
            self._check_once(ctx, repeated)
        return super().parse_args(ctx, repeated)

    def _check_once(self, ctx: Any, args: Sequence[str]) -> None:
        *_, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in dict.fromkeys(given):
            takes_one = not (getattr(option, "multiple", False) or getattr(option, "is_flag", False))
            if takes_one and option.param_type_name == "option" and given.count(option) > 1:
                raise typer.BadParameter(
                    f"it is given {given.count(option)} times; expected once.", param_hint=", ".join(option.opts)
                )


def _repeated(args: Sequence[str], names: Sequence[str]) -> list[str]:
    repeated: list[str] = []
    option = None
    is_value = False
    for position, arg in enumerate(args):
        if is_value:
            is_value = False
        elif arg == "--":
            return [*repeated, *args[position:]]
        elif arg.startswith("-") and arg != "-":
            name, equals, _ = arg.partition("=")
            option = name if name.replace("_", "-") in names else None
            is_value = option is not None and not equals
        elif option is not None:
            repeated.append(option)
        repeated.append(arg)
    return repeated


# The examples that `--help` shows below each command's options.


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


# Says options where messages of the library say arguments: `--num-layers` for num_layers.


_FORMS = (
    (r"`{name}`", "`{option}`"),
    (r"^{name} is\b", "{option} is"),
    (r"\bLeave {name} out\b", "Leave {option} out"),
    (r"(?<![\w/-]){name}=True\b(?: \({option}\))?", "{option}"),
    (r'(?<![\w/-]){name}="([^"]*)"', r"{option} \1"),
)
"""How messages name an argument that could be a word of English, and what to say instead."""

_ANYWHERE = (r"(?<![\w/.\\-]){name}(?![\w/\\-])", "{option}")
"""The same for a name with an underscore, which is no such word."""


def with_option_names(message: str, command: TyperCommand) -> str:
    """Return a message with the options of a command in place of the library's arguments of the same names."""
    for parameter in command.params:
        option = max(parameter.opts, key=len)
        if parameter.name is None or not option.startswith("--"):
            continue
        for pattern, replacement in (*_FORMS, *([_ANYWHERE] if "_" in parameter.name else [])):
            named = pattern.format(name=parameter.name, option=option)
            message = re.sub(named, replacement.format(option=option), message)
    return message

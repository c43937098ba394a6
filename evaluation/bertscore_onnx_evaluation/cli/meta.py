"""The command `bertscore-onnx meta`.

It measures how well metrics agree with human judgements; its work is imported when it begins.
"""

from bertscore_onnx.cli.options import shared_options
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions


@shared_options("model_type", "num_layers", "device", "nthreads", needs_model=False)
def meta(options: MetaOptions) -> None:
    """Measure how well metrics agree with human judgements, on the outputs of a segment and on
    systems.

    A table has a row for each output of a system, with the columns lang_pair, system, segment and
    human; and with scores, --score, or texts, in the columns candidate and reference. A rank ends
    where a metric in it is significantly better than the next. --format json has every measure and
    test. Needs the extra `evaluation`. docs/which_metric.md explains the output,
    docs/command_line.md the options.

    Examples:
        # Judge BERTScore, and scores in the column comet, against human scores
        bertscore-onnx meta judgements.tsv -m BUNDLE --score comet
        # Name the columns of the table
        bertscore-onnx meta a.csv -m BUNDLE --columns human=da segment=line
        # Judge BLEU and chrF beside them
        bertscore-onnx meta judgements.tsv -m BUNDLE --score comet --metric bleu chrf
    """
    from bertscore_onnx_evaluation.cli.meta_work import judge

    judge(options)

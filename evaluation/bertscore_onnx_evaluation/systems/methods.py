"""A paragraph on how systems were compared, for the methods section of a paper, and BibTeX entries for it."""

from bertscore_onnx import __version__
from bertscore_onnx.tables.table import count, listed, plural
from bertscore_onnx_evaluation.metric_scores import is_bertscore
from bertscore_onnx_evaluation.systems.comparison import Comparison
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT

_BERTSCORE = """\
@inproceedings{zhang-etal-2020-bertscore,
  title = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and Artzi, Yoav},
  booktitle = {International Conference on Learning Representations},
  year = {2020},
  url = {https://openreview.net/forum?id=SkeHuCVFDr}
}"""

_SACREBLEU = """\
@inproceedings{post-2018-call,
  title = {A Call for Clarity in Reporting {BLEU} Scores},
  author = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  year = {2018},
  pages = {186--191},
  url = {https://aclanthology.org/W18-6319}
}"""

_SOFTWARE = f"""\
@software{{bertscore-onnx,
  title = {{bertscore-onnx}},
  author = {{{{The bertscore-onnx developers}}}},
  version = {{{__version__}}}
}}"""


def methods_paragraph(comparison: Comparison) -> str:
    """Return what was compared, by which test and correction, what the tests do not show, and with which settings."""
    baseline, *others = comparison.systems
    metrics = listed([metric.title for metric in comparison.metrics])
    num_tests = comparison.metrics[0].num_tests
    under_each = " under each metric" if len(comparison.metrics) > 1 else ""
    holm = f", with Holm's correction for {num_tests} tests{under_each}" if num_tests > 1 else ""
    notes = " ".join([*comparison.notes, *comparison.warnings, ""])
    signatures = "; ".join(f"{metric.title}: {metric.signature}" for metric in comparison.metrics)
    groups = max(sum(group.systems[-1].p is not None for group in metric.groups) for metric in comparison.metrics)
    corrected = ", each by itself, without a correction" if num_tests > 1 or groups else ""
    by_group = f" Tests within {plural(groups, 'group')} of segments were corrected together." if groups else ""
    software = f"All figures were computed with bertscore-onnx {__version__} ({signatures})."
    if not others:
        return f"We scored {baseline} by {metrics}. {comparison.legend} {notes}{software}"
    return (
        f"We compared {listed(others)} with {baseline} by {metrics} on {comparison.material}. Differences were tested "
        f"with a two-sided paired permutation test ({_swaps(comparison)}){holm}; 95 % intervals of differences hold "
        f"those that the same swaps do not reject{corrected}.{by_group} {notes}{software}"
    )


def _swaps(comparison: Comparison) -> str:
    """Return which swaps gave p."""
    _, unit = comparison.metrics[0].units
    swaps = f"{count(comparison.num_resamples)} random swaps of whole {unit}s, seed {comparison.seed}"
    exact = [
        comparison.is_mcnemar(metric) or (system.differing or 0) <= MAX_EXACT
        for metric in comparison.metrics
        for system in metric.systems[1:]
    ]
    if all(exact):
        return f"all swaps of whole {unit}s"
    return f"{swaps}, or all of them where at most {MAX_EXACT} differ" if any(exact) else swaps


def bibtex(comparison: Comparison) -> str:
    """Return the entries of the metrics that were used, and of this software."""
    names = {metric.name for metric in comparison.metrics}
    uses_sacrebleu = bool(names & {"bleu", "chrf", "ter"})
    entries = ((any(map(is_bertscore, names)), _BERTSCORE), (uses_sacrebleu, _SACREBLEU), (True, _SOFTWARE))
    return "\n\n".join(entry for is_cited, entry in entries if is_cited)

"""Scores the rows of a Ray dataset, and counts its documents."""

import re
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Unpack
from warnings import warn

from bertscore_onnx.errors import InputError, InputTypeError, check_installed
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import check_positive
from bertscore_onnx.settings import (
    ScorerSettings,
    TokenizerSettings,
    checked_settings,
    counts_first,
    of_tokenizer,
)
from bertscore_onnx.tables.columns import find_columns
from bertscore_onnx.tables.score_columns import SCORE_NAMES, Errors, check_free
from bertscore_onnx_service.jobs.batches import (
    CountBatch,
    ScoreBatch,
    attempt,
    error_named,
    uses_contexts,
)

__all__ = ["count_documents", "score_dataset"]

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

ROWS_PER_BATCH = 1024
"""How many rows an actor scores at a time: as fast as 4,096 at a time on a CPU, and few actors end
together.
"""

ROWS_PER_COUNT = 65_536
"""How many rows are counted at a time: each batch returns a row of counts for each of its different
tokens.
"""

MOST_CPUS_PER_ACTOR = 4
"""A few actors with several CPUs hold fewer copies of the weights than many with one."""

CPUS_PER_CLAIM = 2
"""How many CPUs of an actor make one that it claims of Ray."""

CPUS_PER_CLAIM_ON_SMALL_NODES = 5
"""The same on small nodes. Ray Data keeps CPUs for reading, cutting and writing, and actors get the
rest: when they claimed three quarters of four CPUs, one of four actors ran while there was much to
read.
"""

SMALL_NODE = 8
"""Nodes with fewer CPUs than this count as small."""


def score_dataset(
    ds: "Dataset",
    bundle: str | PathLike[str] | None = None,
    candidate: str | None = None,
    reference: str | Sequence[str] | None = None,
    *,
    context: str | None = None,
    names: Sequence[str] = SCORE_NAMES,
    errors: Errors = "raise",
    num_actors: int | None = None,
    cpus_per_actor: int | None = None,
    gpus_per_actor: float = 0,
    rows_per_batch: int = ROWS_PER_BATCH,
    **settings: Unpack[ScorerSettings],
) -> "Dataset":
    """Score the rows of a dataset by a pool of actors, each with a scorer.

    The result is computed when it is used, as any dataset is. The call itself runs one short task
    that opens the bundle as an actor will, so that a wrong setting or bundle raises its error at
    once; with `idf=True` it also counts the documents.

    Args:
        ds: the dataset. With `idf=True` it is computed twice, once to count and once to score:
            materialize it if that is expensive, or does not give the same rows each time.
        bundle: a path that all nodes of the cluster see, a name or `hf://…`, as for `BERTScorer`.
            None for the default model of `lang`.
        candidate, reference: the columns of texts, as for `ScoreBatch`.
        context: the name of a column of contexts, a text or a list of sentences per row, as
            `BERTScorer.score` takes them. The call reads rows up to the first with a context, which
            decides the signature.
        names: the names of the columns of scores, as for `ScoreBatch`.
        errors: how to handle a row with a null, or with something other than texts: "raise" for an
            error with its number in its batch, which fails the job; "null" for nulls as its scores
            and a further column `error` with the reason.
        num_actors: the most actors; None for as many as fit into the cluster as it is now. The pool
            begins with one and grows while rows wait for it.
        cpus_per_actor: the CPUs, and so the threads, of each; None for a quarter of a node, 4 at
            most. The actor claims half of them from Ray, or a fifth on nodes with less than 8, to
            leave room for tasks that read and write.
        gpus_per_actor: its share of GPUs; with GPUs, scoring runs on CUDA, otherwise on the CPU,
            unless `device` is given.
        rows_per_batch: how many rows are scored at a time; fewer where rows are of megabytes.
        settings: arguments of `BERTScorer`. `idf` may be True, for the documents of the whole
            dataset.

    Returns:
        The dataset with its columns as they are, and `precision`, `recall` and `f1`, float32, and
        `best_reference`, int64, the position of the reference with the best F; each a list over the
        layers with `all_layers`. It has blocks of `rows_per_batch` rows. Rows keep their order in
        each block, and blocks keep theirs where `execution_options.preserve_order` of Ray's context
        is set. The schema's metadata has the signature, under `bertscore_onnx.signature`, in
        Parquet files too. A dataset without rows stays as it is.

    Raises:
        InputError: there is no such setting, or it is out of range; a column is missing; there are
            columns with the names of those that are to be added; or there are no documents to
            count.
        BertScoreOnnxError: as for `BERTScorer`, in a process of the cluster.
        MissingExtraError: Ray Data is not installed.
    """
    _check_dataset(ds)
    check_positive("num_actors", num_actors)
    check_positive("cpus_per_actor", cpus_per_actor)
    check_positive("rows_per_batch", rows_per_batch)
    _check_gpus(gpus_per_actor, settings.get("device"))
    smallest_node = _smallest_node()
    cpus = cpus_per_actor or max(1, min(smallest_node // 4, MOST_CPUS_PER_ACTOR))
    cpus_per_claim = CPUS_PER_CLAIM
    if smallest_node < SMALL_NODE:
        cpus_per_claim = CPUS_PER_CLAIM_ON_SMALL_NODES
    device = "cuda" if gpus_per_actor else "cpu"
    counts = counts_first(settings)
    scorer_settings = {"nthreads": cpus, "device": device, **settings}
    if counts:
        scorer_settings["idf"] = False  # until the documents are counted
    checked = checked_settings(scorer_settings)
    score_batch = ScoreBatch(
        bundle, candidate, reference, context=context, names=names, errors=errors, **checked
    )
    # None where rows would have to be computed to know it
    schema = ds.schema(fetch_if_missing=False)
    if schema is not None:
        score_batch.texts.find(schema.names, "The dataset")
        check_free(schema.names, score_batch.columns.names, "The dataset", ("drop it",))
    most_actors = num_actors or _num_actors(cpus, gpus_per_actor)
    _try_out(score_batch, gpus_per_actor)
    if counts:
        checked["idf"] = count_documents(
            ds, bundle, reference, errors=errors, **of_tokenizer(checked)
        )
    if context is not None and not _uses_contexts(ds, score_batch):
        context = None

    from ray.data import ActorPoolStrategy

    # An actor takes whole blocks: a large block would keep one actor busy, and each of many small
    # blocks is a task.
    return ds.repartition(target_num_rows_per_block=rows_per_batch, strict=True).map_batches(
        ScoreBatch,
        fn_constructor_args=(bundle, candidate, reference),
        fn_constructor_kwargs={"context": context, "names": names, "errors": errors, **checked},
        batch_size=rows_per_batch,
        batch_format="pyarrow",
        zero_copy_batch=True,
        udf_modifying_row_count=False,
        compute=ActorPoolStrategy(min_size=1, max_size=most_actors),
        num_cpus=cpus / cpus_per_claim,
        num_gpus=gpus_per_actor or None,
    )


def count_documents(
    ds: "Dataset",
    bundle: str | PathLike[str] | None = None,
    reference: str | Sequence[str] | None = None,
    *,
    errors: Errors = "raise",
    **settings: Unpack[TokenizerSettings],
) -> DocumentCounts:
    """Count in how many references of a dataset each token occurs, for `idf`.

    The model is not loaded.

    Tasks count some rows each, and this process adds up their integers as they come, regardless of
    blocks.

    Args:
        ds: the dataset; one column is read.
        bundle, reference, errors: as for `score_dataset`; "null" leaves out the rows that have no
            references.
        settings: arguments of `BERTScorer` that decide which bundle is opened, and where texts are
            truncated.

    Raises:
        InputError: there is no such setting; the column is missing; or the dataset has no rows.
        MissingExtraError: Ray Data is not installed.
    """
    _check_dataset(ds)
    count_batch = CountBatch(bundle, reference, errors=errors, **settings)
    columns = find_columns(count_batch.references, ds.columns() or [], "The dataset")
    counted = ds.select_columns([column.name for column in columns]).map_batches(
        count_batch, batch_size=ROWS_PER_COUNT, batch_format="pyarrow", zero_copy_batch=True
    )
    total: DocumentCounts | None = None
    for table in counted.iter_batches(batch_size=None, batch_format="pyarrow"):
        if not table.num_rows:
            continue
        counts = DocumentCounts.from_arrow(table)
        if total is None:
            total = counts
        else:
            total += counts
    if total is None:
        raise InputError(
            "The dataset has no rows, so there are no documents to count; expected one or more."
        )
    return total


def _uses_contexts(ds: "Dataset", score_batch: ScoreBatch) -> bool:
    """Return whether a row that can be scored has a context that is not blank.

    Rows are read up to that one.
    """

    def flag(batch: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        return pyarrow.table({"flag": [uses_contexts(score_batch, [batch])]})

    flags = ds.map_batches(
        flag, batch_size=ROWS_PER_BATCH, batch_format="pyarrow", zero_copy_batch=True
    )
    return any(row["flag"] for row in flags.iter_rows())


def _check_dataset(ds: object) -> None:
    check_installed(("ray", "ray.data"), "ray", "Scoring on Ray")
    from ray.data import Dataset

    if not isinstance(ds, Dataset):
        raise InputTypeError(
            f"The dataset is a {type(ds).__module__}.{type(ds).__name__}; expected one of Ray Data."
        )


def _check_gpus(gpus: object, device: object) -> None:
    if isinstance(gpus, bool) or not isinstance(gpus, (int, float)) or not gpus >= 0:
        raise InputError(f"gpus_per_actor is {gpus!r}; expected a number of 0 or more.")
    if not gpus and str(device).startswith("cuda"):
        raise InputError(
            f"device is {device!r}, and the actors are to have no GPU; give gpus_per_actor=1."
        )
    if 0 < gpus <= 1 and re.fullmatch(r"cuda:0*[1-9]\d*", str(device)):
        raise InputError(
            f'device is {str(device)!r}, and Ray shows each actor its own card as "cuda"; leave it '
            "out."
        )


def _try_out(score_batch: ScoreBatch, gpus: float) -> None:
    """Load the scorer in a process of the cluster.

    Raise its error, if any.
    """
    import ray

    kind, text = ray.get(ray.remote(num_gpus=gpus)(attempt).remote(score_batch))
    if kind:
        raise error_named(kind, text)


def _nodes() -> list[dict[str, float]]:
    """Return the resources of each node of the cluster, by Ray's names."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _smallest_node() -> int:
    """Return the CPUs of the smallest node that has any."""
    cpus = [node["CPU"] for node in _nodes() if node.get("CPU", 0) >= 1]
    return int(min(cpus, default=1))


def _num_actors(cpus: int, gpus: float) -> int:
    """Return how many actors fit into the cluster, at least one."""

    def fitting(node: dict[str, float]) -> int:
        by_cpus = int(node.get("CPU", 0) // cpus)
        if not gpus:
            return by_cpus
        by_gpus = int(node.get("GPU", 0) // gpus)
        return min(by_cpus, by_gpus)

    number = sum(map(fitting, _nodes()))
    if not number:
        needed = f"{cpus} CPUs"
        if gpus:
            needed += f" and {gpus:g} GPUs"
        warn(
            f"No node of the cluster has the {needed} of an actor; none starts until one joins.",
            stacklevel=3,
        )
    return max(1, number)

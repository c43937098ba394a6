"""Metrics in the text format of Prometheus.

The registry is the server's own.
"""

from collections.abc import Iterator
from dataclasses import fields
from itertools import accumulate

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from bertscore_onnx import __version__
from bertscore_onnx_service.batcher.stats import BOUNDS, BatcherStats, Durations
from bertscore_onnx_service.http.admission import Admission
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.request_log import RequestLog

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics that `GET /metrics` returns."""

    def __init__(self, models: Models, admission: Admission) -> None:
        """Start to count."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "bertscore_requests",
            "Requests answered.",
            ["endpoint", "status"],
            registry=self._registry,
        )
        self._failures = Counter(
            "bertscore_failures",
            "Requests that failed, by their error code.",
            ["endpoint", "reason"],
            registry=self._registry,
        )
        self._pairs = Counter(
            "bertscore_candidates", "Candidates scored.", ["model"], registry=self._registry
        )
        self._stages = Histogram(
            "bertscore_stage_seconds",
            "Seconds of a request: reading its body; decoding, tokenising and scoring it; and in "
            "total.",
            ["endpoint", "stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        # These are read when the metrics are collected, rather than counted here.
        active = Gauge(
            "bertscore_active_requests", "Requests in progress.", registry=self._registry
        )
        active.set_function(lambda: admission.active)
        self._registry.register(_BatcherCollector(models))
        ProcessCollector(registry=self._registry)

    def count(self, endpoint: str, log: RequestLog) -> None:
        """Count a request that is over, under the path of its endpoint."""
        self._requests.labels(endpoint, log.status).inc()
        if log.reason:
            self._failures.labels(endpoint, log.reason).inc()
        if log.pairs:
            self._pairs.labels(log.model).inc(log.pairs)
        for stage, seconds in {**log.stages, "total": log.seconds}.items():
            self._stages.labels(endpoint, stage).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics."""
        return generate_latest(self._registry)


class _BatcherCollector(Collector):
    """Reads the counts of every batcher when the metrics are collected."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all batchers."""
        names = ["model", "idf"]
        rows = [
            ([model.name, model.idf or ""], model, model.batcher.stats()) for model in self._models
        ]
        # The fields with a help text are plain counts; the other metrics are made of several.
        for field in fields(BatcherStats):
            if "help" in field.metadata:
                counter = CounterMetricFamily(
                    f"bertscore_batcher_{field.name}", field.metadata["help"], labels=names
                )
                for labels, _, stats in rows:
                    counter.add_metric(labels, getattr(stats, field.name))
                yield counter
        failed = CounterMetricFamily(
            "bertscore_batcher_failed", "Requests that failed.", labels=[*names, "error"]
        )
        waiting = GaugeMetricFamily("bertscore_queue_depth", "Requests waiting.", labels=names)
        padding = GaugeMetricFamily(
            "bertscore_padding_ratio", "Padding in all tokens so far, 0 to 1.", labels=names
        )
        ready = GaugeMetricFamily("bertscore_ready", "Whether a worker is ready.", labels=names)
        waits = HistogramMetricFamily(
            "bertscore_batcher_wait_seconds",
            "Seconds that a request waited to be scored.",
            labels=names,
        )
        runs = HistogramMetricFamily(
            "bertscore_batcher_run_seconds", "Seconds that a batch took.", labels=names
        )
        info = InfoMetricFamily("bertscore_model", "What scores.", labels=names)
        for labels, model, stats in rows:
            for error, count in stats.failed.items():
                failed.add_metric([*labels, error], count)
            waiting.add_metric(labels, stats.waiting)
            share = 1 - stats.batch_tokens / stats.padded_tokens if stats.padded_tokens else 0.0
            padding.add_metric(labels, share)
            ready.add_metric(labels, model.batcher.ready)
            for family, durations in ((waits, stats.waits), (runs, stats.runs)):
                family.add_metric(labels, _buckets(durations), durations.total)
            scorer = model.scorer
            info.add_metric(
                labels,
                {"provider": scorer.provider, "signature": scorer.hash, "version": __version__},
            )
        yield from (failed, waiting, padding, waits, runs, ready, info)


def _buckets(durations: Durations) -> list[tuple[str, float]]:
    """Return the number of durations up to each bound, as Prometheus has them."""
    names = [*map(floatToGoString, BOUNDS), "+Inf"]
    return list(zip(names, accumulate(durations.counts), strict=True))

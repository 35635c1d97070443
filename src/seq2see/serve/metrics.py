"""Figures for Prometheus, in a registry of their own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters and latencies of one server."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.registry = registry
        self.requests = Counter(
            "seq2see_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.sentences = Counter(
            "seq2see_sentences", "Sentences asked for.", ["model"], registry=registry
        )
        self.cache_hits = Counter(
            "seq2see_cache_hits", "Sentences found in the cache.", ["model"], registry=registry
        )
        self.batch_sentences = Histogram(
            "seq2see_batch_sentences",
            "Sentences of a batch.",
            ["model"],
            buckets=SENTENCES,
            registry=registry,
        )
        self.queue = Gauge(
            "seq2see_queue_sentences", "Sentences that wait.", ["model"], registry=registry
        )
        self.stages = Histogram(
            "seq2see_stage_seconds",
            "Time of a request to read its body and in all, "
            "of a sentence in the queue, and of a batch in the engine.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self._by_status: dict[tuple[str, int | None], Counter] = {}
        self.reading = self.stages.labels("read")
        self.total = self.stages.labels("total")
        self.waiting = self.stages.labels("queue")
        self.engine = self.stages.labels("engine")

    def count_request(self, route: str, status: int | None) -> None:
        """Count an answered request."""
        counter = self._by_status.get((route, status))
        if counter is None:
            counter = self.requests.labels(route, status)
            self._by_status[route, status] = counter
        counter.inc()

"""Retrieval at 10,000 entries, and clusters at 500: milliseconds of a look-up, of a refresh, and of the plain way.

``retrieval_sizes`` adds the table of sizes from 1,000 to 1,000,000 entries.
"""

import difflib
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from rapidfuzz.distance import Indel

from benchmarks.bench import Bench, BenchResult
from benchmarks.speed import retrieval_sizes
from coevo.configs.bank.retrieval_config import (
    AnyRetrievalConfig,
    Bm25Config,
    ClustersConfig,
    EmbeddingConfig,
    SimUtilUcbConfig,
    TfidfConfig,
    TfidfSimilarity,
    UtilityConfig,
)
from coevo.memory.clusters import Cluster, Clusters
from coevo.memory.retrieval.embedding import Embedding
from coevo.memory.retrieval.encoder import Encoder, Vectors
from coevo.memory.retrieval.index import Index
from coevo.memory.retrieval.scorer import Scorer, scorer_of
from coevo.memory.retrieval.simutil_ucb import SimUtilUcb
from coevo.memory.similarity import TOKEN
from coevo.memory.stats import Stats
from coevo.records.draws import generator, key
from coevo.records.entry import Entry, entry_id

ENTRIES, FRESH, QUESTIONS, REFRESHES = 10_000, 100, 200, 15
CLUSTERS, LENGTH, LOOPS = 500, 400, 3
TARGETS = {
    "tfidf": 1.0,
    "bm25": 1.0,
    "simutil-ucb": 1.0,
    "simutil-ucb over tfidf": 1.0,
    "utility": 1.0,
    "embedding": 5.0,
}
"""Most milliseconds of a look-up."""
REFRESH_TARGET, SPEEDUP_TARGET = 50.0, 1000.0
SIZE = 384
WORDS = [f"word{n}" for n in range(3000)]
COMMONNESS = 1 / np.arange(1, len(WORDS) + 1)


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    print(f"\n{ENTRIES} entries: median ms (worst of 20)   look-up   target   refresh by {FRESH} (CPU)   target")
    for name, target in TARGETS.items():
        found = bench.cell(name.replace(" ", "-"), lambda name=name: measure(name))  # type: ignore[misc]
        print(
            f"{name:40s} {found['lookup_ms']:6.3f} ({found['lookup_p95_ms']:.3f}) {target:6.1f}"
            f" {found['refresh_ms']:12.1f} ({found['refresh_cpu_ms']:.1f}) {REFRESH_TARGET:10.0f}"
        )
    found = bench.cell("clusters", measure_clusters)
    print(
        f"observation to cluster at {CLUSTERS} clusters of {LENGTH} characters: {found['lookup_ms']:.3f} ms, "
        f"{found['speedup']:.0f} times a difflib loop (target {SPEEDUP_TARGET:.0f}), same cluster: {found['same']}"
    )
    retrieval_sizes.run(bench)


def measure(name: str) -> BenchResult:
    """Look-ups and refreshes of one kind of retrieval, unscoped, beside the encoder."""
    config, scorer = kinds()[name]
    draws = generator(key(0, "retrieval"))
    entries = [_entry(draws, n) for n in range(ENTRIES + FRESH * REFRESHES)]
    stats = {e.id: Stats(e.id, utility=float(draws.random()), visits=int(draws.integers(1, 20))) for e in entries}
    index = Index(entries[:ENTRIES], config, stats, scorer=scorer)
    questions = [_text(draws, 12) for _ in range(QUESTIONS)]
    for question in questions:  # whoever asks per step asks the same again: the encoder has the answer
        index.search(question, "")
    asked = [_milliseconds(lambda text=text: index.search(text, "")) for text in questions]  # type: ignore[misc]
    grown = [_refresh(index, entries[FRESH * n : FRESH * n + ENTRIES + FRESH], stats) for n in range(REFRESHES)]
    return {
        "lookup_ms": median(asked),
        "lookup_p95_ms": float(np.quantile(asked, 0.95)),
        "refresh_ms": median(wall for wall, _ in grown),
        "refresh_cpu_ms": median(cpu for _, cpu in grown),
    }


def kinds() -> dict[str, tuple[Any, Scorer]]:
    """Configuration and scorer of each kind; the encoder draws its vectors, since it is not what is measured."""
    embedding, over_words = EmbeddingConfig(type="embedding", scoped=False), TfidfSimilarity(type="tfidf")
    drawn = Embedding(Encoder(_drawn, SIZE), embedding.encoder.fields, -1.0)
    ucb = SimUtilUcbConfig(type="simutil-ucb", scoped=False, threshold=0.0)
    plain: dict[str, AnyRetrievalConfig] = {
        "tfidf": TfidfConfig(scoped=False),
        "bm25": Bm25Config(type="bm25", scoped=False),
        "utility": UtilityConfig(type="utility", scoped=False),
        "simutil-ucb over tfidf": SimUtilUcbConfig(type="simutil-ucb", scoped=False, similarity=over_words),
    }
    return {name: (config, scorer_of(config)) for name, config in plain.items()} | {
        "embedding": (embedding, drawn),
        "simutil-ucb": (ucb, SimUtilUcb(drawn, ucb.threshold, ucb.alpha, ucb.kappa)),
    }


def measure_clusters() -> BenchResult:
    """The nearest of many prototypes, beside a loop of ``difflib`` over their characters and an exact scan."""
    draws = generator(key(0, "clusters"))
    prototypes = [_text(draws, 90)[:LENGTH] for _ in range(CLUSTERS)]
    clusters = Clusters(ClustersConfig(), [Cluster(n, text) for n, text in enumerate(prototypes)])
    asked = [_changed(draws, prototypes[int(draws.integers(CLUSTERS))]) for _ in range(QUESTIONS)]
    ours = [_milliseconds(lambda text=text: clusters.nearest(text)) for text in asked]  # type: ignore[misc]
    loops = [_milliseconds(lambda text=text: _difflib(prototypes, text)) for text in asked[:LOOPS]]  # type: ignore[misc]
    same = all(clusters.nearest(text) == _scan(prototypes, text) for text in asked)
    return {
        "lookup_ms": median(ours),
        "difflib_ms": median(loops),
        "speedup": median(loops) / median(ours),
        "same": same,
    }


def _difflib(prototypes: Sequence[str], text: str) -> float:
    return max(difflib.SequenceMatcher(None, prototype, text, autojunk=False).ratio() for prototype in prototypes)


def _scan(prototypes: Sequence[str], text: str) -> int:
    """The nearest by our measure, compared one by one; -1 below the threshold."""
    scores = [Indel.normalized_similarity(TOKEN.findall(each), TOKEN.findall(text)) for each in prototypes]
    best = max(scores)
    return scores.index(best) if best >= ClustersConfig().delta else -1


def _changed(draws: np.random.Generator, text: str) -> str:
    """A few words replaced: some texts stay above the threshold, some do not."""
    words = text.split()
    for place in draws.integers(len(words), size=int(draws.integers(len(words) // 3))):
        words[place] = WORDS[int(draws.integers(len(WORDS)))]
    return " ".join(words)


def _refresh(index: Index, entries: Sequence[Entry], stats: dict[str, Stats]) -> tuple[float, float]:
    """Wall-clock and CPU time: on a shared machine they differ."""
    since = time.process_time()
    wall = _milliseconds(lambda: index.over(entries, stats))
    return wall, (time.process_time() - since) * 1000


def _milliseconds(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return (time.perf_counter() - since) * 1000


def _text(draws: np.random.Generator, count: int) -> str:
    """Words as common as in a language."""
    return " ".join(draws.choice(WORDS, count, p=COMMONNESS / COMMONNESS.sum()))


def _entry(draws: np.random.Generator, number: int) -> Entry:
    strategy = f"{_text(draws, 10)} n{number}"
    fields = (strategy, _text(draws, 4), _text(draws, 3), _text(draws, 4))
    return Entry(entry_id("", strategy), *fields, "", "train", (), 1, number % 9)


def _drawn(texts: Sequence[str]) -> Vectors:
    vectors = generator(key(*texts[:1], len(texts))).standard_normal((len(texts), SIZE)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

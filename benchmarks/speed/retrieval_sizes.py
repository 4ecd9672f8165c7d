"""Retrieval from 1,000 to 1,000,000 entries of 21 words from 30,000, unscoped, beside scikit-learn and bm25s.

Words are drawn evenly, or as common as in a language. Each cell is measured in a process of its own, which prints it:

    python -m benchmarks.speed.retrieval_sizes bm25 even 1000
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.bench import ROOT, Bench, BenchResult
from coevo.configs.bank.retrieval_config import Bm25Config, TfidfConfig
from coevo.memory.library import Library
from coevo.memory.retrieval.index import Hit, Index
from coevo.memory.retrieval.scorer import BankQuery, scorer_of, top
from coevo.records.draws import generator, key
from coevo.records.entry import Entry

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FRESH, REFRESHES, QUESTIONS, CHECKED, K = 100, 9, 100, 10, 8
WORDS = [f"word{n}" for n in range(30_000)]
COMMONNESS = {"even": None, "common": 1 / np.arange(1, len(WORDS) + 1)}
FIELDS = ((0, 10), (10, 14), (14, 17), (17, 21))
"""First and last word of strategy, condition, example and keywords."""
PEERS = {"tfidf": "scikit-learn", "bm25": "bm25s"}
SHARES = {"tfidf": 0.25, "bm25": 1.0}
"""Most time of a query, relative to the peer's."""
REFRESH_TARGETS = {100_000: 50.0, 1_000_000: 500.0}


def run(bench: Bench) -> None:
    """Measure what is missing and print the table."""
    print(
        f"\nentries  words   method  query ms  peer, ms (target: share)   refresh by {FRESH}, ms   GiB   same ranking"
    )
    for size in SIZES:
        for words in COMMONNESS:
            for method, peer in PEERS.items():
                ours, theirs = (_cell(bench, name, words, size) for name in (method, peer))
                share, target = ours["query_ms"] / theirs["query_ms"], REFRESH_TARGETS.get(size, float("nan"))
                print(
                    f"{size:9,d} {words:7s} {method:6s} {ours['query_ms']:8.3f} {peer:>13s} {theirs['query_ms']:8.3f} "
                    f"({share:.2f}: {SHARES[method]}) {ours['refresh_ms']:8.1f} ({target:.0f}) {ours['gib']:6.2f} "
                    f"{ours['same']}"
                )


def _cell(bench: Bench, method: str, words: str, size: int) -> BenchResult:
    command = [sys.executable, "-P", "-m", __name__, method, words, str(size)]

    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def measured() -> BenchResult:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return dict(json.loads(done.stdout))

    return bench.cell(f"{method}-{words}-{size}", measured)


def measure(method: str, words: str, size: int) -> BenchResult:
    """One cell; ``gib`` is the largest memory of this process, entries included."""
    entries, questions = _entries(words, size + FRESH * (REFRESHES + 1)), _questions(words)
    found = {"scikit-learn": _scikit_learn, "bm25s": _bm25s}.get(method)
    result = _ours(method, entries, questions, size) if found is None else _queried(found(entries[:size]), questions)
    return result | {"gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _ours(method: str, entries: Sequence[Entry], questions: Sequence[str], size: int) -> BenchResult:
    config = TfidfConfig(scoped=False, k=K) if method == "tfidf" else Bm25Config(type="bm25", scoped=False, k=K)
    scorer, library = scorer_of(config), Library(entries[:size])
    index, refreshed = Index(library.catalogue, config, scorer=scorer), []
    result = _queried(lambda text: index.search(text, ""), questions)
    score = scorer.fit(library)
    result["same"] = all(index.search(text, "") == _plain(library, score, text) for text in questions[:CHECKED])
    for first in range(0, FRESH * REFRESHES, FRESH):
        given = entries[first : size + first + FRESH]
        since = time.perf_counter()
        index = index.over(given)
        refreshed.append((time.perf_counter() - since) * 1000)
    return result | {"refresh_ms": median(refreshed), "refresh_worst_ms": max(refreshed)}


def _plain(library: Library, score: Callable[[BankQuery], Any], text: str) -> list[Hit]:
    """The best by the scores of all entries."""
    question = BankQuery(text, library.rows(None), frozenset(), key("plain"), None, None)  # type: ignore[arg-type]
    scores = score(question).round(12)
    return [Hit(library.entries[row], float(scores[row])) for row in top(scores, K)]


def _scikit_learn(entries: Sequence[Entry]) -> Callable[[str], Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=r"\w+")
    matrix = vectorizer.fit_transform(map(_text, entries))

    def search(text: str) -> Any:
        scores = (matrix @ vectorizer.transform([text]).T).toarray().ravel()
        best = np.argpartition(scores, -K)[-K:]
        return best[np.argsort(-scores[best])]

    return search


def _bm25s(entries: Sequence[Entry]) -> Callable[[str], Any]:
    import bm25s

    model = bm25s.BM25(k1=1.5, b=0.75)
    model.index([_text(entry).split() for entry in entries], show_progress=False)
    return lambda text: model.retrieve([text.split()], k=K, show_progress=False)


def _queried(search: Callable[[str], object], questions: Sequence[str]) -> BenchResult:
    """Median of the queries, asked for the second time."""
    times: list[float] = []
    for _ in range(2):
        times.clear()
        for text in questions:
            since = time.perf_counter()
            search(text)
            times.append((time.perf_counter() - since) * 1000)
    return {"query_ms": median(times), "query_p95_ms": float(np.quantile(times, 0.95))}


def _text(entry: Entry) -> str:
    return " ".join((entry.strategy, entry.condition, entry.example, entry.keywords))


def _entries(words: str, count: int) -> list[Entry]:
    drawn = _drawn(generator(key(0, "sizes", words)), words, (count, FIELDS[-1][1]))
    return [_entry(number, words_of) for number, words_of in enumerate(drawn)]


def _entry(number: int, words: Sequence[str]) -> Entry:
    strategy, condition, example, keywords = (" ".join(words[first:last]) for first, last in FIELDS)
    return Entry(f"{number:012x}", strategy, condition, example, keywords, "", "train", (), 1, number % 9)


def _questions(words: str) -> list[str]:
    return [" ".join(drawn) for drawn in _drawn(generator(key(1, "sizes", words)), words, (QUESTIONS, 12))]


def _drawn(draws: np.random.Generator, words: str, shape: tuple[int, int]) -> Any:
    commonness = COMMONNESS[words]
    share = None if commonness is None else commonness / commonness.sum()
    for first in range(0, shape[0], 10_000):
        rows = draws.choice(len(WORDS), (min(10_000, shape[0] - first), shape[1]), p=share)
        yield from ([WORDS[word] for word in row] for row in rows.tolist())


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

"""Quality of a run's own retrieval (CoEvo-RL Table 2): does a task find the entries again that it has taught?"""

from coevo.memory.retrieval.quality import Quality, measure, queries_of, some, usual_sizes
from coevo.memory.source_tasks import SourceTask, by_source
from coevo.tasks.session import Session


def retrieval_quality(session: Session) -> dict[str, float]:
    """Metrics of ``evaluation.retrieval``: in the pools that training searches, and in smaller ones by their size.

    The bank is read-only, the gates of retrieval do not apply, and tasks that have no entry any more are no queries.
    Empty where there is no query.
    """
    index, seed = session.index(), session.config.seed
    if not session.config.evaluation.retrieval or index is None:
        return {}
    every = queries_of(index.library, sources(session), index.key if index.config.scoped else None)
    queries, metrics = some(every, seed), dict[str, float]()
    for size in (*usual_sizes(queries), None):
        found = measure(index.score, queries, size, index.config.k, seed)
        metrics |= {} if found is None else named(found, size)
    return metrics


def sources(session: Session) -> dict[str, SourceTask]:
    """Known tasks of the source episodes of entries, of candidates on trial and of a proposal, by episode id."""
    bank, proposed = session.bank, session.pending.proposed
    candidates = [trial.entry for trial in bank.trials] + list(proposed.decision.entries if proposed else ())
    return by_source(session.source_tasks, [*bank.entries, *candidates])


def named(found: Quality, size: int | None) -> dict[str, float]:
    """Metrics of pools of a size; None is the whole of each."""
    folder = "bank/retrieval" if size is None else f"bank/retrieval/pool_{size}"
    measures = {"hit1": found.hit_at_1, "hit3": found.hit_at_3, "mrr": found.mrr, "precision": found.precision}
    queries = {f"{folder}/queries": float(found.queries)}
    return queries | {f"{folder}/{name}": measure.mean for name, measure in measures.items()}

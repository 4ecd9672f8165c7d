"""Alarms of a revision: what keeps a run from learning, and the setting that helps."""

from collections.abc import Iterator

from coevo.configs.sections import AlarmConfig
from coevo.lineage.revision.manifest import Manifest
from coevo.records.faults import REMEDIES, Fault
from coevo.records.metric_names import FAULTS, STREAK, UNTAKEN, UNUSABLE, UNWRITTEN

SOLVED = 0.9
"""Training success from which on an idle writer is no alarm: little is left to write."""
REASONS = {f"{FAULTS}{fault.replace(' ', '_')}": fault for fault in Fault}
"""Fault by the metric that counts it."""


RULE = "rules quote feedback; another bank.writer, or imported entries"
TAIL = 10
"""Distance of the 99th percentile of tokens, in means, from which on engine and trainer differ too much."""
UNREAD = ("bank/writer/rejected_not_json", "bank/writer/rejected_not_words")
"""Metrics that count answers of which nothing can be read."""
CUT = "bank/writer/rejected_cut"
"""Metric that counts items, or whole answers, that end at the limit of tokens."""
MODEL = "bank/writer/unanswered and rejected, bank.writer.author"


def alarms(manifest: Manifest) -> list[str]:
    """Alarms of a revision, in lines of at most 71 characters; none if it learns."""
    return [*_unusable(manifest), *_flat(manifest), *_mismatch(manifest), *_unread(manifest), *_idle(manifest)]


def _unusable(manifest: Manifest) -> Iterator[str]:
    metrics = manifest.metrics
    share = metrics.get(UNUSABLE)
    if share is not None:
        reason = max(REASONS, key=lambda name: metrics.get(name, 0.0))
        yield f"{share:.0%} of the answers are unusable, mostly: {REASONS[reason]}"
        yield f"remedy: {REMEDIES[REASONS[reason]]}"


def _flat(manifest: Manifest) -> Iterator[str]:
    limit = _limits(manifest).flat
    count = manifest.metrics.get(STREAK, 0.0)
    if count >= limit:
        solved = manifest.metrics.get("agent/success/train", 0.0)
        yield f"no group has had different rewards for {count:.0f} iterations: nothing is learned"
        yield f"remedy: {'harder' if solved > 0.5 else 'easier'} tasks, or a larger rollout.group_size"


def _mismatch(manifest: Manifest) -> Iterator[str]:
    """Distance of engine and trainer, unless the run has the engine draw from another distribution on purpose."""
    limit, config = _limits(manifest).mismatch, manifest.state["config"]
    mean, tail = (manifest.metrics.get(f"policy/update/mismatch_{name}", 0.0) for name in ("mean", "p99"))
    rollout = config.get("rollout") or {}
    sampling = rollout.get("sampling") or {}
    meant = rollout.get("ahead", 0) or sampling.get("top_p", 1.0) < 1 or sampling.get("top_k", 0) > 0
    if meant or (mean <= limit and tail <= TAIL * limit):
        return
    yield f"engine and trainer differ by {mean:.2g} per token, 1 % by over {tail:.2g}"
    capped = ((config.get("update") or {}).get("loss") or {}).get("importance_cap") is not None
    yield f"remedy: policy.dtype=float32{'' if capped else ', or update.loss.importance_cap=2.0'}"


def _unread(manifest: Manifest) -> Iterator[str]:
    asked = manifest.metrics.get("bank/writer/questions", 0.0)
    unread = sum(manifest.metrics.get(name, 0.0) for name in UNREAD)
    if unread > asked * _limits(manifest).unusable:
        yield f"{unread:.0f} of the writer's {asked:.0f} answers have not the form that it asks for"
        yield "remedy: another bank.writer.author, or a policy that is taught to write"
    cut = manifest.metrics.get(CUT, 0.0)
    if cut > asked * _limits(manifest).unusable:
        yield f"{cut:.0f} of the writer's {asked:.0f} answers end at the limit of tokens"
        yield "remedy: a larger bank.writer.author.max_new_tokens"


def _limits(manifest: Manifest) -> AlarmConfig:
    return AlarmConfig(**manifest.state["config"].get("alarm", {}))


def _writes(manifest: Manifest) -> str:
    """Type of the run's writer; empty without a bank."""
    bank = manifest.state["config"].get("bank") or {}
    return str((bank.get("writer") or {}).get("type", ""))


def _idle(manifest: Manifest) -> Iterator[str]:
    limit = _limits(manifest).idle
    unwritten, untaken = (manifest.metrics.get(name, 0.0) for name in (UNWRITTEN, UNTAKEN))
    if max(unwritten, untaken) < limit or manifest.metrics.get("agent/success/train", 0.0) >= SOLVED:
        return
    if unwritten >= limit:
        yield f"the writer has proposed nothing in {unwritten:.0f} firings"
        yield f"remedy: {MODEL if _writes(manifest).startswith('model-') else RULE}"
    else:
        yield f"the bank has taken nothing in {untaken:.0f} firings"
        yield "remedy: bank.admission, or another bank.writer"

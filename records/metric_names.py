"""Names of metrics, in four groups: MLflow shows one section per group, in alphabetical order.

``agent``: success, reward and length of episodes, by panel. ``bank``: its entries, their retrieval and admission.
``cost``: episodes, tokens and seconds spent. ``policy``: rewards, advantages and the update.

Earlier versions used other names. Manifests keep the names they were written with; ``current`` translates them.
"""

from coevo.configs.base import named

GROUPS = ("agent", "bank", "cost", "policy")

FAULTS = "agent/faults/"
"""Prefix of the number of answers by fault; absent where it is zero."""
CUT = "agent/observations_cut/train"
"""Share of turns with an observation that prompts show shortened; absent without ``context.observation_tokens``."""
UNUSABLE = "agent/unusable/train"
"""Share of answers of which no action was used; absent below the alarm's limit."""
UNREWARDED = "agent/unrewarded/train"
"""Number of successful episodes if success earns nothing that failure does not; absent if it does."""
SPREAD = "agent/success_stderr/train"
"""Standard error of training success over the tasks of the batch; absent for a single task."""
STREAK = "policy/advantage/iterations_without_variance"
"""Number of iterations in a row in which no group has different rewards; absent where it is zero."""
UNSHOWN = "bank/retrieval/iterations_unshown"
"""Number of iterations in a row in which the bank has entries and no prompt shows one; absent where it is zero."""
MOVED = "policy/update/kl_previous"
"""KL(policy before || after the update) per token of the batch; ``policy/update/kl`` is the one to the reference."""
UNWRITTEN = "bank/writer/firings_without_proposal"
"""Number of firings in a row in which the writer proposed nothing; absent where it is zero."""
UNREAD = "bank/writer/episodes_without_action"
"""Number of episodes without a usable action, about which the writer is not asked; absent where it is zero."""
UNTAKEN = "bank/firings_without_change"
"""Number of firings in a row after which the bank was as before; absent where it is zero."""

FOLDERS = {
    "success": "agent/success",
    "reward": "agent/reward",
    "turns": "agent/turns",
    "invalid": "agent/invalid",
    "truncated": "agent/truncated",
    "expert": "agent/expert",
    "rollout": "agent/episodes",
    "admission": "bank/admission",
    "append": "bank/admission",
    "discovery": "bank/discovery",
    "edits": "bank/edits",
    "replay": "bank/replay",
    "retrieval": "bank/retrieval",
    "writer": "bank/writer",
    "seconds": "cost/seconds",
    "spent": "cost",
    "advantage": "policy/advantage",
    "advantage_histogram": "policy/advantage_histogram",
    "critic": "policy/critic",
    "loss": "policy/loss",
    "reflection": "policy/reflection",
    "update": "policy/update",
    "warmstart": "policy/warmstart",
}
"""Current folder by the first component of an old name."""

SHAPING = (
    "baseline", "capability_evolution", "discount", "discounted", "extrinsic", "guided", "intrinsic",
    "intrinsic_share", "kl", "progress_guided",
)  # fmt: skip
"""Old names below ``reward/`` that are no panels."""

EXCEPTIONS = {
    **{f"reward/{name}": f"policy/reward/{name}" for name in SHAPING},
    "replay/with": "bank/replay/reward_with",
    "replay/without": "bank/replay/reward_without",
    "retrieval/bare_success": "bank/retrieval/unconditioned_success",
    "retrieval/shown": "bank/retrieval/enabled",
    "rollout/cut": "agent/episodes/unfinished",
    "rollout/staleness": "policy/staleness",
    "schedule/evolves": "bank/evolves",
    "schedule/learns": "policy/learns",
    "update/critic_grad_norm": "policy/critic/grad_norm",
    "update/critic_loss": "policy/critic/loss",
    "warmstart/right": "policy/warmstart/success_true_lessons",
    "warmstart/wrong": "policy/warmstart/success_false_lessons",
    # Columns of the report's table of entries.
    "born": "created",
    "shown": "retrievals",
    "solved": "successes",
}
"""Current name by old name, for names that their folder does not decide."""


def current(name: str) -> str:
    """Current name of a metric; a current or unknown name is returned as it is."""
    if name in EXCEPTIONS:
        return EXCEPTIONS[name]
    first, slash, rest = name.partition("/")
    return f"{FOLDERS[first]}/{rest}" if slash and first in FOLDERS else name


def metric_name(name: str) -> str:
    """Require a metric's name, in a manifest from elsewhere: names with slashes between. Raises ``ValueError``."""
    for part in name.split("/"):
        named(part)
    return name

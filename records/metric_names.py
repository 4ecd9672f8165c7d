"""Names of metrics, in four groups: MLflow shows one section per group, in alphabetical order.

``agent``: success, reward and length of episodes, by panel. ``bank``: its entries, their retrieval and admission.
``cost``: episodes, tokens and seconds spent. ``policy``: rewards, advantages and the update.
"""

from coevo.configs.base import named

GROUPS = ("agent", "bank", "cost", "policy")

FAULTS = "agent/faults/"
"""Prefix of the number of answers by fault; absent where it is zero."""
SCORES = "agent/rewards"
"""Prefix of the mean of each value that rewards are made of, by panel and name; absent without such values."""
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


def metric_name(name: str) -> str:
    """Require a metric's name, in a manifest from elsewhere: names with slashes between. Raises ``ValueError``."""
    for part in name.split("/"):
        named(part)
    return name

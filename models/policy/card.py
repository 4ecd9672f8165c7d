"""Sampling that a model's card recommends (``generation_config.json``), beside the one of a run."""

from typing import Any

from pydantic import ValidationError

from coevo.configs.policy_config import PolicyConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.policy.foreign import folder_of, settings_of

CARD = "generation_config.json"
OURS = ("temperature", "top_p", "top_k")
"""Settings that a run has as well."""
NEUTRAL = {
    "do_sample": True,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "no_repeat_ngram_size": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "min_new_tokens": 0,
}
"""Settings that no run has, because an update needs the policy's own distribution; each with its neutral value."""


def ignored(policy: PolicyConfig, sampling: SamplingConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the card that a run does not follow, by name; empty without a card.

    Returns:
        The settings that ``rollout.sampling`` has and could follow, and those that no setting of a run follows.

    Raises:
        CoevoError: the card is not a JSON object.
    """
    card = _card(policy)
    ours = {name: card[name] for name in OURS if card.get(name) is not None and card[name] != getattr(sampling, name)}
    possible = {name: value for name, value in ours.items() if _is_possible(name, value)}
    refused = {name: card[name] for name, neutral in NEUTRAL.items() if card.get(name) not in (None, neutral)}
    return possible, {name: value for name, value in ours.items() if name not in possible} | refused


def _is_possible(name: str, value: object) -> bool:
    try:
        SamplingConfig.model_validate({name: value}, strict=True)
    except ValidationError:
        return False
    return True


def _card(policy: PolicyConfig) -> dict[str, Any]:
    folder = folder_of(policy.path) if isinstance(policy, PretrainedPolicyConfig) else None
    return {} if folder is None else settings_of(folder / CARD)

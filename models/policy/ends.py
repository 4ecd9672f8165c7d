"""End of an answer, and beginning of a prompt, as the chat template writes them and as the tokenizer declares them.

A template may end answers with another token (``<|im_end|>``) than the one that the tokenizer names as its end token
(``<|endoftext|>``). The model was trained with the template's, so that both end an answer.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from coevo.configs.context_config import THINKING_OFF
from coevo.configs.policy_config import PolicyConfig, PretrainedPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.policy.foreign import folder_of, settings_of
from coevo.models.policy.template import OWN, render
from coevo.models.policy.tokenizers import Guess
from coevo.utilities.errors import CoevoError

_ANSWER = "coevo answers"
"""Content of an answer that no template holds."""
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


def template_end(tokenizer: Any, options: Mapping[str, Any] = MappingProxyType(THINKING_OFF)) -> int | None:
    """Id of the control token with which the chat template ends an answer.

    None stands for a template that ends it without one, or cannot write an answer, and for coevo's own.

    Args:
        tokenizer: tokenizer that has the template.
        options: values that the template may use.
    """
    return next(iter(_behind(tokenizer, options)), None)


def _behind(tokenizer: Any, options: Mapping[str, Any]) -> list[int]:
    """Ids of the control tokens right behind an answer: some templates close the answer first, and then the turn."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(tokenizer, Guess) or template is None or template in OWN:
        return []
    asked, answered = {"role": "user", "content": "u"}, {"role": "assistant", "content": _ANSWER}
    try:
        _, found, text = render(tokenizer, [asked, answered, asked], options).rpartition(_ANSWER)
    except CoevoError:
        return []
    controls = {str(token): index for index, token in tokenizer.added_tokens_decoder.items()}
    text, ids = text.lstrip() if found else "", list[int]()
    while ends := [each for each in controls if each and text.startswith(each)]:
        longest = max(ends, key=len)
        ids.append(controls[longest])
        text = text[len(longest) :]
    return ids


def deviating_marks(
    policy: PolicyConfig, tokenizer: Any, options: Mapping[str, Any] = MappingProxyType(THINKING_OFF)
) -> list[str]:
    """Notices of a pretrained policy whose template and tokenizer disagree on the end of an answer or the first token.

    Args:
        policy: configuration of the policy.
        tokenizer: its tokenizer.
        options: values that the template may use.

    Raises:
        CoevoError: the template or a file of settings cannot be read.
    """
    template = getattr(tokenizer, "chat_template", None)
    if not isinstance(policy, PretrainedPolicyConfig) or isinstance(tokenizer, Guess) or template in (None, *OWN):
        return []
    return [*_end(policy, tokenizer, options), *_begin(tokenizer, options)]


def _end(policy: PretrainedPolicyConfig, tokenizer: Any, options: Mapping[str, Any]) -> list[str]:
    behind, declared = _behind(tokenizer, options), _declared(policy, tokenizer)
    if declared.intersection(behind):
        return []
    end, own = next(iter(behind), None), tokenizer.eos_token
    if end is None:
        return [
            f"the chat template ends an answer without a control token, so that only {own} ends one: let the template "
            f"write {own} behind an answer, or name a model with another template"
        ]
    name = tokenizer.convert_ids_to_tokens(end)
    return [
        f"the chat template ends an answer with {name}, the model's own end token is {own}: both end an answer here; "
        f"set eos_token={name} in tokenizer_config.json and eos_token_id={sorted({end, *declared})} in {CARD}, so that "
        "other programs stop there as well"
    ]


def _declared(policy: PretrainedPolicyConfig, tokenizer: Any) -> set[int]:
    """End tokens that the tokenizer and the model's files name."""
    folder = folder_of(policy.path)
    files = () if folder is None else (folder / CARD, folder / "config.json")
    named = next((found for file in files if (found := settings_of(file).get("eos_token_id")) is not None), None)
    listed: Sequence[Any] = named if isinstance(named, list) else [named]
    return {each for each in (tokenizer.eos_token_id, *listed) if isinstance(each, int)}


def _begin(tokenizer: Any, options: Mapping[str, Any]) -> list[str]:
    begin = tokenizer.bos_token
    if begin is None:
        return []
    adds = tokenizer("u")["input_ids"][:1] == [tokenizer.bos_token_id]
    if not adds and tokenizer.bos_token_id in (tokenizer.eos_token_id, tokenizer.pad_token_id):
        return []  # a name for another token, with which no prompt of the model begins
    if begin in render(tokenizer, [{"role": "user", "content": "u"}], options):
        return []
    return [
        f"the chat template writes no {begin}, which the tokenizer {'puts before a text' if adds else 'has'}, and "
        "prompts begin without it: if the model was trained with it, let the template begin with {{ bos_token }}"
    ]


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

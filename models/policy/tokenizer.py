"""A word-level tokenizer in Hugging Face format: one token per word, split at blanks."""

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coevo.utilities.errors import CoevoError

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
ROLES = ("system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant{% endif %}"
)


def word_tokenizer(vocabulary: Sequence[str]) -> PreTrainedTokenizerFast:
    """Create a tokenizer of these words and of the roles of its chat template; any other word is ``<unk>``."""
    words = dict.fromkeys([PAD, EOS, UNKNOWN, *ROLES, *vocabulary])
    backend = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def check_promptable(tokenizer: Any, path: str, setting: str = "policy.path") -> None:
    """Check that a pretrained model's tokenizer can write prompts and end answers.

    Raises:
        CoevoError: it has no chat template or no end token; names the model and the remedy.
    """
    remedies = {"chat template": "add one to its folder as chat_template.jinja", "end token": "set its eos_token"}
    has = {"chat template": tokenizer.chat_template, "end token": tokenizer.eos_token}
    for what, remedy in remedies.items():
        if has[what] is None:
            raise CoevoError(
                f"{setting} = {path!r}: its tokenizer has no {what}; name an instruction-tuned model, or {remedy}"
            )

"""Tokenizers: a word-level one for policies from scratch, and a policy's own before the policy is loaded.

One that only estimates lengths stands in for a tokenizer that is not on this machine, and one that also keeps messages
apart for that of a policy behind an endpoint.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from coevo.configs.policy_config import EndpointPolicyConfig, PolicyConfig, ScratchPolicyConfig
from coevo.models.policy.foreign import (
    check_alone,
    check_settings,
    check_tokenizer,
    check_weights,
    folder_of,
    malformed,
)
from coevo.records.writing import BYTES
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
ROLES = ("system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant{% endif %}"
)
LETTERS = 3
"""Characters per estimated token: English has about four in current vocabularies, so lengths are overestimated."""
MARKED = "<|im_start|>{role}\n{content}<|im_end|>\n"
"""A message in the chat format of most models."""

FILES = ("tokenizer.json", "tokenizer_config.json")
"""Files of a tokenizer; a model of which only the settings are here has none yet."""
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
"""Files with the words of a tokenizer."""


def word_tokenizer(vocabulary: Sequence[str]) -> "PreTrainedTokenizerFast":
    """Create a tokenizer of these words and of the roles of its chat template; any other word is ``<unk>``."""
    from transformers import PreTrainedTokenizerFast

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


class Guess:
    """Substitute for a tokenizer that only estimates lengths."""

    chat_template = MARKED
    eos_token_id = 0
    all_special_tokens = ("<|im_start|>", "<|im_end|>")

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """Empty: text cannot contain any."""
        return {}

    def __init__(self) -> None:
        self._pieces: dict[str, int] = {}

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        """Number of tokens estimated from the text's length, at ``LETTERS`` characters each."""
        pieces = (text[start : start + LETTERS] for start in range(0, len(text), LETTERS))
        return {"input_ids": [self._pieces.setdefault(piece, len(self._pieces)) for piece in pieces]}

    def decode(self, ids: Sequence[int]) -> str:
        """Text of these tokens."""
        return "".join(map(list(self._pieces).__getitem__, ids))

    def apply_chat_template(self, messages: Sequence[dict[str, str]], **options: Any) -> str:
        """Messages in a common format."""
        return "".join(MARKED.format(**message) for message in messages) + "<|im_start|>assistant\n"


class MessageTokens(Guess):
    """Tokens of a policy whose own are not known: pieces of a text's bytes, and the marks around a message.

    Their number estimates that of the policy's, as ``coevo.records.writing.estimated``. Nothing in a content becomes a
    mark, so that ``messages`` finds again what a prompt was made of.
    """

    START, END = 0, 1
    eos_token_id = END
    eos_token = Guess.all_special_tokens[END]

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """The marks by id."""
        return {index: AddedToken(text) for index, text in enumerate(self.all_special_tokens)}

    def __len__(self) -> int:
        return 1 << (8 * BYTES + 1)

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        """Ids of the pieces of a text; a one before its bytes keeps an id's length, and apart from the marks."""
        data = text.encode(errors="replace")
        pieces = (data[start : start + BYTES] for start in range(0, len(data), BYTES))
        return {"input_ids": [int.from_bytes(b"\x01" + piece) for piece in pieces]}

    def decode(self, ids: Sequence[int], **options: Any) -> str:
        """Text of these tokens, marks included."""
        marks = [mark.encode() for mark in self.all_special_tokens]
        return b"".join(marks[index] if index < len(marks) else _piece(index) for index in ids).decode(errors="replace")

    def messages(self, ids: Sequence[int]) -> list[dict[str, str]]:
        """Role and content of each message of a prompt, without the one that it leaves open for the answer."""
        whole, part = list[dict[str, str]](), list[bytes]()
        for index in ids:
            if index == self.START:
                part = []
            elif index == self.END:
                role, _, content = b"".join(part).decode(errors="replace").partition("\n")
                whole.append({"role": role, "content": content})
            else:
                part.append(_piece(index))
        return whole


def _piece(index: int) -> bytes:
    """Bytes of a piece."""
    return index.to_bytes(BYTES + 1).lstrip(b"\x00")[1:]


def tokenizer_of(policy: PolicyConfig, vocabulary: Sequence[str]) -> Any:
    """Tokenizer that a policy will have; ``Guess`` if it is not on this machine.

    Raises:
        CoevoError: it needs code of its own, cannot be read, is missing beside weights, or cannot write prompts; or
            the policy's weights are pickles, or have adapters beside them.
    """
    if isinstance(policy, ScratchPolicyConfig):
        return word_tokenizer(vocabulary)
    if isinstance(policy, EndpointPolicyConfig):
        return MessageTokens()
    # A policy behind an endpoint needs neither Transformers nor PyTorch.
    from transformers import AutoTokenizer

    from coevo.models.policy.stored import check_stored

    check_settings(policy.path)
    check_weights(policy.path)
    check_tokenizer(policy.path)
    check_alone(policy.path)
    try:
        found = AutoTokenizer.from_pretrained(policy.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001  (Transformers raises whatever a malformed file leads to)
        folder = folder_of(policy.path)
        named = [name for name in FILES if folder is not None and (folder / name).is_file()]
        if folder is not None and any(folder.glob("*.safetensors")) and not _has_words(folder):
            raise CoevoError(f"{policy.path}: no tokenizer.json: copy the model's own to it") from None
        if not named and isinstance(error, OSError | ValueError):
            return Guess()
        raise malformed(f"{policy.path}: {' or '.join([*named, 'config.json'])}", error) from None
    check_promptable(found, policy.path)
    check_stored(policy.path)
    return found


def _has_words(folder: Path) -> bool:
    """Report whether a model's directory has the words of a tokenizer."""
    return any((folder / name).is_file() for name in VOCABULARIES)

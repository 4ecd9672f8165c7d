"""Text of token ids without the model: pages show what a policy was asked, and need no weights for that."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from coevo.models.policy.bounded_trial import try_tokenizer

DESCRIPTION = "endpoint.json"
"""File of a policy behind an endpoint, in place of its weights."""
Decode = Callable[[Sequence[int]], str | None]
"""``decode(ids)``: text of token ids, special tokens included; None if it cannot be known."""


class Decoder:
    """A ``Decode`` by the ``tokenizer.json`` of a policy, which is read when the first text is needed.

    Args:
        policy: folder of the policy.
    """

    def __init__(self, policy: Path) -> None:
        self._policy = policy
        self._tokenizer: Any = None

    def __call__(self, ids: Sequence[int]) -> str | None:
        """Decode token ids; None without a readable tokenizer, or for ids that it does not have."""
        if self._tokenizer is None:
            self._tokenizer = self._opened()
        if self._tokenizer is None:
            return None
        try:
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))
        except OverflowError:
            return None

    def _opened(self) -> Any:
        """The tokenizer; None where its file is missing, while a commit replaces it, malformed or without measure."""
        if (self._policy / DESCRIPTION).is_file():
            from coevo.models.policy.tokenizers import MessageTokens  # takes a second to import

            return MessageTokens()
        from tokenizers import Tokenizer

        try:
            file = self._policy / "tokenizer.json"
            return Tokenizer.from_str(file.read_text(encoding="utf-8")) if try_tokenizer(file) is None else None
        except Exception as error:
            if isinstance(error, OSError | ValueError) or type(error) is Exception:  # the library's own are bare
                return None
            raise

"""Layout of a chat template: its text around the contents of a prompt, or of a conversation of any length.

The template is rendered a few times when a policy is loaded, and prompts are then filled in without it. That is exact
for a template which writes contents as they are and earlier turns as the latest; others are refused, and so are
tokenizers which read the template's text in another way. ``Deviation`` lists all that a conversation's prompt may have
in another way than the template; a layout names those of its template.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from coevo.models.policy.encoding import Piece, TemplateEncoder, Trim
from coevo.models.policy.template import refused, render
from coevo.models.policy.tokenizers import Guess
from coevo.utilities.errors import CoevoError

HEAD = ("system", "user")
"""Roles of the messages before a conversation's first answer."""
ONE_MESSAGE = "set context.style=chat"
"""Remedy for a template that cannot write conversations."""
THOUGHTS = ("<think>\nso\n</think>\n\ngo", "so\n</think>\n\ngo")
"""Answers with a thought; the template itself may have written its beginning."""
Write = Callable[[Sequence[str]], str]
"""Function that renders messages with these contents, in order."""
TRIMS: tuple[Trim, ...] = (str, str.strip, str.lstrip, str.rstrip)
"""Changes that templates make to the blanks of a content."""
BEFORE, BEHIND = "\n ", " \t"
"""Blanks around a mark, of which either tells what a template keeps of the other."""
TRIM_OF: dict[tuple[bool, bool], Trim] = {
    (trim(f"{BEFORE}x")[0] != "x", trim(f"x{BEHIND}")[-1] != "x"): trim for trim in TRIMS
}
"""Change to the blanks of a content, by whether it keeps those before and those behind it."""
PROBES = ("a", "Go on: x = {{ y }}; {% z %}", "<b>two\n\nlines</b> \u00e9\u4e16\U0001f600", "x\n\n<tool_response>y")
"""Contents that a piece must write as its template does."""


class Deviation(StrEnum):
    """Differences between a conversation's prompt and the template's rendering of the same messages."""

    TOKENS = "earlier answers keep the tokens that were generated, however the tokenizer would split their text"
    END = "an answer that was cut off, or has another end token, gets the template's behind it, which is not trained on"
    OPENING = "earlier answers keep the text with which the template opens an answer"
    THOUGHTS = "earlier answers keep their thoughts, which the template leaves out"
    BLANKS = "earlier answers keep the blanks at their ends, which the template leaves out"


@dataclass(frozen=True, slots=True)
class Conversation:
    """Layout of a conversation.

    Attributes:
        opening: up to the first answer; its contents are the system's text and the first message.
        following: from the end of an answer, an end token first, to the next answer; its contents are the new messages.
        deviations: differences from the template's rendering of the same messages.
    """

    opening: Piece
    following: Piece
    deviations: frozenset[Deviation]


class Layout:
    """Layouts of one tokenizer's chat template, with its options and an environment's tools."""

    def __init__(
        self, tokenizer: Any, encoder: TemplateEncoder, options: Mapping[str, Any], tools: Sequence[Any] = ()
    ) -> None:
        self._tokenizer, self._encoder = tokenizer, encoder
        self._options, self._tools = options, [dict(tool) for tool in tools]
        declared = encoder.split(json.dumps(self._tools, ensure_ascii=False))
        if any(isinstance(part, int) for part in declared):
            raise CoevoError("the environment's tools hold a control token of the tokenizer: describe them without it")

    def prompt(self, roles: Sequence[str]) -> Piece:
        """Layout of a prompt with one message per role; the text of a system that the template lacks leads the user's.

        Raises:
            CoevoError: the template or the tokenizer cannot be used.
        """
        return self._opening(roles)[0]

    def conversation(self) -> Conversation:
        """Layout of a conversation; with tools, later messages are a tool's if the template has such messages.

        Raises:
            CoevoError: the template or the tokenizer cannot be used, or not for conversations.
        """
        return self.following(["tool" if self._tools else "user"])

    def following(self, roles: Sequence[str]) -> Conversation:
        """Layout of a conversation with a message of each role between two answers.

        A tool's message is a user's if the template has no such messages.

        Raises:
            CoevoError: the template or the tokenizer cannot be used, or not for such conversations.
        """
        if "tool" in roles:
            try:
                return self._conversation(roles)
            except CoevoError:
                pass
        return self._conversation(["user" if role == "tool" else role for role in roles])

    def _opening(self, roles: Sequence[str]) -> tuple[Piece, bool]:
        """Layout, and whether the template has the roles."""
        try:
            piece, whole = piece_of(self._writer(roles), len(roles)), True
        except CoevoError:
            if "system" not in roles:
                raise
            piece, whole = piece_of(self._writer(roles, merged=True), len(roles)), False
        self._check_tokens(piece)
        return piece, whole

    def _conversation(self, later: Sequence[str]) -> Conversation:
        opening, whole = self._opening(HEAD)
        turn = ("assistant", *later)
        try:
            piece = piece_of(self._writer((*HEAD, *turn), merged=not whole), len(HEAD) + len(turn))
        except CoevoError as error:
            raise CoevoError(f"{error}, or {ONE_MESSAGE}") from None
        before, following = piece.fixed[2], Piece(piece.fixed[3:], piece.trims[3:])
        extra = opening.fixed[2].removeprefix(before)
        between = following.fixed[-1].removesuffix(extra)
        longer = Piece((*piece.fixed[:-1], between, *following.fixed), (*piece.trims, *piece.trims[2:]))
        kept = piece.fixed[:2] == opening.fixed[:2] and before + extra == opening.fixed[2]
        if not kept or not writes(self._writer((*HEAD, *turn, *turn), merged=not whole), longer):
            raise refused("writes earlier turns in another way than the latest", ONE_MESSAGE)
        if isinstance(self._encoder.split(following.fixed[0])[0], str) and not isinstance(self._tokenizer, Guess):
            raise refused("ends an answer without a control token", ONE_MESSAGE)
        self._check_tokens(following)
        found = {Deviation.TOKENS: True, Deviation.END: True, Deviation.OPENING: bool(extra)}
        found[Deviation.BLANKS] = piece.trims[2] is not str
        found[Deviation.THOUGHTS] = not self._keeps_thoughts(piece, self._writer((*HEAD, *turn), merged=not whole))
        return Conversation(opening, following, frozenset(name for name, holds in found.items() if holds))

    def _keeps_thoughts(self, piece: Piece, write: Write) -> bool:
        later = ["v"] * (len(piece.trims) - 3)
        answers = [["s", "u", thought, *later] for thought in THOUGHTS]
        return all(write(contents) == piece.text(contents) for contents in answers)

    def _writer(self, roles: Sequence[str], merged: bool = False) -> Write:
        """Function that renders messages of these roles; ``merged`` puts the system's text into the next message."""

        def write(contents: Sequence[str]) -> str:
            texts, names = list(contents), list(roles)
            if merged:
                texts, names = [f"{texts[0]}\n\n{texts[1]}", *texts[2:]], names[1:]
            messages = [{"role": role, "content": text} for role, text in zip(names, texts, strict=True)]
            return render(self._tokenizer, messages, self._options, self._tools)

        return write

    def _check_tokens(self, piece: Piece) -> None:
        """Compare with the tokenizer's reading of the whole text, for contents without control tokens."""
        if isinstance(self._tokenizer, Guess):
            return
        for probe in PROBES:
            contents = [probe] * len(piece.trims)
            found = self._encoder.ids(piece.parts(self._encoder, contents))
            plain = self._encoder.split(probe) == (probe,)
            if plain and list(found) != self._tokenizer(piece.text(contents), add_special_tokens=False)["input_ids"]:
                raise refused("has a tokenizer that splits its text in another way than part by part")


def piece_of(write: Write, count: int) -> Piece:
    """Find the piece that a template writes around ``count`` contents.

    Raises:
        CoevoError: the template fails, or changes contents by more than the blanks at their ends.
    """
    marks = [f"CONTENT-{index}-OF-A-MESSAGE" for index in range(count)]
    fixed = _around(write(marks), marks)
    around = _around(write([f"{BEFORE}{mark}{BEHIND}" for mark in marks]), marks)
    kept = list(map(_blanks, fixed, around))
    trims = (TRIM_OF[left, right] for (_, left), (right, _) in pairwise(kept))
    piece = Piece(fixed, tuple(trims))
    if not writes(write, piece):
        raise refused("changes the contents of messages")
    return piece


def writes(write: Write, piece: Piece) -> bool:
    """Report whether a template writes ``PROBES`` as a piece does."""
    probes = ([probe] * len(piece.trims) for probe in (*PROBES, f"\n {PROBES[0]} \n"))
    return all(write(contents) == piece.text(contents) for contents in probes)


def _blanks(fixed: str, around: str) -> tuple[bool, bool]:
    """True where text between two contents holds blanks: behind the first, and before the second."""
    return around.count("\t") > fixed.count("\t"), around.count("\n") > fixed.count("\n")


def _around(text: str, marks: Sequence[str]) -> tuple[str, ...]:
    fixed = []
    for mark in marks:
        before, _, text = text.partition(mark)
        fixed.append(before)
    around = (*fixed, text)
    if text.count("CONTENT-") or "".join(map(str.__add__, around, (*marks, ""))).count("CONTENT-") != len(marks):
        raise refused("does not write each message once, in order")
    return around

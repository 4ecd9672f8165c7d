"""Pieces of a chat template: its text around the contents of messages, found by rendering it with placeholders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coevo.models.policy.encoding import PromptPart, TemplateEncoder
from coevo.models.policy.template import refused

Write = Callable[[Sequence[str]], str]
"""Function that renders messages with these contents, in order."""
Trim = Callable[[str], str]

TRIMS: tuple[Trim, ...] = (str, str.strip, str.lstrip, str.rstrip)
"""Changes that templates make to the blanks of a content."""
PROBES = ("a", "Go on: x = {{ y }}; {% z %}", "<b>two\n\nlines</b> \u00e9\u4e16\U0001f600", "x\n\n<tool_response>y")
"""Contents that a piece must write as its template does."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of a template with places for contents.

    Attributes:
        fixed: text before, between and after the contents.
        trims: change to the blanks of each content.
    """

    fixed: tuple[str, ...]
    trims: tuple[Trim, ...]

    def parts(self, encoder: TemplateEncoder, contents: Sequence[str]) -> list[PromptPart]:
        """The piece with its contents, split at the control tokens of the template."""
        parts = list(encoder.split(self.fixed[0]))
        for trim, content, text in zip(self.trims, contents, self.fixed[1:], strict=True):
            parts += [trim(content), *encoder.split(text)]
        return parts

    def text(self, contents: Sequence[str]) -> str:
        """The piece with its contents."""
        trimmed = (trim(content) for trim, content in zip(self.trims, contents, strict=True))
        return self.fixed[0] + "".join(map(str.__add__, trimmed, self.fixed[1:]))


def piece_of(write: Write, count: int) -> Piece:
    """Find the piece that a template writes around ``count`` contents.

    Raises:
        CoevoError: the template fails, or changes contents by more than the blanks at their ends.
    """
    marks = [f"CONTENT-{index}-OF-A-MESSAGE" for index in range(count)]
    fixed, trims = _around(write(marks), marks), [TRIMS[0]] * count
    for index, mark in enumerate(marks):
        blank = [*marks[:index], f"\n {mark} \n", *marks[index + 1 :]]
        written = write(blank)
        for trim in TRIMS:
            trims[index] = trim
            if Piece(fixed, tuple(trims)).text(blank) == written:
                break
    piece = Piece(fixed, tuple(trims))
    if not writes(write, piece):
        raise refused("changes the contents of messages")
    return piece


def writes(write: Write, piece: Piece) -> bool:
    """Report whether a template writes ``PROBES`` as a piece does."""
    probes = ([probe] * len(piece.trims) for probe in (*PROBES, f"\n {PROBES[0]} \n"))
    return all(write(contents) == piece.text(contents) for contents in probes)


def _around(text: str, marks: Sequence[str]) -> tuple[str, ...]:
    fixed = []
    for mark in marks:
        before, _, text = text.partition(mark)
        fixed.append(before)
    around = (*fixed, text)
    if text.count("CONTENT-") or "".join(map(str.__add__, around, (*marks, ""))).count("CONTENT-") != len(marks):
        raise refused("does not write each message once, in order")
    return around

"""Constraint of an endpoint's answers: the strongest that it accepts."""

import json
import re
from typing import Any, Literal

from coevo.records.writing import Question

ConstraintKind = Literal["schema", "json", "none"]
KINDS: tuple[ConstraintKind, ...] = ("schema", "json", "none")
NAMES = {"schema": "response_format=json_schema", "json": "response_format=json_object", "none": "no constraint"}
_ABOUT = re.compile(r"response.?format|json.?(?:schema|object|mode)|structured.?output|schema|grammar|guided", re.I)


class Constraint:
    """Constraint that a writer model's requests ask for.

    Args:
        wanted: kind of constraint; ``auto`` begins with the strongest, and weakens when the endpoint refuses.
        url: address of the endpoint, for messages.

    Attributes:
        kind: constraint of the next request.
    """

    def __init__(self, wanted: Literal["auto"] | ConstraintKind, url: str) -> None:
        self.kind: ConstraintKind = "schema" if wanted == "auto" else wanted
        self._weakens = wanted == "auto"
        self._url = url
        self._news = list[str]()

    def fields(self, question: Question, kind: ConstraintKind) -> dict[str, Any]:
        """Fields of a request; none for a question without a schema."""
        if not question.schema or kind == "none":
            return {}
        if kind == "json":
            return {"response_format": {"type": "json_object"}}
        name = re.sub(r"\W", "_", question.purpose, flags=re.ASCII)[:64] or "answer"
        schema = {"name": name, "strict": True, "schema": json.loads(question.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def weaken(self, kind: ConstraintKind, refusal: str) -> bool:
        """Ask for less from now on if a refusal is about a constraint; report if the request may be sent again."""
        if not self._weakens or kind == "none" or not _ABOUT.search(refusal):
            return False
        if kind == self.kind:
            self.kind = KINDS[KINDS.index(kind) + 1]
            self._news.append(
                f"the endpoint {self._url} refuses {NAMES[kind]} ({refusal}): asking with {NAMES[self.kind]}; "
                f"bank.writer.model.constrain={self.kind} asks so at once"
            )
        return True

    def news(self) -> list[str]:
        """Warnings since the last call."""
        news, self._news = self._news, []
        return news

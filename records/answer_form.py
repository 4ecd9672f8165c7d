"""Form of an answer: where an answer of a policy holds its action. An environment names it (``Guide.answer``).

The prompt asks for the form, a reader of the form reads it (``models/answers``), and what differs is a fault. A form is
data: it stands in a moment, and a package keeps it as JSON.
"""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from coevo.configs.base import Config

LabelText = Annotated[str, Field(pattern=r"^\w+(?: \w+)*$", max_length=40)]
"""Words before a colon, without the colon."""
ActionName = Annotated[str, Field(pattern=r"^\w[\w.\-]*$", max_length=40)]
"""A name without blanks, which the environment gets as the first word of the action."""
Language = Annotated[str, Field(pattern=r"^[\w+\-.#]*$", max_length=40)]
Example = Annotated[str, Field(min_length=1, max_length=4000)]


class _AnyForm(Config):
    """A form of answers."""

    examples: tuple[Example, ...] = Field(default=(), max_length=16)
    """Actions that a prompt shows in this form, each as the environment gets it."""

    @property
    def takes_any_text(self) -> bool:
        """True if an action is text without a fixed first word, as an answer in words or a query is."""
        return False


class LineForm(_AnyForm):
    """A label, and the action in its line: ``Action: go north``."""

    kind: Literal["line"] = "line"
    label: LabelText = "Action"
    """Label of the action."""

    def __str__(self) -> str:
        return f"one line after {self.label}:"


class BlockForm(_AnyForm):
    """A label, and the action in all lines up to the next label: SQL, a script or a text, with or without a fence."""

    kind: Literal["block"] = "block"
    label: LabelText = "Action"
    """Label of the action."""

    @property
    def takes_any_text(self) -> bool:
        """True: it is code or prose."""
        return True

    def __str__(self) -> str:
        return f"all lines after {self.label}:"


class NamedAction(Config):
    """An action of a ``NamedForm``: a name, with a payload in a fence, a payload behind a label, or none."""

    name: ActionName
    """Name behind the form's label."""
    fence: Language | None = None
    """Language of the fence that holds the payload, empty for any; null if no fence belongs to the name."""
    label: LabelText | None = None
    """Label of a payload in text; null if none belongs to the name."""

    @model_validator(mode="after")
    def _one_payload(self) -> Self:
        if self.fence is not None and self.label is not None:
            raise ValueError(f"{self.name} has a fence and a label: name one of them")
        return self


class NamedForm(_AnyForm):
    """A label and a name, and the payload of the name: ``Action: Operation`` with a fence.

    The environment gets the name, a blank and the payload, or the name alone where it has no payload.
    """

    kind: Literal["named"] = "named"
    label: LabelText = "Action"
    """Label of the name."""
    actions: tuple[NamedAction, ...] = Field(min_length=1, max_length=64)
    """Names that may follow the label."""

    @model_validator(mode="after")
    def _unique(self) -> Self:
        names = [each.name.lower() for each in self.actions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the action {twice} is named twice: upper and lower case are read alike")
        return self

    def __str__(self) -> str:
        return f"{self.label}: with {', '.join(each.name for each in self.actions)}"


class TagForm(_AnyForm):
    """The action in a tag: ``<action>go north</action>``."""

    kind: Literal["tag"] = "tag"
    name: Annotated[str, Field(pattern=r"^[A-Za-z]\w*$", max_length=40)] = "action"
    """Name of the tag."""

    def __str__(self) -> str:
        return f"in <{self.name}>"


class CallForm(_AnyForm):
    """A call of one of the environment's tools, in the notation of the model's chat template."""

    kind: Literal["call"] = "call"

    def __str__(self) -> str:
        return "a tool call"


class FenceForm(_AnyForm):
    """The action in a fenced code block."""

    kind: Literal["fence"] = "fence"

    @property
    def takes_any_text(self) -> bool:
        """True: it is code."""
        return True

    def __str__(self) -> str:
        return "a fenced code block"


class WholeForm(_AnyForm):
    """The whole answer is the action, as an answer in words is."""

    kind: Literal["whole"] = "whole"

    @property
    def takes_any_text(self) -> bool:
        """True: it is an answer in words."""
        return True

    def __str__(self) -> str:
        return "the whole answer"


class OwnForm(_AnyForm):
    """A form with a parser of its own, a function from the text of an answer to its action, or None without one."""

    kind: Literal["own"] = "own"
    parser: Annotated[str, Field(pattern=r"^\w+(?:\.\w+)*:\w+$", max_length=300)]
    """The parser, ``package.module:function``. It gets the text without thinking."""
    request: Annotated[str, Field(min_length=1, max_length=4000)]
    """Sentences of the prompt that ask for the form."""
    written: Annotated[str, Field(max_length=4000)] = "{action}"
    """An answer in this form, with ``{action}`` in place of the action."""

    @model_validator(mode="after")
    def _has_action(self) -> Self:
        if self.written.count("{action}") != 1:
            raise ValueError("written has to hold {action} once")
        return self

    def __str__(self) -> str:
        return f"read by {self.parser}"


AnswerForm = LineForm | BlockForm | NamedForm | TagForm | CallForm | FenceForm | WholeForm | OwnForm
"""Any form."""
ANSWER_FORM: TypeAdapter[AnswerForm | None] = TypeAdapter(
    Annotated[AnswerForm, Field(discriminator="kind")] | None, config=ConfigDict(defer_build=True)
)
"""Reads a form from JSON; null stands for an environment that names none."""

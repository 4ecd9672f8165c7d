"""The prompt of each turn, and the format of the policy's answer."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from coevo.configs.base import MAX_PROCESSES, MAX_TOKENS, Config

Option = bool | Annotated[int, Field(ge=-MAX_TOKENS, le=MAX_TOKENS)] | Annotated[str, Field(max_length=100)]
"""Value of a template's option."""
RESERVED = {"messages", "conversation", "tools", "documents", "chat_template", "add_generation_prompt", "tokenize"} | {
    *("continue_final_message", "padding", "truncation", "max_length", "return_tensors", "return_dict"),
    *("return_assistant_tokens_mask", "tokenizer_kwargs", "bos_token", "eos_token", "pad_token", "unk_token"),
}
"""Names that are no options of a template."""
THINKING_OFF: dict[str, Option] = {"enable_thinking": False}


class ContextConfig(Config):
    """History window, experience block and answer format."""

    style: Literal["words", "chat", "conversation"] = "words"
    """``words``: the terse format of word-level policies; ``chat``: prose for pretrained models, each prompt one
    message; ``conversation``: prose, each prompt begins with the one before and the tokens that were generated."""
    memory_length: int | None = Field(default=1, ge=0, le=10_000)
    """Previous turns kept in the prompt (m of Context-lite); null keeps all. A conversation that exceeds it restarts
    with the latest half of them."""
    history: Literal["actions", "states"] = "actions"
    """Content of a previous turn: ``actions``: its action and the feedback; ``states``: its observation as well. A
    conversation always holds both."""
    placement: Literal["task", "system", "turn"] = "task"
    """Place of lessons: ``task``: after the instruction; ``system``: in a system message, which leaves the user message
    unchanged; ``turn``: before the current observation. Lessons that a conversation shows later stand in their turn."""
    experience_tokens: int = Field(default=200, ge=0, le=MAX_TOKENS)
    """Maximum length of the experience block in tokens; entries that do not fit are dropped whole."""
    observation_tokens: int | None = Field(default=None, ge=64, le=MAX_TOKENS, exclude_if=lambda limit: limit is None)
    """Maximum length of an observation, and of a turn's feedback, in tokens: longer ones keep their head and tail, with
    a mark between them; null shortens none."""
    parser: Literal["auto", "label", "tag", "call", "fence", "plain"] = Field(
        default="auto", exclude_if=lambda parser: parser == "auto"
    )
    """Form of an answer: ``auto``: the one that the environment names, else any of a tool call, a tag or a label.
    Others replace it: ``label``: after ``Action:``; ``tag``: ``<action>...</action>``; ``call``: a tool call;
    ``fence``: a code block; ``plain``: the whole answer."""
    invalid_limit: int | None = Field(default=None, ge=1, le=10_000, exclude_if=lambda limit: limit is None)
    """Number of answers in a row without a usable action that ends an episode, truncated; null never does."""
    template: dict[Annotated[str, Field(max_length=100)], Option] = Field(
        default=THINKING_OFF, max_length=MAX_PROCESSES, exclude_if=lambda options: options == THINKING_OFF
    )
    """Options of the tokenizer's chat template, by name. Thinking is off: ``{enable_thinking: true}`` turns it on."""

    @field_validator("template")
    @classmethod
    def _free(cls, options: dict[str, Option]) -> dict[str, Option]:
        taken = next((name for name in options if name in RESERVED), None)
        if taken is not None:
            raise ValueError(f"{taken} is set by coevo itself: name an option of the chat template, as enable_thinking")
        return options

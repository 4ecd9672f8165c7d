"""The page on prompts shows lessons as a prompt does."""

from pathlib import Path

from support.chat import chat

from coevo.configs.context_config import ContextConfig
from coevo.models.policy.context import Context
from coevo.records.demonstration import Moment, Note

PAGE = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text("utf-8")
NOTES = (
    Note("do not heat food", "the task says cool", "heat apple 1 with microwave 1", "warning"),
    Note("look into the cabinet first", "something small is missing; not when it is in sight", "open cabinet 1"),
    Note("sorrel clean with sink", "clean", "use sink"),
)


def test_lessons_are_those_of_the_page():
    context = Context(ContextConfig(style="chat", experience_tokens=800), chat())
    ids = context.prompt(Moment("house sorrel . task clean cup to shelf", NOTES, (), "at hall"))
    shown = PAGE.partition("```text\n")[2].partition("```")[0]
    assert shown.startswith("Notes from earlier attempts")
    assert shown in chat().decode(ids)

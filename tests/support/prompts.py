"""Contexts of both prompt styles, a moment of the household, and how tests look at a prompt and an answer."""

from support.chat import chat
from support.policies import WORDS

from coevo.configs.context_config import ContextConfig
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.episode import Completion

MOMENT = Moment(
    instruction="house lotus . task heat mug to counter",
    lessons=(Note("lotus mug in safe"), Note("lotus heat with microwave")),
    history=(PastTurn("at safe", "go hall", "nothing"), PastTurn("at hall", "go safe", "mug in safe")),
    observation="at safe hold nothing . seen safe",
)


def word():
    return word_tokenizer((*WORDS, *CONTEXT_WORDS, *["house", "lotus", "task", "with", "to", "counter", "go"]))


def words_context(**config):
    return Context(ContextConfig(**config), word())


def chat_context(**config):
    return Context(ContextConfig(style="chat", experience_tokens=10_000, **config), chat())


def text(context, moment=MOMENT):
    return context._tokenizer.decode(context.prompt(moment))


def read(context, said):
    return context.read(Completion((), (), said, True), MOMENT)

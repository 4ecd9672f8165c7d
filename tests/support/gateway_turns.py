"""Answers of sessions that no engine has drawn."""

from coevo.records.episode import Completion
from coevo.records.message import Message
from coevo.tasks.gateway.session_tree import AskedPrompt


def grown(session, turns=1, tokens=500):
    """A session with more answers, to messages of its own."""
    for _ in range(turns):
        number = len(session.tree.turns)
        messages = [Message("user", f"{session.name} {number} " + "observation " * 100)]
        asked = AskedPrompt(session.tree.match(messages, "[]"), "[]", ("e1",), tuple(range(tokens)))
        ids = tuple(range(1000, 1000 + tokens))
        session.keep(
            asked, Completion(ids, (-0.5,) * tokens, "x", True), Message.answer(f"{number}" + "answer " * 90), 0.1
        )
    return session

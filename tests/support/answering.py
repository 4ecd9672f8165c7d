"""Writer models for tests: answers by purpose, and what was asked."""

import json

from coevo.records.writing import Reply


def lesson(text="heat the mug with the microwave", step=4, attempt=1, when="the mug is to be heated", **more):
    """One item of an answer."""
    return {"lesson": text, "when": when, "when_not": "", "attempt": attempt, "step": step} | more


def answer(*items, name="lessons", **fields):
    """An answer as a model gives it."""
    return Reply(json.dumps({**fields, name: list(items)}), True, 100, 20)


class Asked:
    """An ``ask`` that gives the same reply to every question, or one reply each, and keeps the questions."""

    def __init__(self, *replies):
        self._replies = [Reply(each, True, 100, 20) if isinstance(each, str) else each for each in replies]
        self.questions = []

    def __call__(self, questions):
        start = len(self.questions)
        self.questions += questions
        last = len(self._replies) - 1
        return [self._replies[min(start + place, last)] for place in range(len(questions))]


class Scripted:
    """A writer model that answers each question with the purpose and a number, or as ``say`` says, and counts them."""

    def __init__(self, say=None):
        self._say = say or (lambda question: Reply(f"{question.purpose} {question.user}", True, 100, 20))
        self.asked = []
        self.closed = False

    def replies(self, questions):
        for place in reversed(range(len(questions))):
            self.asked.append(questions[place])
            yield place, self._say(questions[place])

    def close(self):
        self.closed = True

"""The ``conversation`` style: each prompt begins with the one before it and the tokens that were generated.

Only what is new is encoded: an observation's message, between the end of the last answer and the beginning of the next.
With ``memory_length`` a prompt holds at most so many previous turns. The turn that would exceed it begins a new branch,
with the latest half of them, which later turns continue in the same way.
"""

from collections.abc import Sequence

from coevo.models.policy.chat_prompt import Prose
from coevo.models.policy.encoding import TemplateEncoder
from coevo.models.policy.layout import Conversation, Deviation
from coevo.records.demonstration import Moment


def branch_of(count: int, limit: int | None) -> tuple[int, int]:
    """Branch of the prompt after ``count`` turns.

    Args:
        count: number of previous turns.
        limit: maximum number of previous turns in a prompt; None for any.

    Returns:
        Number of the turn that began the branch, and of the first turn that its prompts hold.
    """
    if limit is None or count <= limit:
        return 0, 0
    kept = limit // 2
    length = limit - kept + 1
    began = limit + 1 + (count - limit - 1) // length * length
    return began, began - kept


class Dialogue:
    """Writer of a conversation's prompts."""

    def __init__(self, layout: Conversation, encoder: TemplateEncoder, prose: Prose, limit: int | None) -> None:
        self._layout, self._encoder, self._prose, self._limit = layout, encoder, prose, limit
        self._end = encoder.split(layout.following.fixed[0])[0]

    @property
    def deviations(self) -> frozenset[Deviation]:
        """Differences of its prompts from the template's rendering of the same messages."""
        return self._layout.deviations

    def prompt(self, moment: Moment, lessons: str) -> tuple[int, ...]:
        """Token ids of the next prompt.

        Turns that the policy did not play in this process, as an agent's that is served, are rendered from their
        actions.

        Args:
            moment: content of the prompt.
            lessons: block of the lessons that the conversation does not hold yet.
        """
        count = len(moment.history)
        began, first = branch_of(count, self._limit)
        if moment.played and count > began:
            return (*moment.played[-1].prompt_ids, *self._next(moment, count, lessons))
        return self._branch(moment, first, lessons)

    def _branch(self, moment: Moment, first: int, lessons: str) -> tuple[int, ...]:
        """Prompt that begins with a turn; the block of lessons stands in its opening."""
        seen = [*(turn.observation for turn in moment.history), moment.observation][first]
        start = Moment(moment.instruction, (), (), seen, moment.guide, moment.tools)
        opening = self._layout.opening.parts(self._encoder, self._prose.messages(start, lessons, ()))
        later = (self._next(moment, number, "") for number in range(first + 1, len(moment.history) + 1))
        return (*self._encoder.ids(opening), *(index for ids in later for index in ids))

    def _next(self, moment: Moment, number: int, lessons: str) -> tuple[int, ...]:
        """Token ids of the answer before a turn, and from its end to the beginning of the next."""
        past = moment.history[number - 1]
        seen = [*(turn.observation for turn in moment.history[number:]), moment.observation][0]
        content = self._prose.following(past.feedback, lessons, seen)
        answer = self._answer(moment, number - 1)
        following = self._encoder.ids(self._layout.following.parts(self._encoder, [content]))
        return (*answer, *(following[1:] if answer[-1:] == (self._end,) else following))

    def _answer(self, moment: Moment, number: int) -> Sequence[int]:
        if moment.played:
            return moment.played[number].completion.token_ids
        return self._encoder.data(self._prose.answer(moment, moment.history[number].action))

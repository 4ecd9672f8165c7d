"""Episodes of search QA: the grammar of actions, and pure transitions. Searching ends with an answer."""

import re
import string
from collections.abc import Callable
from typing import NamedTuple

from coevo.envs.base import Step

MAX_ACTION_CHARS = 2_000
MAX_PASSAGE_CHARS = 4_000
NOTHING_YET, NOTHING = "no search yet", "nothing found"
UNREADABLE = "an action is search[words] or answer[words]"
NO_SEARCH_LEFT = "no search is left"
_BRACKETS = re.compile(r"\s*(search|answer)\s*\[(.*)\]\s*", re.DOTALL | re.IGNORECASE)
_TAGS = re.compile(r"<(search|answer)>((?:(?!</?(?:search|answer)>).)*)</\1>", re.DOTALL | re.IGNORECASE)
_INVENTED = re.compile(r"<(?:information|observation|result|tool_response)>", re.IGNORECASE)
"""Where an answer begins to invent what the search returned."""
_REQUEST = re.compile(r"\s*(?:words|\.{3}|…)?\s*", re.IGNORECASE)
"""Text of a tag that repeats the prompt, or is empty."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

Search = Callable[[str], tuple[str, ...]]


class AnswerKey(NamedTuple):
    """Right answers of a question, and feedback to answers.

    Attributes:
        golden: texts of which each is right.
        outcomes: feedback to an answer, by its normal form.
        wrong: feedback to every other answer.
    """

    golden: tuple[str, ...]
    outcomes: tuple[tuple[str, str], ...] = ()
    wrong: str = "wrong"


class SearchState(NamedTuple):
    """A point of an episode.

    Attributes:
        key: what an answer is compared with.
        searches: searches that are left.
        steps: actions that are left.
        shown: passages of the last search; None before the first.
    """

    key: AnswerKey
    searches: int
    steps: int
    shown: tuple[str, ...] | None = None

    def text(self) -> str:
        """Observation: one passage per line."""
        if self.shown is None:
            return NOTHING_YET
        return "\n".join(self.shown) or NOTHING


def begin(key: AnswerKey, searches: int) -> SearchState:
    """First state: after the last search, one action is left."""
    return SearchState(key, searches, searches + 1)


def advance(state: SearchState, action: str, search: Search) -> Step[SearchState]:
    """Search, or answer; one that cannot be read, and a search too many, cost an action."""
    found = _read(action)
    after = state._replace(steps=state.steps - 1)
    if found is None:
        return _step(after, UNREADABLE, valid=False)
    verb, text = found
    if verb == "answer":
        return _answered(after, text)
    if not state.searches:
        return _step(after, NO_SEARCH_LEFT, valid=False)
    shown = tuple(" ".join(passage.split())[:MAX_PASSAGE_CHARS] for passage in search(text))
    found_text = f"found {len(shown)} passages" if shown else NOTHING
    return _step(after._replace(searches=state.searches - 1, shown=shown), found_text)


def normal(text: str) -> str:
    """Normal form of an answer (SQuAD): lower case, without punctuation and articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def tagged_action(text: str, finished: bool) -> str | None:
    """First action in a tag, before anything that the answer invents; the parser of the form ``tags``.

    Args:
        text: answer without thinking.
        finished: not used: a tag that is closed is whole.
    """
    invented = _INVENTED.search(text)
    every = _TAGS.finditer(text, 0, len(text) if invented is None else invented.start())
    found = next((each for each in every if _REQUEST.fullmatch(each[2]) is None), None)
    return None if found is None else in_tags(found[1].lower(), found[2])


def in_tags(verb: str, text: str) -> str:
    """An action in a tag."""
    return f"<{verb}> {' '.join(text.split())} </{verb}>"


def in_brackets(verb: str, text: str) -> str:
    """An action in brackets; its words stand apart, since a word-level policy knows no others."""
    return f"{verb}[ {text} ]"


def _read(action: str) -> tuple[str, str] | None:
    if len(action) > MAX_ACTION_CHARS:
        return None
    found = _BRACKETS.fullmatch(action) or _TAGS.fullmatch(action.strip())
    text = "" if found is None else " ".join(found[2].split())
    return (found[1].lower(), text) if found is not None and text else None


def _answered(after: SearchState, text: str) -> Step[SearchState]:
    key, answer = after.key, normal(text)
    right = bool(answer) and answer in map(normal, key.golden)
    feedback = dict(key.outcomes).get(answer, "right" if right else key.wrong)
    return Step(after, "the question is answered", feedback, float(right), True, right)


def _step(after: SearchState, feedback: str, valid: bool = True) -> Step[SearchState]:
    over = after.steps <= 0
    return Step(after, after.text(), feedback, 0.0, over, False, valid, over)

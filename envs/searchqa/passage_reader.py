"""An expert for made encyclopedias that knows only its prompt: it follows notes about sources, and guesses else."""

from collections.abc import Sequence

from coevo.envs.searchqa.encyclopedia import SOURCES, Inquiry, PassageClaim, read_passages, read_question
from coevo.envs.searchqa.question_draws import NOTE
from coevo.records.demonstration import Moment
from coevo.records.draws import Key, seed_of


def next_move(moment: Moment, level: int, draw: Key) -> tuple[str, str, str]:
    """Thought, verb and words of the expert's next action; the thought repeats the note that it relies on."""
    asked = read_question(moment.instruction)
    claims = read_passages(level, moment.observation)
    hop, about = _standing(asked, claims, moment)
    if not about:
        return "search", "search", f"{asked.relations[0]} {asked.subject}"
    thought, source = _source(asked, moment, draw)
    value = next((each.value for each in about if each.source == source), about[0].value)
    if hop + 1 == len(asked.relations):
        return thought, "answer", value
    # An initial is a rare word, which finds passages about other facts.
    name = " ".join(word for word in value.split() if not word.endswith("."))
    return thought, "search", f"{asked.relations[hop + 1]} {name}"


def _standing(asked: Inquiry, claims: Sequence[PassageClaim], moment: Moment) -> tuple[int, list[PassageClaim]]:
    """Number of the relation that the passages are about, and what they say of it; nothing before the first search."""
    for hop in reversed(range(len(asked.relations))):
        subject = asked.subject if hop == 0 else _searched(moment)
        about = [each for each in claims if each.relation == asked.relations[hop] and _same(each.subject, subject)]
        if about:
            return hop, about
    return 0, []


def _searched(moment: Moment) -> str:
    """Last word of the last search."""
    return moment.history[-1].action.rstrip(" ]").removesuffix("</search>").strip() if moment.history else ""


def _same(name: str, other: str) -> bool:
    return bool(other) and name.rsplit(maxsplit=1)[-1] == other.rsplit(maxsplit=1)[-1]


def _source(asked: Inquiry, moment: Moment, draw: Key) -> tuple[str, str]:
    """Thought and source: as a note says, else a guess among those that no note excludes."""
    notes = [found.groups() for each in moment.lessons if (found := NOTE.search(each.text))]
    said = [(verdict, source) for verdict, realm, source in notes if realm == asked.realm]
    trusted = next((source for verdict, source in said if verdict == "right"), None)
    if trusted is not None:
        return f"in {asked.realm} by {trusted}", trusted
    left = [source for source in SOURCES if ("wrong", source) not in said] or list(SOURCES)
    guess = left[seed_of(draw) % len(left)]
    return f"in {asked.realm} guess {guess}", guess

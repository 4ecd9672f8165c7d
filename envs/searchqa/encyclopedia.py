"""A made encyclopedia: realms with people, places and works, and four sources that contradict each other about them.

In each realm one source is right about everything, and nothing but the outcome of an answer shows which.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from coevo.envs.search_index import SearchIndex
from coevo.records.draws import generator, key

NAME = "searchqa"
REALMS = (
    "amaria", "belmark", "corvia", "delmora", "estria", "fenland", "galtia", "hestmark", "ilmora", "jorvia",
    "kestria", "lorland", "maltia", "nordmark", "ovelia", "pelmora",
)  # fmt: skip
SOURCES = ("almanac", "chronicle", "gazette", "ledger")
PLACES = tuple(
    first + last
    for first in (
        "bal", "cor", "dun", "el", "fen", "gar", "hol", "ist", "jor", "kel", "lum", "mor", "nar", "os", "pel", "rav",
    )
    for last in ("ado", "wick", "ben", "mar", "net", "tor", "vik", "eth")
)  # fmt: skip
GIVEN = tuple(
    first + last for first in ("an", "bo", "da", "ki", "lo", "mi", "ru", "ta") for last in ("rik", "sel", "ven", "mon")
)
SURNAMES = tuple(
    first + last
    for first in (
        "Ash", "Bram", "Cald", "Drey", "Ever", "Fair", "Grim", "Hart", "Ivel", "Jas", "Kirk", "Lang", "Mar", "Nor",
        "Oak", "Pen",
    )
    for last in ("man", "ley", "by", "worth", "don", "field", "croft", "well")
)  # fmt: skip
WORKS = tuple(
    f"The {first} {last}"
    for first in (
        "Amber", "Broken", "Crimson", "Distant", "Empty", "Frozen", "Gilded", "Hollow", "Iron", "Jade", "Last",
        "Mirrored", "Narrow", "Open", "Pale", "Quiet",
    )
    for last in ("Harp", "Lantern", "Mirror", "Orchard", "Bridge", "Crown", "Garden", "Voyage")
)  # fmt: skip
PREFIXES = ("", "", "Port ")
PER_REALM = 8
"""Entities of a kind in a realm, as far as they have names of their own."""


class LevelOfQuestions(NamedTuple):
    """Relations and sentences of a level.

    Attributes:
        relations: kind of the subject and of the value of each relation.
        hops: relations of a question, longest number.
        passages: sentences of passages, with ``{source}``, ``{relation}``, ``{subject}`` and ``{value}``.
        question: sentence of a question, with ``{realm}``, ``{who}`` and ``{asked}``.
    """

    relations: Mapping[str, tuple[str, str]]
    hops: int
    passages: tuple[str, ...]
    question: str


LEVELS = {
    1: LevelOfQuestions(
        dict.fromkeys(("mayor", "founder", "poet"), ("place", "person")),
        1,
        ("{relation} of {subject} : {source} says {value}",),
        "in {realm} {who} {asked} ?",
    ),
    2: LevelOfQuestions(
        {
            "birthplace": ("person", "place"), "residence": ("person", "place"), "mayor": ("place", "person"),
            "founder": ("place", "person"), "author": ("work", "person"), "setting": ("work", "place"),
        },
        2,
        (
            "According to the {source}, the {relation} of {subject} is {value}.",
            "The {source} names {value} as the {relation} of {subject}.",
            "That {value} is the {relation} of {subject} stands in the {source}.",
        ),
        "In {realm}, {who} the {asked}?",
    ),
}  # fmt: skip
WHO = {"person": "who is", "place": "which place is"}


class Inquiry(NamedTuple):
    """A question: its relations, the one that belongs to the subject first."""

    realm: str
    subject: str
    relations: tuple[str, ...]


class PassageClaim(NamedTuple):
    """Statement of a passage."""

    source: str
    relation: str
    subject: str
    value: str


class RealmFacts:
    """A realm of a world: its trusted source, and what each source says.

    Args:
        level: 1 or 2.
        world: name of the world.
        realm: name of the realm.
    """

    def __init__(self, level: int, world: str, realm: str) -> None:
        self.level, self.realm = level, realm
        rng = generator(key(NAME, world, level, realm))
        self.trusted = SOURCES[rng.integers(len(SOURCES))]
        self.entities = _entities(level, world, realm)
        self._said = dict[tuple[str, str], tuple[str, ...]]()
        for relation, (kind, of) in LEVELS[level].relations.items():
            for subject in self.entities[kind]:
                others = [each for each in self.entities[of] if each != subject]
                order = rng.permutation(len(others))[: len(SOURCES)]
                self._said[subject, relation] = tuple(others[index] for index in order)

    def value(self, inquiry: Inquiry, source: str) -> str:
        """Answer to a question by what one source says."""
        value = inquiry.subject
        for relation in inquiry.relations:
            value = self._said[value, relation][SOURCES.index(source)]
        return value

    def inquiries(self) -> Iterator[Inquiry]:
        """Every question of the realm, those of one relation first."""
        level = LEVELS[self.level]
        for subject, relation in self._said:
            yield Inquiry(self.realm, subject, (relation,))
        for (subject, first), (second, (kind, _)) in product(self._said, level.relations.items()):
            if level.hops > 1 and second != first and level.relations[first][1] == kind:
                yield Inquiry(self.realm, subject, (first, second))

    def passages(self, world: str) -> Iterator[str]:
        """One sentence for each source and fact, in random order."""
        rng, forms = generator(key(NAME, "passages", world, self.level, self.realm)), LEVELS[self.level].passages
        claims = [
            PassageClaim(source, relation, subject, value)
            for (subject, relation), values in self._said.items()
            for source, value in zip(SOURCES, values, strict=True)
        ]
        for index in rng.permutation(len(claims)):
            claim, form = claims[index], forms[rng.integers(len(forms))]
            names = aliases(claim.value)
            yield form.format(**claim._replace(value=names[rng.integers(len(names))])._asdict())


@lru_cache(maxsize=256)
def facts(level: int, world: str, realm: str) -> RealmFacts:
    """Facts of a realm of a world."""
    return RealmFacts(level, world, realm)


class MadeEncyclopedia:
    """Passages of some realms of a world, and their index."""

    def __init__(self, level: int, world: str, realms: Sequence[str]) -> None:
        known = (facts(level, world, realm) for realm in realms)
        self._passages = [passage for realm in known for passage in realm.passages(world)]
        self._index = SearchIndex(self._passages)

    def search(self, query: str, hits: int) -> tuple[str, ...]:
        """The passages that fit best, at most ``hits``."""
        return tuple(self._passages[number] for number in self._index.search(query, hits))


@lru_cache(maxsize=32)
def encyclopedia(level: int, world: str, realms: tuple[str, ...]) -> MadeEncyclopedia:
    """Passages of some realms of a world."""
    return MadeEncyclopedia(level, world, realms)


def aliases(name: str) -> tuple[str, ...]:
    """Names of an entity, the full one first: a person's surname, a place without its prefix."""
    parts = name.split()
    if len(parts) == 1 or parts[0] == "The":
        return (name,)
    if parts[0] == "Port":
        return (name, parts[1])
    return (name, f"{parts[0][0]}. {parts[1]}", parts[1])


def worded(level: int, inquiry: Inquiry) -> str:
    """A question in words."""
    about = LEVELS[level]
    kind = about.relations[inquiry.relations[-1]][1]
    asked = " of the ".join(reversed(inquiry.relations)) + f" of {inquiry.subject}"
    realm = inquiry.realm if level == 1 else inquiry.realm.title()
    return about.question.format(realm=realm, who=WHO[kind], asked=asked)


_ASKED = re.compile(r"[Ii]n (\w+),? (?:who|which place) is (?:the )?(\w+) of (?:the (\w+) of )?(.+?) ?\?")


def read_question(text: str) -> Inquiry:
    """The question that ``worded`` wrote."""
    found = _ASKED.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:60]!r} is no question of {NAME}")
    realm, last, first, subject = found.groups()
    return Inquiry(realm.lower(), subject, (first, last) if first else (last,))


@lru_cache(maxsize=2)
def _forms(level: int) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(form))) for form in LEVELS[level].passages
    )


def read_passages(level: int, text: str) -> list[PassageClaim]:
    """Statements of the lines of an observation."""
    found = (form.fullmatch(line) for line in text.split("\n") for form in _forms(level))
    return [PassageClaim(**each.groupdict()) for each in found if each]


def words() -> set[str]:
    """Words of every question and passage of level 1."""
    said = ["of", ":", "says", "in", "who", "is", "?"]
    return {*said, *LEVELS[1].relations, *SOURCES, *REALMS, *PLACES, *GIVEN}


def _entities(level: int, world: str, realm: str) -> dict[str, list[str]]:
    """Names by kind; those of two realms of a world differ, but for the people of level 1."""
    number, drawn = REALMS.index(realm), dict[str, list[str]]()
    for kind, pool in {"place": PLACES, "person": SURNAMES, "work": WORKS}.items():
        order = generator(key(NAME, "names", world, level, kind)).permutation(len(pool))
        drawn[kind] = [pool[index] for index in order[number * PER_REALM : (number + 1) * PER_REALM]]
    rng = generator(key(NAME, "given", world, level, realm))
    given = [GIVEN[index] for index in rng.permutation(len(GIVEN))[:PER_REALM]]
    if level == 1:
        return drawn | {"person": given}
    people = [f"{first.title()} {last}" for first, last in zip(given, drawn["person"], strict=True)]
    places = [f"{PREFIXES[rng.integers(len(PREFIXES))]}{place.title()}" for place in drawn["place"]]
    return drawn | {"person": people, "place": places}

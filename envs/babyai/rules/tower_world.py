"""Custom of a tower: a pure function of the world and the tower's name.

Worlds are named ``<purpose>/<number>``, so that worlds of different purposes are never equal.
"""

from functools import lru_cache

from coevo.envs.babyai.babyai_contents import ACTIONS, NOTHING, OUTCOMES, THINGS, UNSEEN, ThingName
from coevo.records.draws import Key, key, seed_of
from coevo.records.entry import Entry, entry_id

NAME = "babyai-rules"
_TOWERS = """arno danube elbe ganges indus jordan loire mekong murray niger oder rhine seine tagus thames volga
    amur ebro euphrates garonne hudson irtysh lena limpopo neva ohio orinoco parana severn tiber weser yukon"""
TOWERS = tuple(_TOWERS.split())
"""Names of towers; none of them is a word of a task otherwise."""
COLOURS = ("red", "green", "blue", "purple", "yellow")
"""Colours of things; doors are grey."""
DOOR = ThingName("grey", "door")
CUSTOMS = (*COLOURS, *THINGS)
"""Attributes of which a tower's door obeys one."""
_GRAMMAR = "tower open the door with or in bolt obeys stays shut turns it guess key"
_SIGHT = "You see carry a an wall locked open door grey step steps left right forward and"


def fresh(draw: Key) -> str:
    """Name of a world that is never used for training or evaluation."""
    return f"fresh/{seed_of(draw):016x}"


@lru_cache(maxsize=65536)
def custom(world: str, tower: str) -> str:
    """Attribute that opens the door of a tower: a colour or a kind of thing, uniform for each."""
    return CUSTOMS[seed_of(key(NAME, "custom", world, tower)) % len(CUSTOMS)]


def note(tower: str, attribute: str) -> str:
    """Note that a door obeys an attribute, such as ``in arno the bolt obeys green``."""
    return f"in {tower} the bolt obeys {attribute}"


def true_note(world: str, tower: str) -> Entry:
    """True note of a tower as an entry; its scope is the tower."""
    attribute = custom(world, tower)
    text = note(tower, attribute)
    return Entry(
        id=entry_id(tower, text),
        strategy=text,
        condition="open the door",
        example="toggle",
        keywords=f"{tower} door {attribute}",
        scope=tower,
        split="train",
        sources=(),
        created=0,
        edited=0,
    )


def outcome(opened: bool, attribute: str) -> str:
    """Feedback of the door. It shares no word with an action, so a rule that looks for the action finds nothing."""
    return f"the bolt {'turns' if opened else 'stays shut'} . it obeys {attribute}"


def words() -> tuple[str, ...]:
    """Every word that a task, observation, feedback, note, thought or action can contain, sorted."""
    steps = " ".join(map(str, range(1, 7)))
    said = " ".join((_GRAMMAR, _SIGHT, UNSEEN, NOTHING, steps, *OUTCOMES, *ACTIONS, *CUSTOMS, *TOWERS))
    return tuple(sorted({*said.split()}))

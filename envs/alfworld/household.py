"""Made games: rooms with furniture, goals of the six families, and objects and facts of a PDDL problem.

Domain, grammar and goals are the package's. Furniture and objects are those of its simulator; what fits where is part
of its tables.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from coevo.records.draws import generator, key, seed_of

NAME = "alfworld"
FAMILIES: Mapping[str, str] = {
    "pick_and_place_simple": "put a {object} in {target}",
    "look_at_obj_in_light": "look at {object} under the {target}",
    "pick_clean_then_place_in_recep": "put a clean {object} in {target}",
    "pick_heat_then_place_in_recep": "put a hot {object} in {target}",
    "pick_cool_then_place_in_recep": "put a cool {object} in {target}",
    "pick_two_obj_and_place": "put two {object} in {target}",
}
"""Task in words by family, as in ALFWorld's first template."""
LAMP = "DeskLamp"
FURNITURE: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "kitchen": {
        "Cabinet": (3, 5), "CoffeeMachine": (1, 1), "CounterTop": (2, 3), "DiningTable": (0, 1), "Drawer": (2, 4),
        "Fridge": (1, 1), "GarbageCan": (1, 1), "Microwave": (1, 1), "Shelf": (0, 2), "SinkBasin": (1, 1),
        "StoveBurner": (2, 2),
    },
    "bathroom": {
        "BathtubBasin": (0, 1), "Cabinet": (2, 4), "CounterTop": (1, 1), "Drawer": (0, 2), "GarbageCan": (1, 1),
        "Shelf": (0, 2), "SinkBasin": (1, 2), "Toilet": (1, 1),
    },
    "bedroom": {
        "Bed": (1, 1), "Desk": (1, 1), "Drawer": (2, 4), "Dresser": (0, 1), "GarbageCan": (1, 1), "Safe": (0, 1),
        "Shelf": (1, 3), "SideTable": (1, 2),
    },
    "living room": {
        "ArmChair": (0, 2), "CoffeeTable": (1, 1), "DiningTable": (0, 1), "Drawer": (1, 3), "GarbageCan": (1, 1),
        "Shelf": (0, 2), "SideTable": (1, 2), "Sofa": (1, 1),
    },
}  # fmt: skip
"""Least and most pieces of each kind by kind of room."""
OPENABLE = {"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"}


def _sets(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in table.items()}


OBJECTS: Mapping[str, str] = {
    "kitchen": (
        "Apple Bowl Bread ButterKnife Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan PepperShaker "
        "Plate Pot Potato SaltShaker Spatula Spoon Tomato"
    ),
    "bathroom": "Candle Cloth HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper",
    "bedroom": "AlarmClock Book CD CellPhone CreditCard KeyChain Laptop Mug Pen Pencil Pillow RemoteControl",
    "living room": (
        "Book CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl Statue TissueBox Vase Watch"
    ),
}
"""Objects by kind of room."""
_TABLE = " ".join(OBJECTS.values()).replace("Pillow", "")
FITS: Mapping[str, frozenset[str]] = _sets(
    {
        "ArmChair": "Book CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl",
        "BathtubBasin": "Cloth HandTowel SoapBar",
        "Bed": "Book CellPhone Laptop Newspaper Pillow",
        "Cabinet": (
            "Bowl Candle Cloth Cup DishSponge HandTowel Kettle Ladle Mug Pan PepperShaker Plate Pot SaltShaker "
            "SoapBar SoapBottle SprayBottle TissueBox ToiletPaper"
        ),
        "CoffeeMachine": "Mug",
        "CoffeeTable": _TABLE,
        "CounterTop": _TABLE,
        "Desk": "AlarmClock Book CD CellPhone CreditCard KeyChain Laptop Mug Pen Pencil RemoteControl",
        "DiningTable": _TABLE,
        "Drawer": (
            "Book ButterKnife CD Candle CellPhone Cloth CreditCard DishSponge Fork HandTowel KeyChain Knife Ladle "
            "Newspaper Pen Pencil PepperShaker RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon "
            "SprayBottle TissueBox ToiletPaper Watch"
        ),
        "Dresser": "AlarmClock Book CD CellPhone CreditCard KeyChain Laptop Mug Pen Pencil RemoteControl",
        "Fridge": "Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato",
        "GarbageCan": (
            "Apple Bread CD Cloth DishSponge Egg HandTowel Lettuce Newspaper Pen Pencil Potato SoapBar SoapBottle "
            "SprayBottle TissueBox ToiletPaper Tomato"
        ),
        "Microwave": "Apple Bowl Bread Cup Egg Mug Plate Potato Tomato",
        "Safe": "CD CellPhone CreditCard KeyChain Statue Vase Watch",
        "Shelf": (
            "AlarmClock Book Bowl CD Candle CellPhone Cloth CreditCard Cup DishSponge HandTowel KeyChain Kettle Mug "
            "Newspaper Pen Pencil PepperShaker Plate Pot RemoteControl SaltShaker SoapBar SoapBottle SprayBottle "
            "Statue TissueBox ToiletPaper Vase Watch"
        ),
        "SideTable": _TABLE,
        "SinkBasin": (
            "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork HandTowel Kettle Knife Ladle Lettuce Mug Pan "
            "Plate Pot Potato SoapBar Spatula Spoon Tomato"
        ),
        "Sofa": "Book CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl",
        "StoveBurner": "Kettle Pan Pot",
        "Toilet": "Candle Cloth HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper",
    }
)
"""Objects that fit in or on a piece of furniture."""
ABLE: Mapping[str, frozenset[str]] = _sets(
    {
        "cleanable": (
            "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan Plate Pot "
            "Potato SoapBar Spatula Spoon Tomato"
        ),
        "heatable": "Apple Bread Cup Egg Mug Plate Potato Tomato",
        "coolable": "Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato",
        "isReceptacleObject": "Bowl Cup Mug Pan Plate Pot",
        "sliceable": "Apple Bread Egg Lettuce Potato Tomato",
    }
)
"""Objects by property."""
TREATMENTS: Mapping[str, tuple[str, str]] = {
    "pick_clean_then_place_in_recep": ("cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "Fridge"),
}
"""Property that a family needs, and furniture that treats an object."""
MIN_DISTRACTORS, MAX_DISTRACTORS = 6, 10


class HouseholdGoal(NamedTuple):
    """Goal of a made game: objects and furniture in the simulator's names."""

    family: str
    object: str
    target: str

    def words(self) -> str:
        """The task in words."""
        return FAMILIES[self.family].format(object=self.object.lower(), target=self.target.lower())


@lru_cache(maxsize=256)
def furniture(room: str, number: int) -> tuple[str, ...]:
    """Pieces of a room, sorted; a function of its kind and number."""
    rng = generator(key(NAME, "furniture", room, number))
    counts = {piece: int(rng.integers(least, most + 1)) for piece, (least, most) in FURNITURE[room].items()}
    return tuple(piece for piece, count in counts.items() for _ in range(count))


@lru_cache(maxsize=1024)
def goals(family: str, room: str, number: int) -> tuple[HouseholdGoal, ...]:
    """Goals of a family that a room can have, sorted."""
    return tuple(sorted(_goals(family, room, set(furniture(room, number)))))


def rooms(family: str) -> list[str]:
    """Kinds of rooms that have goals of a family."""
    return [room for room in FURNITURE if goals(family, room, 0)]


def is_held_out(goal: HouseholdGoal) -> bool:
    """True if a goal belongs to the panels: a hash of it alone decides."""
    return seed_of(key(NAME, "split", *goal)) % 4 == 0


def _goals(family: str, room: str, pieces: set[str]) -> Iterator[HouseholdGoal]:
    objects = OBJECTS[room].split()
    if family == "look_at_obj_in_light":
        yield from (HouseholdGoal(family, each, LAMP) for each in objects if "Desk" in pieces)
        return
    able, helper = TREATMENTS.get(family, ("", ""))
    if not helper or helper in pieces:
        for each in objects:
            if not able or each in ABLE[able]:
                fitting = {to for to in pieces if each in FITS[to]}
                # It needs another place to be found in.
                yield from (HouseholdGoal(family, each, to) for to in fitting - {helper} if len(fitting) > 1)


def problem(data: Mapping[str, Any], goal_text: str) -> str:
    """PDDL problem of a made game.

    Args:
        data: data of its task.
        goal_text: the package's goal of its family, with ``{obj}``, ``{recep}`` and ``{toggle}``.
    """
    goal, room, number = HouseholdGoal(data["family"], data["object"], data["target"]), data["room"], data["number"]
    rng = generator(key(NAME, "objects", room, number, *goal, data["seed"]))
    pieces = furniture(room, number)
    placed = _placed(goal, room, pieces, rng)
    names = [_piece_name(piece, index) for index, piece in enumerate(pieces)]
    things = [f"{thing}_bar_{index:02d}" for index, (thing, _) in enumerate(placed)]
    kinds = {f"{piece}Type": "rtype" for piece in pieces} | {f"{thing}Type": "otype" for thing, _ in placed}
    objects = [
        "agent1 - agent",
        *(f"loc_{index} - location" for index in range(len(pieces) + 1)),
        *(f"{name} - receptacle" for name in names),
        *(f"{thing} - object" for thing in things),
        *(f"{kind} - {of}" for kind, of in kinds.items()),
    ]
    facts = ["(= (total-cost) 0)", f"(atLocation agent1 loc_{len(pieces)})", *_furnished(pieces, names, placed)]
    for thing, (kind, at) in zip(things, placed, strict=True):
        facts += _thing_facts(thing, kind, names[at], at)
    asked = goal_text.replace("#", "-").format(obj=goal.object, recep=goal.target, toggle=goal.target)
    return (
        f"(define (problem {NAME})\n(:domain alfred)\n(:objects\n{_lines(objects)})\n(:init\n{_lines(facts)})\n"
        f"{asked.rstrip().removesuffix(')')}\n(:metric minimize (total-cost))\n)\n"
    )


def _placed(goal: HouseholdGoal, room: str, pieces: tuple[str, ...], rng: np.random.Generator) -> list[tuple[str, int]]:
    """Each object with the number of the piece that it is in or on; none of the goal's is where it has to go."""
    wanted = [goal.object] * (2 if goal.family == "pick_two_obj_and_place" else 1)
    others = [each for each in OBJECTS[room].split() if each != goal.object]
    count = int(rng.integers(MIN_DISTRACTORS, MAX_DISTRACTORS + 1))
    drawn = wanted + [others[index] for index in rng.integers(len(others), size=count)]
    placed = list[tuple[str, int]]()
    for each in drawn:
        free = [n for n, piece in enumerate(pieces) if each in FITS[piece] and (each, piece) != goal[1:]]
        if free:
            placed.append((each, free[rng.integers(len(free))]))
    if goal.target == LAMP:
        placed.append((LAMP, pieces.index("Desk")))
    return [placed[index] for index in rng.permutation(len(placed))]


def _piece_name(piece: str, index: int) -> str:
    """Id of a piece; ALFWorld knows basins by the end of their id."""
    return f"{piece.removesuffix('Basin')}_bar_{index:02d}" + (f"_bar_{piece}" if piece.endswith("Basin") else "")


def _furnished(pieces: tuple[str, ...], names: list[str], placed: list[tuple[str, int]]) -> Iterator[str]:
    for index, (piece, name) in enumerate(zip(pieces, names, strict=True)):
        yield f"(receptacleAtLocation {name} loc_{index})"
        yield f"(receptacleType {name} {piece}Type)"
        if piece in OPENABLE:
            yield f"(openable {name})"
    things = sorted({thing for thing, _ in placed})
    for piece in sorted(set(pieces)):
        yield from (f"(canContain {piece}Type {thing}Type)" for thing in things if thing in FITS[piece])


def _thing_facts(thing: str, kind: str, within: str, at: int) -> list[str]:
    able = ["toggleable"] if kind == LAMP else ["pickupable", *(name for name, those in ABLE.items() if kind in those)]
    place = [
        f"(objectType {thing} {kind}Type)",
        f"(inReceptacle {thing} {within})",
        f"(objectAtLocation {thing} loc_{at})",
    ]
    return place + [f"({name} {thing})" for name in able]


def _lines(parts: Iterable[str]) -> str:
    return "".join(f"  {part}\n" for part in parts)

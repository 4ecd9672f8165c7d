"""Goals and tasks: every combination of a product's options is a goal; the product decides the split."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from itertools import product as combinations
from typing import Literal

from coevo.envs.webshop.purchase import NO_LIMIT, ShopGoal
from coevo.envs.webshop.shop_products import Product, ShopCatalogue, Wish
from coevo.records.draws import Key, generator, key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

NAME = "webshop"
ShopSplit = Literal["held-out", "fresh", "train"]
_SPLITS: tuple[ShopSplit, ...] = ("held-out", "fresh", "train", "train")
PANELS = {"held-out": "goals of products that training leaves out"}
MAKERS_PANELS = {
    "held-out": "the training products, in colours that training leaves out",
    "no-bank": "the same tasks, without the bank",
}
_GOALS: tuple[ShopSplit, ...] = ("held-out", "held-out", "fresh", "train")
"""Split of a product's goals by their place, where products are in all splits; the last is that of all further ones."""
PRICE_STEPS = tuple(10.0 * number for number in range(1, 100))
NEXT_STEPS = 4
"""Price steps above a product's price, of which two are drawn."""


@lru_cache(maxsize=8)
def products_of(catalogue: ShopCatalogue, split: ShopSplit) -> tuple[Product, ...]:
    """Products with a wish that belong to a split, in a fixed random order."""
    wished = [each for each in catalogue.products if each.wishes]
    # Products of one title stay together.
    chosen = [
        each
        for each in wished
        if catalogue.by_goal or _SPLITS[seed_of(key(NAME, "split", each.title)) % len(_SPLITS)] == split
    ]
    return tuple(sorted(chosen, key=lambda each: seed_of(key(NAME, "order", each.asin))))


def sample(catalogue: ShopCatalogue, steps: int, count: int, draw: Key, split: ShopSplit = "train") -> list[Task]:
    """``count`` tasks of a split, different ones as long as there are enough: a drawn goal of each product in turn."""
    rng, products = generator(draw), _some(products_of(catalogue, split), split)
    tasks, number = dict[str, Task](), 0
    order = rng.permutation(len(products))
    repeats = list[Task]()
    while len(tasks) + len(repeats) < count:
        product = products[order[number % len(products)]]
        goals = _goals(catalogue, product, split)
        task = _task(catalogue, product, *goals[rng.integers(len(goals))], steps, split)
        if task.id not in tasks:
            tasks[task.id] = task
        elif number > 20 * count:
            repeats.append(task)
        number += 1
    return [*tasks.values(), *repeats]


@lru_cache(maxsize=16)
def panel(catalogue: ShopCatalogue, steps: int, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of a panel. Raises ``CoevoError`` for an unknown name, and if it has fewer."""
    panels = panels_of(catalogue)
    if name not in panels:
        raise CoevoError(f"panel {name!r} is not one of {NAME}: choose one of {', '.join(panels)}")
    products = _some(products_of(catalogue, "held-out"), name)
    every = [_goals(catalogue, each, "held-out") for each in products]
    most = sum(map(len, every))
    if size > most:
        raise CoevoError(f"panel {name!r} has {most} tasks in this catalogue, not {size}: request fewer")
    found = (
        _task(catalogue, products[index], *goals[turn], steps, name)
        for turn in range(max(map(len, every)))
        for index, goals in enumerate(every)
        if turn < len(goals)
    )
    return tuple(islice(found, size))


def panels_of(catalogue: ShopCatalogue) -> dict[str, str]:
    """Panels of a catalogue by name, each with its description."""
    return MAKERS_PANELS if catalogue.by_goal else PANELS


def _goals(catalogue: ShopCatalogue, product: Product, split: ShopSplit) -> list[tuple[Wish, ShopGoal]]:
    """Goals of a product that belong to a split: all, or in a catalogue of makers those in some of its colours."""
    goals = goals_of(product)
    if not catalogue.by_goal:
        return goals
    return [goal for place, goal in enumerate(goals) if _GOALS[min(place, len(_GOALS) - 1)] == split]


def goals_of(product: Product) -> list[tuple[Wish, ShopGoal]]:
    """Goals of a product, as WebShop makes them: a wish without options is one for each combination of options."""
    values, upper = [product.options[name] for name in sorted(product.options)], _price_upper(product)
    return [
        (wish, ShopGoal(product.asin, wish.attributes, options, upper))
        for wish in product.wishes
        for options in (combinations(*values) if wish.options is None else (wish.options,))
    ]


def goal_of(task: Task, catalogue: ShopCatalogue) -> ShopGoal:
    """Goal of a task.

    Raises:
        CoevoError: the task is of another environment, or of another catalogue.
    """
    if task.env != NAME:
        raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
    data = task.data
    if data["catalogue"] != catalogue.name or data["asin"] not in catalogue.numbers:
        raise CoevoError(
            f"task {task.id} belongs to catalogue {data['catalogue']!r}, not {catalogue.name!r}: set env.path, "
            f"env.products and env.seed as they were"
        )
    return ShopGoal(data["asin"], tuple(data["attributes"]), tuple(data["options"]), float(data["price_upper"]))


def _some(products: Sequence[Product], split: str) -> Sequence[Product]:
    if not products:
        raise CoevoError(f"{NAME}: this catalogue has no product with a wish for {split}: take more products")
    return products


def _price_upper(product: Product) -> float:
    above = [step for step in PRICE_STEPS if step > product.price][:NEXT_STEPS]
    if len(above) < 2:
        return NO_LIMIT
    drawn = generator(key(NAME, "price", product.asin)).permutation(len(above))[:2]
    return above[int(max(drawn))]


def _task(catalogue: ShopCatalogue, product: Product, wish: Wish, goal: ShopGoal, steps: int, split: str) -> Task:
    data = {
        "catalogue": catalogue.name, "asin": goal.asin, "attributes": list(goal.attributes),
        "options": list(goal.options), "price_upper": goal.price_upper, "steps": steps,
    }  # fmt: skip
    return Task(NAME, product.category, instruction(product, wish, goal), product.query, split, data)


def instruction(product: Product, wish: Wish, goal: ShopGoal) -> str:
    """The wish, then options that it does not name, and the price, as WebShop appends them."""
    text = wish.text
    if goal.options and wish.options is None:
        named = zip(sorted(product.options), goal.options, strict=True)
        text += f" with {' , and '.join(f'{name}: {value}' for name, value in named)}"
    return text + (f" , and price lower than {goal.price_upper:.2f} dollars" if goal.price_upper < NO_LIMIT else "")

"""WebShop as an environment (Yao et al. 2022), with products of WebShop's files or of a catalogue made from a seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from coevo.configs.env import WebShopConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.webshop import shop_tasks
from coevo.envs.webshop.made_catalogue import made, words
from coevo.envs.webshop.purchase import ShopGoal, colour_of, noun_rule, same
from coevo.envs.webshop.shop import (
    BACK,
    BUY,
    FIXED,
    MAX_HITS,
    NEXT,
    PER_PAGE,
    PREVIOUS,
    SUBPAGES,
    Shop,
    ShopState,
)
from coevo.envs.webshop.shop_products import Product, load
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, seed_of
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError

GUIDE = """An action is one of these:
search[WORDS]: search for products; only on the first page.
click[TEXT]: click what the page offers: a product's number, an option's value, Description, Features, Reviews, < Prev,
Next >, Back to Search, or Buy Now.
A page shows one field per line. Choose the options that are asked for before you buy. Buy Now ends the task."""


MAX_SHOWN = 1000
"""Most products of a catalogue that is made for cloning."""
SAID = " ".join(
    (*FIXED, BACK, BUY, NEXT, PREVIOUS, *SUBPAGES, "Page (Total results: found products search[ click[ ] without not ,")
)
"""Words of all pages and answers that no product has."""


class WebShop(Environment[ShopState]):
    """A shop of text pages, in which a product is found, configured and bought.

    Args:
        products: products of the made catalogue, 100 to 200,000.
        seed: seed of the made catalogue.
        path: folder of WebShop's files, instead of a made catalogue.
        nouns: how the nouns of a title are found: ``words``, or ``spacy`` as in WebShop.
        steps: actions after which an episode is cut.

    Raises:
        ConfigError: an option is out of its bounds.
        CoevoError: the files are missing or no files of WebShop, or spaCy's model is not installed.
    """

    name: ClassVar[str] = shop_tasks.NAME
    version: str = "1"
    panels: Mapping[str, str] = shop_tasks.PANELS
    has_expert: bool = True
    expert_guesses: ClassVar[bool] = False
    concurrent: ClassVar[bool] = True

    def __init__(
        self,
        products: int = 1000,
        seed: int = 0,
        path: str | None = None,
        nouns: Literal["words", "spacy"] = "words",
        steps: int = 15,
    ) -> None:
        self._config = WebShopConfig.of(products=products, seed=seed, path=path, nouns=nouns, steps=steps)
        self.catalogue = made(products, seed) if path is None else load(Path(path))
        self.shop = Shop(self.catalogue, noun_rule(nouns))
        # Results name the version: whose products they are, and how nouns were found.
        self.version = f"1 {self.catalogue.name} {nouns}"

    def sample(self, count: int, key: Key) -> list[Task]:
        """Goals of training products, different ones as long as there are enough."""
        return shop_tasks.sample(self.catalogue, self._config.steps, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Goals of products that training leaves out; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, shop_tasks.panel(self.catalogue, self._config.steps, name, size))

    def start(self, task: Task) -> tuple[ShopState, str]:
        """First state and page of a task: the search."""
        state = ShopState(shop_tasks.goal_of(task, self.catalogue), int(task.data["steps"]))
        return state, self.shop.text(state)

    def step(self, states: Sequence[ShopState], actions: Sequence[str]) -> list[Step[ShopState]]:
        """Search or click for each state; what a page does not offer costs a step."""
        return [self.shop.advance(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The two forms of actions."""
        return Guide(GUIDE, ("search", "click"))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of a made catalogue's goals, pages and actions, sorted; empty for WebShop's files."""
        if self._config.path is not None:
            return ()
        numbers = " ".join(f"{count} {count})" for count in range(MAX_HITS + 1))
        return tuple(sorted({*f"{SAID} {numbers}".split(), *words(self._config.products)}))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the oracle knows the product of the goal."""
        raise MissingPartError(f"{self.name}'s oracle plays from a state: use advise")

    def advise(self, state: ShopState, moment: Moment, key: Key) -> Answer:
        """Next action of an oracle that knows the product of the goal: search its title, open, configure and buy it."""
        wanted = self.catalogue.numbers[state.goal.asin]
        product = self.catalogue.products[wanted]
        if state.page == "search":
            return Answer("", f"search[ {product.title} ]")
        if state.page == "hits" and wanted in state.hits:
            page = state.hits.index(wanted) // PER_PAGE
            return Answer("", _click(product.asin.lower() if page == state.number else NEXT))
        if state.page == "product" and state.product == wanted:
            chosen = dict(state.chosen)
            left = [value for name, value in _wanted(product, state.goal).items() if chosen.get(name) != value]
            return Answer("", _click(left[0] if left else BUY))
        return Answer("", _click(BACK))

    def shopper(self, state: ShopState, moment: Moment, key: Key) -> Answer:
        """Next action of a shopper that knows only instruction and page.

        It searches for all that the instruction names, opens the affordable hit whose title has most of the attributes,
        chooses the options and buys.
        """
        goal = state.goal
        if state.page == "search":
            kind = self.catalogue.products[self.catalogue.numbers[goal.asin]].query
            return Answer("", f"search[ {' '.join((kind, *goal.attributes, *goal.options))} ]")
        if state.page == "hits":
            shown = state.hits[state.number * PER_PAGE :][:PER_PAGE]
            hits = [self.catalogue.products[number] for number in shown]
            affordable = [hit for hit in hits if hit.price <= goal.price_upper] or hits
            if not affordable:
                return Answer("", _click(BACK))
            best = max(affordable, key=lambda hit: sum(each in hit.title.lower() for each in goal.attributes))
            return Answer("", _click(best.asin.lower()))
        if state.page != "product":
            return Answer("", _click(PREVIOUS))
        chosen = dict(state.chosen)
        targets = _wanted(self.catalogue.products[state.product], goal)
        left = [value for name, value in targets.items() if chosen.get(name) != value]
        return Answer("", _click(left[0] if left else BUY))

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` episodes, in another made catalogue, or for products that are used for cloning alone.

        They show a shopper that knows what the instruction and the pages say; the oracle would teach to guess titles.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        shop = self._another(extend(key, "another"))
        tasks = shop_tasks.sample(shop.catalogue, self._config.steps, episodes, key, "fresh")
        return [turn for task in tasks for turn in expert_turns(shop, task, key, advise=shop.shopper)]

    def _another(self, draw: Key) -> "WebShop":
        """A shop with another made catalogue, which shows the same words; itself for WebShop's files."""
        size, steps = min(self._config.products, MAX_SHOWN), self._config.steps
        return self if self._config.path else WebShop(size, seed_of(draw) >> 1, steps=steps)

    def probe(self, size: int, key: Key) -> Probe:
        """Goals for cloning alone, without lessons: only success counts."""
        tasks = shop_tasks.sample(self.catalogue, self._config.steps, size, extend(key, "probe"), "fresh")
        return Probe(tuple(tasks), ((),) * size, ())


def first_hit(env: WebShop, task: Task) -> Step[ShopState]:
    """Last step of a baseline: the instruction as query, the first hit, the options of the goal that it has, buy."""
    state, _ = env.start(task)
    state = env.shop.advance(state, f"search[{task.instruction}]").state
    if not state.hits:
        return env.shop.advance(state, _click(BACK))
    product = env.catalogue.products[state.hits[0]]
    state = env.shop.advance(state, _click(product.asin)).state
    for value in _wanted(product, state.goal).values():
        state = env.shop.advance(state, _click(value)).state
    return env.shop.advance(state, _click(BUY))


def _wanted(product: Product, goal: ShopGoal) -> dict[str, str]:
    """Values to choose, by the name of the option: each value of a goal goes to an option of its own that has it."""
    found = dict[str, str]()
    for value in goal.options:
        free = {name: values for name, values in sorted(product.options.items()) if name not in found}
        near = [
            (name, each) for name, values in free.items() for each in values if same(colour_of(each), colour_of(value))
        ]
        name, each = min(near, key=lambda pair: pair[1] != value, default=("", ""))
        found |= {name: each} if name else {}
    return found


def _click(text: str) -> str:
    return f"click[ {text} ]"

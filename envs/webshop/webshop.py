"""WebShop as an environment (Yao et al. 2022), with products of WebShop's files or of a catalogue made from a seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from coevo.configs.env import WebShopConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.webshop import makers_catalogue, shop_tasks
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
from coevo.envs.webshop.shop_products import Product, ShopCatalogue, load
from coevo.records.answer_form import LineForm
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, generator, seed_of
from coevo.records.entry import Entry
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError

GUIDE = """An action is one of these:
search[WORDS]: search for products; only on the first page.
click[TEXT]: click what the page offers: a product's number, an option's value, Description, Features, Reviews, < Prev,
Next >, Back to Search, or Buy Now.
A page shows one field per line. Choose the options that are asked for before you buy. Buy Now ends the task."""


MAX_SHOWN = 1000
"""Most products of a catalogue that is made for cloning."""
TOLD, WARNED, CHOICE = 0.5, 0.2, 0
"""Shares of episodes for cloning in catalogues of makers that have a note, and of these that it only rules a maker out;
and the turn that it decides.
"""
SAID = " ".join(
    (*FIXED, BACK, BUY, NEXT, PREVIOUS, *SUBPAGES, "Page (Total results: found products search[ click[ ] without not ,")
)
"""Words of all pages and answers that no product has."""


class WebShop(Environment[ShopState]):
    """A shop of text pages, in which a product is found, configured and bought.

    Args:
        products: products of the made catalogue, 12 to 200,000; at most 48 of ``makers``.
        catalogue: kind of made catalogue, ``families`` or ``makers``.
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
        catalogue: Literal["families", "makers"] = "families",
    ) -> None:
        self._config = WebShopConfig.of(
            products=products, seed=seed, path=path, nouns=nouns, steps=steps, catalogue=catalogue
        )
        self.catalogue = _made(self._config) if path is None else load(Path(path))
        self.panels = shop_tasks.panels_of(self.catalogue)
        self.shop = Shop(self.catalogue, noun_rule(nouns))
        # Results name the version: whose products they are, and how nouns were found.
        self.version = f"1 {self.catalogue.name} {nouns}"

    def sample(self, count: int, key: Key) -> list[Task]:
        """Goals of training products, different ones as long as there are enough."""
        return shop_tasks.sample(self.catalogue, self._config.steps, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Goals of products that training leaves out; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, shop_tasks.panel(self.catalogue, self._config.steps, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for the run's own, an empty list for ``no-bank``."""
        return [] if panel == "no-bank" else None

    def start(self, task: Task) -> tuple[ShopState, str]:
        """First state and page of a task: the search."""
        state = ShopState(shop_tasks.goal_of(task, self.catalogue), int(task.data["steps"]))
        return state, self.shop.text(state)

    def step(self, states: Sequence[ShopState], actions: Sequence[str]) -> list[Step[ShopState]]:
        """Search or click for each state; what a page does not offer costs a step."""
        return [self.shop.advance(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The two forms of actions."""
        return Guide(GUIDE, ("search", "click"), answer=LineForm())

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of a made catalogue's goals, pages and actions, sorted; empty for WebShop's files."""
        if self._config.path is not None:
            return ()
        numbers = " ".join(f"{count} {count})" for count in range(MAX_HITS + 1))
        shown = makers_catalogue.words() if self.catalogue.by_goal else words(self._config.products)
        return tuple(sorted({*f"{SAID} {numbers}".split(), *shown}))

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

    def customer(self, state: ShopState, moment: Moment, key: Key) -> Answer:
        """Next action of a shopper in a catalogue of makers: it buys of the maker that a note names, or of any."""
        query = self.catalogue.products[self.catalogue.numbers[state.goal.asin]].query
        (attribute,) = state.goal.attributes
        told, ruled_out = makers_catalogue.told_makers([note.text for note in moment.lessons], attribute)
        if state.page == "search":
            thought = f"for {attribute} buy {told}" if told else ""
            return Answer(thought, f"search[ {told} {query} ]" if told else f"search[ {query} ]")
        if state.page == "hits":
            hits = [self.catalogue.products[number] for number in state.hits[state.number * PER_PAGE :][:PER_PAGE]]
            makers = {each.title.split()[0]: each.asin for each in hits if each.query == query}
            left = [maker for maker in makers if maker not in ruled_out] or [*makers]
            maker = told if told in makers else left[seed_of(extend(key, "guess")) % len(left)]
            return Answer("", _click(makers[maker]))
        left = [value for value in state.goal.options if value not in dict(state.chosen).values()]
        return Answer("", _click(left[0] if left else BUY))

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` episodes, in another made catalogue, or for products that are used for cloning alone.

        They show a shopper that knows what the instruction and the pages say; the oracle would teach to guess titles.
        A drill is the turn that a note about a maker decides.

        Raises:
            ConfigError: drills are requested of a catalogue without such notes.
        """
        shop = self._another(extend(key, "another"))
        if self.catalogue.by_goal:
            shown = [turn for index in range(episodes) for turn in shop._customer(extend(key, "customer", index), TOLD)]
            return shown + [shop._customer(extend(key, "drill", index), 1.0)[CHOICE] for index in range(drills)]
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        tasks = shop_tasks.sample(shop.catalogue, self._config.steps, episodes, key, "fresh")
        return [turn for task in tasks for turn in expert_turns(shop, task, key, advise=shop.shopper)]

    def _customer(self, draw: Key, told: float) -> list[Demonstration]:
        """Turns of an episode in a catalogue of makers, with a note about the wish in a share of all."""
        rng = generator(draw)
        (task,) = shop_tasks.sample(self.catalogue, self._config.steps, 1, draw, "train")
        right, warnings = self._notes(task)
        note = warnings[rng.integers(len(warnings))] if rng.random() < WARNED else right
        lessons = (note,) if rng.random() < told else ()
        return expert_turns(self, task, extend(draw, "expert"), lessons, self.customer)

    def _notes(self, task: Task) -> tuple[str, tuple[str, ...]]:
        (attribute,) = task.data["attributes"]
        return makers_catalogue.notes(self.catalogue, task.scope, attribute)

    def _another(self, draw: Key) -> "WebShop":
        """A shop with another made catalogue, which shows the same words; itself for WebShop's files."""
        size, steps, kind = min(self._config.products, MAX_SHOWN), self._config.steps, self._config.catalogue
        return self if self._config.path else WebShop(size, seed_of(draw) >> 1, steps=steps, catalogue=kind)

    def probe(self, size: int, key: Key) -> Probe:
        """Goals that are neither trained nor evaluated; in a catalogue of makers with true and with false notes."""
        draw = extend(key, "probe")
        tasks = tuple(shop_tasks.sample(self.catalogue, self._config.steps, size, draw, "fresh"))
        if not self.catalogue.by_goal:
            return Probe(tasks, ((),) * size, ())
        told = [self._notes(task) for task in tasks]
        # A warning about the wrong maker, turned into advice, is a false note.
        false = tuple((warnings[0].replace(makers_catalogue.WARNING, makers_catalogue.ADVICE),) for _, warnings in told)
        return Probe(tasks, tuple((right,) for right, _ in told), false)


def _made(config: WebShopConfig) -> ShopCatalogue:
    if config.catalogue == "families":
        return made(config.products, config.seed)
    if config.products > makers_catalogue.MAX_PRODUCTS or config.products % makers_catalogue.MAKERS_PER_KIND:
        most = f"a multiple of {makers_catalogue.MAKERS_PER_KIND}, {makers_catalogue.MAX_PRODUCTS} at most"
        raise ConfigError(f"env.products={config.products}: a catalogue of makers has {most}")
    return makers_catalogue.of_makers(config.products, config.seed)


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

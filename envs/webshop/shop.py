"""The shop: its pages, and pure transitions between them, after WebShop's text pages."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from coevo.envs.base import Step
from coevo.envs.webshop.makers_catalogue import note
from coevo.envs.webshop.purchase import Nouns, Purchase, ShopGoal, missed, purchase
from coevo.envs.webshop.shop_products import Product, ShopCatalogue

PER_PAGE, MAX_HITS = 10, 50
MAX_ACTION_CHARS = 2_000
BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
ShopPage = Literal["search", "hits", "product", "Description", "Features", "Reviews"]
SUBPAGES: tuple[ShopPage, ...] = ("Description", "Features", "Reviews")
NOT_HERE = "nothing to click has that name here"
UNREADABLE = "an action is search[words] or click[text on the page]"
NO_SEARCH = "no search on this page"
SEPARATOR = " [SEP]\n"
"""Between fields. A prompt leaves ``[SEP]`` out, a control token of common tokenizers; the line ends stay."""
FIXED = (
    NOT_HERE, UNREADABLE, NO_SEARCH, "WebShop Search [SEP] Thank you Price: Rating: N.A. no reviews back to the search",
    "shows products product description features reviews chose bought all as wished too expensive another kind",
)  # fmt: skip
"""Texts of pages and answers that no product has."""
_ACTION = re.compile(r"\s*(search|click)\s*\[(.*)\]\s*", re.DOTALL | re.IGNORECASE)


class ShopState(NamedTuple):
    """A point of an episode.

    Attributes:
        goal: the wish.
        limit: actions after which the episode is cut.
        steps: actions so far.
        page: kind of page.
        query: words of the last search.
        hits: numbers of the products found, best first.
        number: page of hits, from 0.
        product: number of the opened product, -1 for none.
        chosen: option values by name, in the order of choice.
    """

    goal: ShopGoal
    limit: int
    steps: int = 0
    page: ShopPage = "search"
    query: str = ""
    hits: tuple[int, ...] = ()
    number: int = 0
    product: int = -1
    chosen: tuple[tuple[str, str], ...] = ()


class Shop:
    """A catalogue with its rules.

    Args:
        catalogue: products.
        nouns: nouns of a title.
    """

    def __init__(self, catalogue: ShopCatalogue, nouns: Nouns) -> None:
        self._catalogue, self._nouns = catalogue, nouns

    def text(self, state: ShopState) -> str:
        """Page of a state; its fields are separated by ``[SEP]``."""
        return SEPARATOR.join(self._fields(state))

    def advance(self, state: ShopState, action: str) -> Step[ShopState]:
        """Take one action; one that the page does not offer changes nothing but costs a step."""
        found = _ACTION.fullmatch(action) if len(action) <= MAX_ACTION_CHARS else None
        state = state._replace(steps=state.steps + 1)
        if found is None:
            return self._step(state, UNREADABLE, valid=False)
        verb, text = found[1].lower(), " ".join(found[2].split())
        if verb == "search":
            return self._search(state, text)
        wanted = text.lower()
        if wanted == BUY.lower() and state.page == "product":
            return self._bought(state)
        after = self._clicked(state, wanted)
        return self._step(state, NOT_HERE, valid=False) if after is None else self._step(after, _outcome(after))

    def _search(self, state: ShopState, query: str) -> Step[ShopState]:
        if state.page != "search" or not query:
            return self._step(state, NO_SEARCH if query else UNREADABLE, valid=False)
        hits = self._catalogue.index.search(query, MAX_HITS)
        after = state._replace(page="hits", query=query, hits=hits, number=0)
        return self._step(after, f"found {len(hits)} products")

    def _clicked(self, state: ShopState, wanted: str) -> ShopState | None:
        """State after a click that buys nothing; None if the page does not offer it."""
        if wanted == BACK.lower() and state.page != "search":
            return ShopState(state.goal, state.limit, state.steps)
        if state.page == "hits":
            return self._clicked_hit(state, wanted)
        if state.page == "product":
            return self._clicked_product(state, wanted)
        return state._replace(page="product") if wanted == PREVIOUS.lower() and state.page in SUBPAGES else None

    def _clicked_hit(self, state: ShopState, wanted: str) -> ShopState | None:
        move = {NEXT.lower(): 1, PREVIOUS.lower(): -1}.get(wanted, 0)
        if move:
            number = state.number + move
            return state._replace(number=number) if 0 <= number < _pages(state) else None
        number = self._catalogue.numbers.get(wanted.upper(), -1)
        shown = state.hits[state.number * PER_PAGE : (state.number + 1) * PER_PAGE]
        return state._replace(page="product", product=number, chosen=()) if number in shown else None

    def _clicked_product(self, state: ShopState, wanted: str) -> ShopState | None:
        if wanted == PREVIOUS.lower():
            return state._replace(page="hits", product=-1, chosen=())
        subpage = next((name for name in SUBPAGES if name.lower() == wanted), None)
        if subpage is not None:
            return state._replace(page=subpage)
        options, chosen = self._opened(state).options, dict(state.chosen)
        names = [name for name, values in options.items() if wanted in values]
        if not names:
            return None
        # A value that two options have goes to the first that does not have it yet.
        name = next((each for each in names if chosen.get(each) != wanted), names[0])
        return state._replace(chosen=tuple((chosen | {name: wanted}).items()))

    def _bought(self, state: ShopState) -> Step[ShopState]:
        wanted = self._catalogue.products[self._catalogue.numbers[state.goal.asin]]
        found = purchase(self._opened(state), dict(state.chosen).values(), wanted, state.goal, self._nouns)
        feedback = self._told(state, found)
        scores = (("score", 100 * found.reward),)
        return Step(state, "Thank you", feedback, found.reward, True, found.reward == 1.0, scores=scores)

    def _told(self, state: ShopState, found: Purchase) -> str:
        """Feedback of a purchase: what it lacks, and in a catalogue of makers what it says of the maker."""
        lacking, maker = missed(state.goal, found), self._catalogue.by_goal and found.kind == 1
        if maker:
            seen = [each for each in lacking if not each.startswith("without")]
            return " , ".join((*seen, *(note(self._opened(state), each) for each in state.goal.attributes)))
        return " , ".join(("bought", *lacking)) if lacking else "bought , all as wished"

    def _step(self, state: ShopState, feedback: str, valid: bool = True) -> Step[ShopState]:
        over = state.steps >= state.limit
        scores = (("score", 0.0),) if over else ()
        return Step(state, self.text(state), feedback, 0.0, over, False, valid, over, scores=scores)

    def _opened(self, state: ShopState) -> Product:
        return self._catalogue.products[state.product]

    def _fields(self, state: ShopState) -> list[str]:
        if state.page == "search":
            return ["WebShop", "Search"]
        if state.page == "hits":
            return self._hit_fields(state)
        product = self._opened(state)
        if state.page == "product":
            return [BACK, PREVIOUS, *_product_fields(product, dict(state.chosen))]
        texts: Mapping[str, tuple[str, ...]] = {
            "Description": (product.description,), "Features": product.bullets, "Reviews": ("no reviews",),
        }  # fmt: skip
        return [BACK, PREVIOUS, *texts[state.page]]

    def _hit_fields(self, state: ShopState) -> list[str]:
        fields = [BACK, f"Page {state.number + 1} (Total results: {len(state.hits)})"]
        fields += [PREVIOUS] * (state.number > 0) + [NEXT] * (state.number + 1 < _pages(state))
        for number in state.hits[state.number * PER_PAGE : (state.number + 1) * PER_PAGE]:
            product = self._catalogue.products[number]
            fields += (product.asin, product.title, product.price_text)
        return fields


def _pages(state: ShopState) -> int:
    return -(-len(state.hits) // PER_PAGE)


def _product_fields(product: Product, chosen: Mapping[str, str]) -> list[str]:
    fields = list[str]()
    for name, values in product.options.items():
        fields += (f"{name} ({chosen[name]})" if name in chosen else name, *values)
    return [*fields, product.title, f"Price: {product.price_text}", "Rating: N.A.", *SUBPAGES, BUY]


def _outcome(state: ShopState) -> str:
    if state.page == "product" and state.chosen:
        return f"chose {' , '.join(value for _, value in state.chosen)}"
    return {"search": "back to the search", "hits": "shows products"}.get(state.page, f"shows {state.page.lower()}")

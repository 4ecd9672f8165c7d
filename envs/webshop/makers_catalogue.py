"""A small catalogue made from a seed, whose products differ by what only a purchase or the page of features tells.

Each kind of product comes from three makers, at one price and with the same colours. A wish asks for one of three
attributes, and which maker has it differs from catalogue to catalogue: nothing in a title or a search says so. An
episode is too short to look at all three. The feedback of a purchase says it, so that a note from one task holds for
every later one of the kind.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from coevo.envs.webshop.made_catalogue import MAKERS, OPTION_COLOURS
from coevo.envs.webshop.shop_products import Product, ShopCatalogue, Wish
from coevo.records.draws import generator, key

KINDS: Mapping[str, tuple[str, str, str]] = {
    "jacket": ("waterproof", "windproof", "lined"),
    "mug": ("insulated", "stackable", "unbreakable"),
    "lamp": ("dimmable", "rechargeable", "foldable"),
    "rug": ("woven", "washable", "reversible"),
    "chair": ("padded", "swivelling", "armless"),
    "shelf": ("floating", "modular", "bracketed"),
    "cream": ("unscented", "moisturizing", "soothing"),
    "soap": ("liquid", "handmade", "exfoliating"),
    "cable": ("braided", "shielded", "magnetic"),
    "charger": ("wireless", "compact", "multiport"),
    "tea": ("decaffeinated", "organic", "smoked"),
    "bar": ("crunchy", "vegan", "sugarless"),
    "belt": ("elastic", "studded", "buckleless"),
    "hat": ("knitted", "brimmed", "quilted"),
    "bottle": ("leakproof", "collapsible", "filtering"),
    "bag": ("rolling", "padlocked", "expandable"),
}
"""Kinds of products, each with its attributes; an attribute belongs to one kind."""
NAMES = tuple(name for name in MAKERS if " " not in name)
"""Makers of one word."""
COLOURS = 6
"""Colours of a product."""
PRICE = range(10, 90, 10)
"""Dollars that a kind costs, without its half dollar."""
ADVICE, WARNING = "buy ", "buy not "
"""Words before the maker in a note that names him, and in one that rules him out."""
MAKERS_PER_KIND = 3
"""Products of a kind."""
MAX_PRODUCTS = MAKERS_PER_KIND * len(KINDS)
"""Products of a catalogue of all kinds."""


@lru_cache(maxsize=64)
def of_makers(size: int, seed: int) -> ShopCatalogue:
    """Catalogue of the first ``size`` products, three of a kind; which maker has which attribute is drawn."""
    products = [product for number in range(len(KINDS)) for product in _kind(number, seed)]
    return ShopCatalogue(f"makers/{size}/{seed}", products[:size], by_goal=True)


def words() -> set[str]:
    """Every word of the products, wishes and notes of all these catalogues."""
    kinds = [*KINDS, *(f"{kind}s" for kind in KINDS)]
    said = [*kinds, *(each for attributes in KINDS.values() for each in attributes), *NAMES, *OPTION_COLOURS]
    said += [*(f"({colour})" for colour in OPTION_COLOURS), *(f"${dollars}.50" for dollars in PRICE)]
    said += [_asin(number) for number in range(MAX_PRODUCTS)] + [
        f"{limit}.00" for limit in range(0, PRICE.stop + 50, 10)
    ]
    said.append("a and by it is find me , with color: color price lower than dollars for buy not guess")
    return {*" ".join(said).split()}


def note(product: Product, attribute: str) -> str:
    """Rule for the next purchase that the purchase of a product gives."""
    maker = product.title.split()[0]
    return f"for {attribute} {ADVICE if attribute in product.attributes else WARNING}{maker}"


def notes(catalogue: ShopCatalogue, query: str, attribute: str) -> tuple[str, tuple[str, ...]]:
    """The note that names the maker of a kind with an attribute, and those that rule out the others."""
    told = [f"{query} {note(each, attribute)}" for each in catalogue.products if each.query == query]
    (right,) = (text for text in told if WARNING not in text)
    return right, tuple(text for text in told if WARNING in text)


def told_makers(lessons: Sequence[str], attribute: str) -> tuple[str | None, frozenset[str]]:
    """Maker that notes name for an attribute, or None, and the makers that they rule out."""
    found = [lesson.partition(f" for {attribute} {ADVICE}")[2].split() for lesson in lessons]
    named = next((words[0] for words in found if len(words) == 1), None)
    return named, frozenset(words[1] for words in found if len(words) == 2 and words[0] == "not")


def _kind(number: int, seed: int) -> list[Product]:
    rng = generator(key("webshop", "makers", seed, number))
    kind, attributes = list(KINDS.items())[number]
    makers = [NAMES[index] for index in rng.permutation(len(NAMES))[:MAKERS_PER_KIND]]
    order = [attributes[index] for index in rng.permutation(len(attributes))]
    colours = tuple(OPTION_COLOURS[index] for index in rng.permutation(len(OPTION_COLOURS))[:COLOURS])
    price = PRICE[rng.integers(len(PRICE))] + 0.5
    return [
        Product(
            asin=_asin(number * MAKERS_PER_KIND + place),
            title=f"{maker} {kind}",
            category=f"{kind}s",
            query=f"{kind}s",
            path=("Shop", f"{kind}s"),
            price=price,
            price_text=f"${price:.2f}",
            attributes=(attribute,),
            options={"color": colours},
            description=f"a {kind} by {maker}",
            bullets=(f"a {kind} by {maker}", f"it is {attribute}"),
            wishes=(Wish(f"find me {attribute} {kind}s ,", (attribute,)),),
        )
        for place, (maker, attribute) in enumerate(zip(makers, order, strict=True))
    ]


def _asin(number: int) -> str:
    return f"B{number:09d}"

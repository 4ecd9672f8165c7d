"""Goals, and the reward of a purchase, after WebShop (Yao et al. 2022, section 3 and appendix).

reward = (attributes + options + price) / (all attributes + all options + 1) * type
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from rapidfuzz.fuzz import token_set_ratio
from rapidfuzz.utils import default_process

from coevo.envs.search_index import STOP_WORDS
from coevo.envs.webshop.shop_products import Product
from coevo.utilities.errors import CoevoError

SAME_RATIO = 85.0
"""Token-set ratio above which two texts count as the same."""
NO_LIMIT = 1_000_000.0
"""Upper price where a goal names none."""
SPACY_MODEL = "en_core_web_lg"
_WORD = re.compile(r"[^\W_]+")
UNITS = frozenset(
    _WORD.findall("cm mm m ft feet foot in inch inches oz ounce ounces lb lbs g kg mg ml l fl pack pcs pc count w v")
)
COLOURS = tuple(
    _WORD.findall(
        "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy "
        "camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral "
        "cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass "
        "gray green grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon "
        "mauve merlot midnight mint mocha multicolor mushroom mustard natural navy nude olive orange peach pewter "
        "pink plum purple rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone "
        "stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow"
    )
)
"""Words that stand for a colour, in the order in which WebShop looks for them."""


class ShopGoal(NamedTuple):
    """A wish: the product it was made for, attributes, option values, and the most that it may cost."""

    asin: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float


class Purchase(NamedTuple):
    """Parts of a goal that a purchase fulfils.

    Attributes:
        reward: 0 to 1.
        attributes: the goal's attributes that the product has.
        options: the goal's options that were chosen.
        cheap: True if the price is within the limit.
        kind: factor for the kind of product: 1, 0.5, 0.1 or 0.
    """

    reward: float
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    cheap: bool
    kind: float


Nouns = Callable[[str], frozenset[str]]


def purchase(bought: Product, chosen: Iterable[str], wanted: Product, goal: ShopGoal, nouns: Nouns) -> Purchase:
    """Result of buying a product with these option values.

    Args:
        bought: the product that is bought.
        chosen: chosen values of its options.
        wanted: the product that the goal was made for.
        goal: the wish.
        nouns: nouns of a title, ``noun_rule``.
    """
    attributes = tuple(each for each in goal.attributes if has_attribute(bought, each))
    values = [colour_of(value) for value in chosen]
    options = tuple(each for each in goal.options if any(same(value, colour_of(each)) for value in values))
    cheap, kind = bought.price <= goal.price_upper, kind_reward(bought, wanted, nouns)
    most = len(goal.attributes) + len(goal.options) + 1
    return Purchase((len(attributes) + len(options) + cheap) / most * kind, attributes, options, cheap, kind)


def has_attribute(product: Product, attribute: str) -> bool:
    """True if an attribute is among the product's, or in its title, features or description."""
    if any(same(known, attribute) for known in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def kind_reward(bought: Product, wanted: Product, nouns: Nouns) -> float:
    """1 for a product of the same kind, 0.5 otherwise; 0.1 and 0 if the titles share hardly a noun or none."""
    desired = nouns(wanted.title)
    shared = len(desired & nouns(bought.title)) / len(desired) if desired else 0.2
    if shared < 0.1:
        return 0.1 if shared else 0.0
    related = bought.query == wanted.query or len({*bought.path} & {*wanted.path}) >= 2
    return 1.0 if related or shared > 0.2 else 0.5


@lru_cache(maxsize=2**16)
def same(one: str, other: str) -> bool:
    """True if two texts have nearly the same words."""
    return token_set_ratio(one, other, processor=default_process) > SAME_RATIO


def colour_of(value: str) -> str:
    """The colour in a value, or the value itself."""
    return next((colour for colour in COLOURS if colour in value), value)


@lru_cache(maxsize=2**17)
def title_words(title: str) -> frozenset[str]:
    """Words of a title that are no stop words, numbers or units: they stand for its nouns where no parser is."""
    found = (word.lower() for word in _WORD.findall(title))
    return frozenset(word for word in found if not any(map(str.isdigit, word)) and word not in STOP_WORDS | UNITS)


def noun_rule(rule: str) -> Nouns:
    """Nouns of a title by a rule: ``words``, or ``spacy`` as in WebShop.

    Raises:
        CoevoError: spaCy or its model is not installed.
    """
    if rule == "words":
        return title_words
    if find_spec("spacy") is None or find_spec(SPACY_MODEL) is None:
        raise CoevoError(f"env.nouns=spacy: spaCy's model {SPACY_MODEL} is not installed: install it, or take words")
    import spacy

    return _parsed(spacy.load(SPACY_MODEL))


def _parsed(model: Any) -> Nouns:
    @lru_cache(maxsize=2**17)
    def nouns(title: str) -> frozenset[str]:
        return frozenset(token.text.lower() for token in model(title) if token.pos_ in ("NOUN", "PROPN", "PNOUN"))

    return nouns


def missed(goal: ShopGoal, found: Purchase) -> Sequence[str]:
    """Parts of a goal that a purchase lacks, in words."""
    lacking = [f"without {each}" for each in goal.attributes if each not in found.attributes]
    lacking += [f"not {each}" for each in goal.options if each not in found.options]
    return [*lacking, *(() if found.cheap else ("too expensive",)), *_KINDS.get(found.kind, ())]


_KINDS: Mapping[float, tuple[str, ...]] = {0.5: ("another kind",), 0.1: ("another kind",), 0.0: ("another kind",)}

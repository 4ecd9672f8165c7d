"""A catalogue made from a seed, for shops without WebShop's files: families of products that are nearly the same.

The products of a family have the same title. They differ in an attribute, which only the page of features shows, in
their options and in the price: who buys the first hit of a search is mostly wrong.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from coevo.envs.webshop.shop_products import Product, ShopCatalogue, Wish
from coevo.records.draws import generator, key

ALIKE, OPTIONS, COSTS = 3, 2, 2
"""Attributes of which each product of a family has one, sets of options, and prices: a family has each combination."""
FAMILY = ALIKE * OPTIONS * COSTS
"""Products of a family."""
NAMED, HIDDEN = 2, 2
"""Attributes that the title of a family names, and further ones that only the page of features shows."""
PRICES = (10, 90)
"""Dollars that the cheaper products cost, the second excluded, without their half dollar."""
DEARER = 50.0
"""Dollars that the dearer product of a family costs more: above the limit of every wish for the others."""


class Department(NamedTuple):
    """Kinds of products that share attributes and sizes."""

    name: str
    path: str
    kinds: tuple[str, ...]
    attributes: tuple[str, ...]
    sizes: tuple[str, ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


DEPARTMENTS = (
    Department(
        "garden", "Home › Furniture",
        _list("desk lamp, book case, arm chair, side table, bed frame, floor rug, wall shelf, coat rack"),
        _list("easy assemble, solid wood, metal legs, space saving, height adjustable, non slip, heavy duty, "
              "water proof, high density, eco friendly, scratch resistant, soft touch"),
        _list("narrow, medium, wide, extra wide"),
    ),
    Department(
        "fashion", "Clothing › Everyday Wear",
        _list("rain jacket, wool sweater, linen shirt, running shoe, leather belt, winter hat, sock set, summer dress"),
        _list("machine wash, long sleeve, short sleeve, loose fit, slim fit, elastic waist, hand wash, rubber sole, "
              "tumble dry, quick drying, fleece lined, arch support"),
        _list("small, medium, large, x-large"),
    ),
    Department(
        "beauty", "Beauty › Care",
        _list("hair mask, face cream, body wash, lip balm, hand soap, nail polish, eye serum, sun lotion"),
        _list("cruelty free, paraben free, sulfate free, fragrance free, alcohol free, long lasting, dry skin, "
              "sensitive skin, tea tree, coconut oil, argan oil, travel size"),
        _list("50 ml, 100 ml, 250 ml, 500 ml"),
    ),
    Department(
        "electronics", "Electronics › Accessories",
        _list("phone case, usb cable, car charger, wall mount, head set, key board, web camera, power bank"),
        _list("fast charging, wireless charging, high speed, gold plated, noise cancelling, tempered glass, plug play, "
              "hands free, ultra thin, carbon fiber, dual band, shock proof"),
        _list("1 meter, 2 meter, 3 meter, 5 meter"),
    ),
    Department(
        "grocery", "Grocery › Pantry",
        _list("green tea, olive oil, trail mix, rice cracker, fruit jam, dark chocolate, oat bar, tomato soup"),
        _list("gluten free, sugar free, dairy free, nut free, non gmo, low sodium, high protein, low carb, "
              "plant based, fair trade, individually wrapped, artificial colors"),
        _list("single, pack of 2, pack of 6, pack of 12"),
    ),
)  # fmt: skip
OPTION_COLOURS = _list("black, white, red, blue, green, yellow, pink, purple, brown, grey")
MAKERS = _list(
    "Alvero, Bentik, Corvia, Dremel Row, Elstad, Fennory, Galdur, Hovik, Istrana, Jorvane, Kelmor, Lundby, Marsten, "
    "Norvel, Orsana, Pellow, Quillan, Rostad, Selwick, Tarnby, Ulvane, Verdano, Westrik, Yarrow"
)
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@lru_cache(maxsize=4)
def made(size: int, seed: int) -> ShopCatalogue:
    """Catalogue of ``size`` products; each is a function of seed, size and its number."""
    rng = generator(key("webshop", "made", size, seed))
    families = -(-size // FAMILY)
    products = [product for number in range(families) for product in _family(number, seed, rng)]
    return ShopCatalogue(f"made/{size}/{seed}", products[:size])


def words(size: int) -> set[str]:
    """Every word of the products and wishes of all catalogues of this size, whatever their seed."""
    families = range(-(-size // FAMILY))
    said = [_asin(number) for number in range(len(families) * FAMILY)]
    said += [text.lower() for text in said] + [_model(number) for number in families]
    for department in DEPARTMENTS:
        said += (*department.kinds, *(f"{kind}s" for kind in department.kinds), *department.attributes)
        said += (word for value in department.sizes for word in (value, f"({value})"))
    said += (word for colour in OPTION_COLOURS for word in (colour, f"({colour})"))
    prices = [PRICES[0] + 0.5 + dollars for dollars in range(PRICES[1] - PRICES[0] + int(DEARER))]
    said += (f"${price:.2f}" for price in prices)
    said += (f"{limit:.2f}" for limit in range(0, PRICES[1] + int(DEARER) + 50, 10))
    return {
        *" ".join(
            (*said, *MAKERS, "a by and it is find me , with color: size: color size price lower than dollars")
        ).split()
    }


def _asin(number: int) -> str:
    return f"B{number:09d}"


def _family(number: int, seed: int, rng: np.random.Generator) -> Iterator[Product]:
    department = DEPARTMENTS[rng.integers(len(DEPARTMENTS))]
    kind = department.kinds[rng.integers(len(department.kinds))]
    attributes = _some(department.attributes, NAMED + HIDDEN + ALIKE, rng)
    named, hidden, alike = attributes[:NAMED], attributes[NAMED:-ALIKE], attributes[-ALIKE:]
    colours, sizes = _some(OPTION_COLOURS, 4, rng), _some(department.sizes, 3, rng)
    maker = f"{MAKERS[rng.integers(len(MAKERS))]} {_model(number)}"
    price = float(rng.integers(*PRICES)) + 0.5
    order = rng.permutation(FAMILY)
    for member in range(FAMILY):
        others, which = divmod(int(order[member]), ALIKE)
        dearer, shift = divmod(others, OPTIONS)
        kept = (*hidden, alike[which])
        options = {"color": tuple(colours[shift : shift + 3]), "size": tuple(sizes[shift : shift + 2])}
        wanted = (named[rng.integers(NAMED)], hidden[rng.integers(HIDDEN)], alike[which])
        cost = price + DEARER * dearer
        yield Product(
            asin=_asin(number * FAMILY + member),
            title=f"{maker} {kind} {' '.join(named)}",
            category=department.name,
            query=f"{kind}s",
            path=(*department.path.split(" › "), f"{kind}s"),
            price=cost,
            price_text=f"${cost:.2f}",
            attributes=(*named, *kept),
            options=options,
            description=f"a {kind} by {maker}",
            bullets=(f"{' and '.join(named)}", *(f"it is {each}" for each in kept)),
            wishes=(Wish(f"find me {kind}s , {' , '.join(wanted)} ,", wanted),),
        )


def _some(choices: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    return [choices[index] for index in rng.permutation(len(choices))[:count]]


def _model(number: int) -> str:
    """Model that no other family has, such as ``KD27``."""
    rest, digits = divmod(number, 100)
    letters = _LETTERS[rest % len(_LETTERS)]
    while rest := rest // len(_LETTERS):
        letters = _LETTERS[rest % len(_LETTERS)] + letters
    return f"{letters}{digits:02d}"

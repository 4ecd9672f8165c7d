"""Products of a shop, and the files of WebShop (princeton-nlp/WebShop) that hold them.

All texts come from shops: they are data, bounded and never executed.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from coevo.envs.search_index import SearchIndex
from coevo.records.draws import generator, key
from coevo.utilities.errors import CoevoError

MAX_TEXT_CHARS = 20_000
"""Most characters of a text of a product."""
NO_PRICE = 100.0
"""Price of a product without one."""


class Wish(NamedTuple):
    """A shopper's wish for a product.

    Attributes:
        text: the wish in words, without options and price.
        attributes: attributes that it asks for, at least one.
        options: option values that it asks for; None if every combination of the product's options is a goal.
    """

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] | None = None


class Product(NamedTuple):
    """A product.

    Attributes:
        asin: its number, in upper case.
        title: its name.
        category: department, as ``beauty``.
        query: kind of product, as ``console tables``.
        path: categories from general to special.
        price: in dollars.
        price_text: price as pages show it.
        attributes: what it is known to have, in lower case.
        options: values by the name of the option.
        description: text of the page ``Description``.
        bullets: lines of the page ``Features``.
        wishes: wishes that were written for it.
    """

    asin: str
    title: str
    category: str
    query: str
    path: tuple[str, ...]
    price: float
    price_text: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    description: str
    bullets: tuple[str, ...]
    wishes: tuple[Wish, ...] = ()

    @property
    def text(self) -> str:
        """Text that is searched: title, description, the first of its features, options."""
        options = (f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join((self.title, self.description, *self.bullets[:1], *options))


class ShopCatalogue:
    """All products of a shop.

    Attributes:
        name: identity, part of every task; for files it holds their hash.
        products: in a fixed order.
        by_goal: True if every product is for training and for panels, which then differ in the wished options.
    """

    def __init__(self, name: str, products: Sequence[Product], by_goal: bool = False) -> None:
        self.name, self.products, self.by_goal = name, tuple(products), by_goal

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number of each product by its ``asin``."""
        return {product.asin: number for number, product in enumerate(self.products)}

    @cached_property
    def index(self) -> SearchIndex:
        """Search in all products."""
        return SearchIndex(product.text for product in self.products)


def load(folder: Path) -> ShopCatalogue:
    """Catalogue of a folder with WebShop's files.

    Products are ``items_shuffle*.json`` (a list), or ``products*.jsonl`` with the fields that WebShop's loader makes.
    ``items_ins_v2*.json`` has their attributes, and a wish for some; if there is an ``items_human_ins*.json``, the
    wishes are those that people wrote, as in WebShop's benchmark.

    Raises:
        CoevoError: a file is missing, or is not in this format.
    """
    products, told = _one(folder, "items_shuffle*.json", "products*.jsonl"), _one(folder, "items_ins_v2*.json")
    people = sorted(folder.glob("items_human_ins*.json"))[:1]
    texts = [path.read_bytes() for path in (products, told, *people)]
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]
    try:
        notes, written = json.loads(texts[1]), json.loads(texts[2]) if people else None
        made = (_product(row, notes, written) for row in _rows(texts[0], products))
        found = {each.asin: each for each in made}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise CoevoError(f"env.path={folder}: {products.name} or {told.name} is no file of WebShop: {reason}") from None
    if not found:
        raise CoevoError(f"env.path={folder}: {products.name} has no product")
    return ShopCatalogue(f"webshop/{digest}", list(found.values()))


def _one(folder: Path, *patterns: str) -> Path:
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    if not found:
        raise CoevoError(f"env.path={folder}: it has no {' or '.join(patterns)}: name the folder of WebShop's data")
    return found[0]


def _rows(text: bytes, path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".json":
        yield from json.loads(text)
        return
    for line in text.splitlines():
        if line.strip():
            row = json.loads(line)
            yield row.get("product", row)


def _product(row: Mapping[str, Any], told: Mapping[str, Any], written: Mapping[str, Any] | None) -> Product:
    """Product of a row: fields as in WebShop's files, or as its loader names them."""
    asin = str(row["asin"]).upper()
    known = told.get(str(row["asin"]), {})
    title, prices = _text(row["name"]), _prices(row.get("pricing"))
    # WebShop draws a price within a range anew at each start; here it belongs to the product.
    between = generator(key("webshop", "price", asin)).uniform(prices[0], prices[-1])
    return Product(
        asin=asin,
        title=title,
        category=_text(row["category"]),
        query=_text(row["query"]).lower().strip(),
        path=tuple(part.strip() for part in _text(row["product_category"]).split("›")),
        price=prices[0] if len(prices) == 1 else round(float(between), 2),
        price_text=" to ".join(f"${price}" for price in prices),
        attributes=tuple(map(_text, known.get("attributes") or row.get("Attributes") or ())),
        options=_options(row),
        description=_text(row.get("Description") or row.get("full_description") or ""),
        bullets=tuple(map(_text, _bullets(row))),
        wishes=tuple(_wishes([known] if written is None else written.get(str(row["asin"]), ()), written is not None)),
    )


def _wishes(rows: Iterable[Mapping[str, Any]], written: bool) -> Iterator[Wish]:
    """Wishes with an attribute at least; those that people wrote name their options."""
    for row in rows:
        text, attributes = _text(row.get("instruction") or "").strip(". "), row.get("instruction_attributes") or ()
        options = row.get("instruction_options") or ()
        values = options.values() if isinstance(options, Mapping) else options
        if text and attributes:
            yield Wish(text, tuple(map(_text, attributes)), tuple(map(_value, values)) if written else None)


def _bullets(row: Mapping[str, Any]) -> Sequence[Any]:
    found = row.get("BulletPoints") or row.get("small_description") or ()
    return [found] if isinstance(found, str) else found


def _options(row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Values by name, in lower case; of a raw file, ``customization_options`` holds them."""
    if "options" in row:
        return {_text(name).lower(): tuple(_value(each) for each in values) for name, values in row["options"].items()}
    raw = row.get("customization_options") or {}
    named = {name: [each["value"] for each in values or () if each.get("value")] for name, values in raw.items()}
    return {_text(name).lower(): tuple(map(_value, values)) for name, values in named.items() if values}


def _value(value: Any) -> str:
    return _text(value).strip().replace("/", " | ").lower()


def _prices(pricing: Any) -> list[float]:
    """One price, or the ends of a range; a raw file writes them as ``$19.99$27.99``."""
    parts = [part.replace(",", "") for part in pricing.split("$")[1:]] if isinstance(pricing, str) else pricing
    return [float(part) for part in (parts or ())][:2] or [NO_PRICE]


def _text(value: Any) -> str:
    """A text that a page can show."""
    return str(value).encode("utf-8", "replace").decode("utf-8")[:MAX_TEXT_CHARS]

"""Lists of choices: ``coevo recipes`` and ``coevo methods``.

Every section of the schema is a part, so new sections appear in the table of methods without a change here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.configs.base import Config
from coevo.configs.load.shipped_files import describe, names
from coevo.flows.console import output
from coevo.flows.console.options import JsonOption
from coevo.lineage.trust import extend_path

if TYPE_CHECKING:
    from coevo.configs.bank.bank_config import BankConfig
    from coevo.configs.rollout.rollout_config import RolloutConfig
    from coevo.configs.run_config import RunConfig

WIDTH = 100
"""Width of a table of methods, in characters."""


def recipes(
    papers: Annotated[
        bool, typer.Option("--papers", help="The rows of the papers' tables instead, each with its command.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the recipes for `coevo run`.

    `coevo run --env ENV --method METHOD --model MODEL` composes what no recipe names; --papers lists such commands.

    Example: coevo recipes
    """
    if papers:
        _show_papers(as_json)
    else:
        _show(_shipped("recipes"), as_json)


def methods(
    which: Annotated[
        list[str] | None,
        typer.Argument(metavar="[METHOD ...]", help="Methods, recipes or recipe files; by default all methods."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the parts of methods side by side.

    Each cell names a part and the settings that differ from its defaults. Methods have the values of their papers;
    docs/papers.md lists the values that a paper does not give. Recipes build on methods and set their own values.
    `evidence`: evidence that admits a lesson, replay or none. Without a name, parts of installed packages are listed
    below; --json leaves them out.

    Example: coevo methods coevo-rl gigpo homerules-coevo-rl
    """
    from coevo.configs.load.open_parts import installed_parts

    composed = {name: parts(_composed(name)) for name in which or names("methods")}
    if as_json:
        output.document([{**_named(name), "parts": found} for name, found in composed.items()])
        return
    for rows in side_by_side(composed, WIDTH):
        output.table(rows, tuple(rows[0]))
        output.line()
    for name in which or ():
        output.line(f"{name}: {_named(name)['description']}")
    for setting, name, reference in () if which else installed_parts():
        output.line(f"installed: {setting}.type={name} is {reference}")


def _composed(name: str) -> "RunConfig":
    from coevo.configs.load.load import load_method, load_recipe
    from coevo.configs.load.open_parts import open_parts

    if not _is_file(name):
        return load_recipe(name) if name in names("recipes") else load_method(name)
    config = load_recipe(name)
    extend_path(config)
    open_parts(config)
    return config


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _named(name: str) -> dict[str, Any]:
    if _is_file(name):
        return {"name": name, "description": "a recipe of your own"}
    return {"name": name, "description": describe("recipes" if name in names("recipes") else "methods", name)}


def _shipped(kind: str) -> list[dict[str, str]]:
    return [{"name": name, "description": describe(kind, name)} for name in names(kind)]


def _show(rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("name", "description"))


def _show_papers(as_json: bool) -> None:
    from coevo.configs.load.paper_tables import paper_rows

    rows = paper_rows()
    if as_json:
        output.document([asdict(row) | {"command": row.command if row.is_here else None} for row in rows])
        return
    above = None
    for row in rows:
        if (row.paper, row.table) != above:
            above = row.paper, row.table
            output.line(f"{row.paper}, {row.table}")
        output.line(f"  {row.pairing.env}, {row.name}: {row.command}")


COMMANDS = (recipes, methods)


NONE = "-"
"""Cell of a part that a method does not have."""
SCALE = {"optimizer", "deepspeed"}
"""Sections of the update that set its scale and do not identify a method."""


def parts(config: "RunConfig") -> dict[str, str]:
    """Text of each part by its name, in the order of the loop."""
    from coevo.configs.bank.bank_config import BankConfig
    from coevo.configs.update.update_config import UpdateConfig

    return {
        "context": _context(config),
        "group": f"{config.rollout.tasks} tasks x {config.rollout.group_size}",
        **_rollout(config.rollout),
        **_retrieval(config),
        "clusters": NONE if config.clusters is None else brief(config.clusters),
        **_sections(UpdateConfig, config.update, {"loss", *SCALE}),
        **_loss(config),
        **_pools(config.bank),
        **_sections(BankConfig, config.bank, {"retrieval"}),
        **_evidence(config.bank),
        "schedule": _schedule(config),
        "discovery": f"{config.evaluation.discovery} attempts" if config.evaluation.discovery else NONE,
    }


def brief(part: Config) -> str:
    """Format a part as its type and the settings that differ from their defaults."""
    kind = getattr(part, "type", None)
    return " ".join([*([kind] if kind else []), *_changed(part, {"type"})]) or "default"


def side_by_side(columns: Mapping[str, Mapping[str, str]], width: int) -> Iterator[list[dict[str, str]]]:
    """Yield tables with one row per part and one column per method, each with as many methods as fit a width.

    A table leaves out the parts that none of its methods has.
    """
    left = list(columns)
    while left:
        some = left[: _fitting(columns, left, width)]
        left = left[len(some) :]
        filled = [row for row in columns[some[0]] if any(columns[name][row] != NONE for name in some)]
        yield [{"part": row, **{name: columns[name][row] for name in some}} for row in filled]


def _fitting(columns: Mapping[str, Mapping[str, str]], names: Sequence[str], width: int) -> int:
    """Number of methods that fit; at least 1."""
    used, count = max(map(len, columns[names[0]])), 0
    for name in names:
        used += 2 + max(len(name), *(len(text) for text in columns[name].values()))
        if used > width:
            break
        count += 1
    return max(1, count)


def _changed(part: Config, said: set[str]) -> Iterator[str]:
    """Settings that differ from their defaults, except those shown elsewhere."""
    from coevo.configs.outside_part import OutsidePartConfig

    if isinstance(part, OutsidePartConfig):
        yield from (f"{name}={_plain(value)}" for name, value in part.options.items())
        said = said | {"options"}
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        if name not in said and value != field.get_default(call_default_factory=True):
            yield f"{name}={brief(value) if isinstance(value, Config) else _plain(value)}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _context(config: "RunConfig") -> str:
    context = config.context
    window = "all turns" if context.memory_length is None else f"m={context.memory_length}"
    told = " with states" if context.history == "states" else ""
    return f"{window}{told}, {context.placement}, {context.experience_tokens} tokens"


def _rollout(rollout: "RolloutConfig") -> dict[str, str]:
    sampling = rollout.sampling
    cut = f"{rollout.turns} per update, " if rollout.turns else ""
    drawn = [f"temperature {sampling.temperature:g}", *_changed(sampling, {"temperature"})]
    return {"turns": f"{cut}at most {rollout.max_turns}", "sampling": " ".join(drawn)}


def _retrieval(config: "RunConfig") -> dict[str, str]:
    from coevo.configs.bank.retrieval_config import RetrievalConfig

    if config.bank is None:
        return dict.fromkeys((f"retrieval{what}" for what in ("", ": when", ": from", ": who")), NONE)
    part = config.bank.retrieval
    gates = [f"{part.min_entries + 1} entries"] if part.min_entries else []
    gates += [f"{part.warmup} iterations"] if part.warmup else []
    when = {"both": "task and step"}.get(part.per, part.per)
    said = {"type", *RetrievalConfig.model_fields} - {"scoped"}
    return {
        "retrieval": " ".join([part.type, f"k={part.k}", *_changed(part, said)]),
        "retrieval: when": f"once per {when}" if part.per == "task" else f"at each {when}",
        "retrieval: from": ", ".join(gates) or "the start",
        "retrieval: who": "whole group" if part.share == 1 else f"{part.share:.0%} of a group",
    }


def _pools(bank: "BankConfig | None") -> dict[str, str]:
    """Key of the bank's pools, and the number of reference episodes per pool."""
    if bank is None:
        return dict.fromkeys(("pools", "references"), NONE)
    return {"pools": f"one per {bank.key}", "references": f"{bank.references} per pool" if bank.references else NONE}


def _evidence(bank: "BankConfig | None") -> dict[str, str]:
    """Evidence that admits a lesson."""
    if bank is None:
        return {"evidence": NONE}
    return {"evidence": bank.admission.type if bank.admission.unproven is None else "none"}


def _loss(config: "RunConfig") -> dict[str, str]:
    if config.update is None:
        return dict.fromkeys(("loss", "kl"), NONE)
    loss = config.update.loss
    shown = " ".join([loss.aggregation, *_changed(loss, {"aggregation", "kl", "kl_coefficient", "kl_in"})])
    kl = f"{loss.kl} {loss.kl_coefficient:g} in the {loss.kl_in}" if loss.kl_coefficient else NONE
    return {"loss": shown, "kl": kl}


def _sections(kind: type[Config], part: Config | None, without: set[str]) -> dict[str, str]:
    """Text of each section of a part, ``NONE`` for a section that the part or the method leaves out."""
    sections = [
        name
        for name, field in kind.model_fields.items()
        if name not in without and (field.default is None or isinstance(field.default, Config))
    ]
    found = {name: getattr(part, name, None) for name in sections}
    return {name: NONE if value is None else brief(value) for name, value in found.items()}


def _schedule(config: "RunConfig") -> str:
    if config.bank is None and config.update is None:
        return "nothing learns"
    if config.bank is None:
        return "no bank"
    often = f"bank every {config.bank.every}"
    return f"frozen policy, {often}" if config.update is None else f"{brief(config.schedule)}, {often}"

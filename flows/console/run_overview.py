"""A run in a page of text: what a dry run forecasts of it, and after its end success, entries and next steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coevo.configs.bank.admission_config import notice
from coevo.configs.outside_part import OutsidePartConfig, checked_options, outside_parts, summary
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.registry import find
from coevo.flows.console import output
from coevo.flows.console.options import workspace_option
from coevo.flows.history.history import headline_panel
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import waits
from coevo.lineage.workspace import RunPaths, Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.stats import Stats
from coevo.models.capacity.devices import GIB
from coevo.records.entry import Entry
from coevo.tasks.preflight.notices import notices

if TYPE_CHECKING:
    from coevo.tasks.preflight.forecast import Forecast
    from coevo.tasks.preflight.memory import Need

TURNS_PRINTED = 2
"""Number of turns of the rehearsal to print, all of one task."""
THINKING = {
    "unknown": "unknown; an answer has up to {} tokens",
    "none": "none; an answer has up to {} tokens",
    "off": "off; an answer has up to {} tokens",
    "on": "on; thinking and action together have up to {} tokens (rollout.sampling.max_new_tokens)",
    "left to the model": "left to the model; with its action it has up to {} tokens (rollout.sampling.max_new_tokens)",
}
MAX_OBSERVATION_CHARS = 100
"""Maximum characters of an observation to print."""


def dry_run_report(config: RunConfig, env: Environment[Any], found: "Forecast") -> dict[str, Any]:
    """Return the forecast as JSON values, with memory in GiB; ``total_seconds`` leaves out the ``untimed`` steps."""
    rehearsal, shape = found.rehearsal, found.shape
    return {
        "recipe": config.recipe,
        "digest": config.digest(),
        "iterations": config.iterations,
        "machine": str(found.machine),
        "ready": not found.problems,
        "problems": list(found.problems),
        "notice": None if config.bank is None else notice(config.bank.admission),
        "notices": [*notices(config, env, rehearsal.outcomes), *found.notices, *rehearsal.unproven],
        "parts": [_part(part) for part in outside_parts(config)],
        "policy": {"parameters": shape.parameters, "trained": shape.trainable, "positions": shape.positions},
        "prompts": {
            "tasks": rehearsal.tasks,
            "shortest": rehearsal.shortest,
            "longest": rehearsal.longest,
            "at_most": rehearsal.at_most,
            "answer": config.rollout.sampling.max_new_tokens,
            "guessed": rehearsal.guessed,
            "guide": rehearsal.guide,
            "thinking": rehearsal.thinking,
            "deviations": list(rehearsal.deviations),
            "text": rehearsal.prompt,
        },
        "memory": [_memory(need) for need in found.needs],
        "disk": _memory(found.disk),
        "seconds": {name: round(spent, 1) for name, spent in found.seconds.items()},
        "untimed": list(found.untimed),
        "spending": [] if found.spending is None else found.spending.lines(),
        "total_seconds": round(config.iterations * sum(found.seconds.values())),
        "turns_an_episode": rehearsal.length,
        "turns": [
            {"observation": turn.observation, "action": turn.action, "feedback": turn.feedback, "valid": turn.valid}
            for turn in rehearsal.turns[:TURNS_PRINTED]
        ],
    }


def show_dry_run(said: dict[str, Any]) -> None:
    """Print a report as text."""
    prompts = said["prompts"]
    output.line(f"{said['recipe']}: {said['iterations']} iterations, on {said['machine']}")
    for each in said["notices"]:
        output.line(f"notice    {each}")
    for part in said["parts"]:
        options = "".join(f" {name}={value}" for name, value in part["options"].items())
        output.line(f"part      {part['setting']} is {part['type']}{options}: {part['summary']}".removesuffix(": "))
    _show_policy(said)
    output.line(f"thinking  {THINKING[prompts['thinking']].format(prompts['answer'])}")
    for each in prompts["deviations"]:
        output.line(f"template  {each}")
    for device in said["memory"]:
        output.line(f"memory    {device['where']}: {device['gib']:.1f} of {_there(device)} GiB")
        for what, gib in device["parts"].items():
            output.line(f"            {gib:9.2f}  {what}")
    output.line(f"disk      {said['disk']['gib']:.1f} of {_there(said['disk'])} GiB free, for all policies of the run")
    _show_time(said)
    output.line(f"prompt    of a first turn, whole; {prompts['guide']} of its tokens are the environment's guide")
    for text in prompts["text"].splitlines():
        output.line(f"  | {text}")
    for turn in said["turns"]:
        output.line(f"observe   {turn['observation'][:MAX_OBSERVATION_CHARS]}")
        output.line(f"act       {turn['action']}   (at random)")
        output.line(
            f"feedback  {turn['feedback'][:MAX_OBSERVATION_CHARS]}" + ("" if turn["valid"] else "   (not understood)")
        )
    for problem in said["problems"]:
        output.line(f"problem   {problem}")
    output.line("not ready: solve the problems above first" if said["problems"] else "ready to start")


def _show_policy(said: dict[str, Any]) -> None:
    """Size of the policy, or what its endpoint is paid, and the lengths of its prompts."""
    policy, prompts = said["policy"], said["prompts"]
    for each in said["spending"]:
        output.line(f"cost      {each}")
    if not said["spending"]:
        output.line(f"policy    {policy['parameters']:,} parameters, {policy['trained']:,} trained")
    guessed = " (estimated: its tokenizer is not on this machine)" if prompts["guessed"] else ""
    output.line(
        f"prompts   {prompts['shortest']} to {prompts['longest']} tokens in {prompts['tasks']} tasks, answers up to "
        f"{prompts['answer']}, context window {policy['positions']}{guessed}"
    )
    if prompts["at_most"] > prompts["longest"]:
        output.line(f"prompts   up to {prompts['at_most']} tokens if all answers in them have {prompts['answer']}")


def _part(part: OutsidePartConfig) -> dict[str, Any]:
    """A part from another package, with all of its options."""
    options = checked_options(part).model_dump(mode="json")
    return {"setting": part.setting, "type": part.type, "options": options, "summary": summary(part)}


def _show_time(said: dict[str, Any]) -> None:
    left = f" without {', '.join(said['untimed'])}" if said["untimed"] else ""
    if not said["seconds"]:
        if left:
            output.line(f"time      not known{left}")
        return
    parts = ", ".join(f"{name} {spent:.1f}" for name, spent in said["seconds"].items())
    output.line(f"time      about {sum(said['seconds'].values()):.1f} s per iteration{left}: {parts}")
    output.line(
        f"time      about {said['total_seconds'] / 3600:.2g} h for {said['iterations']} iterations{left}, at "
        f"{said['turns_an_episode']:.0f} turns per episode, those of a random agent, and answers of full length"
    )


def _memory(need: "Need") -> dict[str, Any]:
    return {
        "where": need.where,
        "gib": round(need.bytes / GIB, 3),
        "there": None if need.there is None else round(need.there / GIB, 3),
        "fits": need.fits,
        "parts": {f"{item.what} ({item.phase})": round(item.bytes / GIB, 3) for item in need.parts},
    }


def _there(device: dict[str, Any]) -> str:
    return "an unknown number of" if device["there"] is None else f"{device['there']:.1f}"


COLUMNS = ("held-out success", "start", "end", "description")


def summarise(workspace: Workspace, paths: RunPaths) -> None:
    """Print the summary of a finished run."""
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        history, kept = lineage.history.log(), lineage.history.retained()
    bank = Bank(paths.bank)
    output.line()
    output.table(outcome(history, described(history[-1].state["config"])), COLUMNS)
    output.line()
    for entry, stats in most_used(bank.active(), bank.stats(), 3):
        uses = f"({stats.successes} of {stats.retrievals} uses succeeded)"
        output.line(f"  {entry.id}  {in_plain_words(entry)} {uses}")
    output.line()
    output.line("Next steps:")
    for command in look_further(paths.name, history[-1], kept):
        output.line(f"  coevo {command}{workspace_option(workspace)}")


def described(config: Mapping[str, Any]) -> dict[str, str]:
    """Panels of a run with their descriptions; those of a table, which its file names, have none."""
    known = find(config["env"]["type"]).panels
    evaluated = (*config["evaluation"]["panels"], *config["evaluation"]["final_panels"])
    return {name: known.get(name, "") for name in dict.fromkeys((*known, *evaluated))}


def outcome(history: list[Manifest], panels: Mapping[str, str]) -> list[dict[str, object]]:
    """Rows with the success of the first and the last revision per held-out panel, and that of the baseline."""
    first, last = history[0].metrics, history[-1].metrics
    named = {name: f"agent/success/{name}" for name in panels}
    rows = [_row(name, first.get(key), last[key], panels[name]) for name, key in named.items() if key in last]
    blind = first.get(f"agent/expert/{headline_panel(history[0])}")
    if blind is not None:
        rows.append(_row("blind expert", None, blind, "scripted expert without notes"))
    return rows


def _row(name: str, start: float | None, end: float, about: str) -> dict[str, object]:
    return {"held-out success": name, "start": start, "end": end, "description": about}


def most_used(entries: Sequence[Entry], stats: Mapping[str, Stats], count: int) -> list[tuple[Entry, Stats]]:
    """Entries that were in the prompts of most successful episodes, then of most episodes, at most ``count``."""
    used = [(entry, stats[entry.id]) for entry in entries if entry.id in stats and stats[entry.id].retrievals]
    return sorted(used, key=lambda each: (-each[1].successes, -each[1].retrievals))[:count]


def in_plain_words(entry: Entry) -> str:
    """Format an entry as a sentence."""
    where = f" in {entry.scope}" if entry.scope else ""
    return f"when {entry.condition}{where}: {entry.strategy}; for example {entry.example}"


def look_further(run: str, head: Manifest, kept: Sequence[int]) -> tuple[str, ...]:
    """Commands for the next steps of a run; ``kept``: revisions that it can be rolled back to."""
    last, config = head.revision, head.state["config"]
    if waits(head):
        return (f"approve --list {run}", f"approve {run}@{last}", f"approve {run}@{last} --reject", f"log {run}")
    middle = min(kept, key=lambda revision: abs(revision - last // 2))
    banked = config["bank"] is not None
    of_bank = (f"bank log {run}",) if banked else ()
    further = f"resume {run} --iterations {2 * max(1, head.iteration)}"
    onwards = (further,) if banked or config["update"] is not None else ()
    return (f"log {run}", *of_bank, f"rollback {run} --to {middle}", *onwards, "ui")

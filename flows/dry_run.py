"""A run before its start: what is reported of it, as one document and for people."""

from typing import Any

from configs.admission import notice
from configs.run import RunConfig
from flows import output
from models.devices import GIB
from tasks.fit import Need
from tasks.forecast import Forecast

SHOWN = 2
"""Turns of the rehearsal that people are shown; those of one task."""
LONGEST = 100
"""Characters of an observation that they are shown."""


def report(config: RunConfig, found: Forecast) -> dict[str, Any]:
    """The forecast as JSON values; bytes become GiB."""
    rehearsal, shape = found.rehearsal, found.shape
    return {
        "recipe": config.recipe,
        "digest": config.digest(),
        "iterations": config.iterations,
        "machine": str(found.machine),
        "ready": not found.problems,
        "problems": list(found.problems),
        "notice": None if config.bank is None else notice(config.bank.admission),
        "policy": {"parameters": shape.parameters, "trained": shape.trainable, "positions": shape.positions},
        "prompts": {
            "tasks": rehearsal.tasks,
            "shortest": rehearsal.shortest,
            "longest": rehearsal.longest,
            "answer": config.rollout.sampling.max_new_tokens,
            "guessed": rehearsal.guessed,
        },
        "memory": [_memory(need) for need in found.needs],
        "seconds": {name: round(spent, 1) for name, spent in found.seconds.items()},
        "turns_an_episode": rehearsal.length,
        "turns": [
            {"observation": turn.observation, "action": turn.action, "feedback": turn.feedback, "valid": turn.valid}
            for turn in rehearsal.turns[:SHOWN]
        ],
    }


def show(said: dict[str, Any]) -> None:
    """The same for people."""
    policy, prompts = said["policy"], said["prompts"]
    output.line(f"{said['recipe']}: {said['iterations']} iterations, on {said['machine']}")
    if said["notice"] is not None:
        output.line(f"notice    {said['notice']}")
    output.line(f"policy    {policy['parameters']:,} parameters, {policy['trained']:,} trained")
    guessed = " (guessed: its tokenizer is not on this machine)" if prompts["guessed"] else ""
    output.line(
        f"prompts   {prompts['shortest']} to {prompts['longest']} tokens in {prompts['tasks']} tasks, answers of "
        f"{prompts['answer']}, of {policy['positions']} that it attends to{guessed}"
    )
    for place in said["memory"]:
        output.line(f"memory    {place['where']}: {place['gib']:.1f} of {_there(place)} GiB")
        for what, gib in place["parts"].items():
            output.line(f"            {gib:9.2f}  {what}")
    for name, spent in said["seconds"].items():
        output.line(
            f"time      about {spent:.1f} s for each {name}, {said['turns_an_episode']:.0f} turns an episode; roughly"
        )
    for turn in said["turns"]:
        output.line(f"observe   {turn['observation'][:LONGEST]}")
        output.line(f"act       {turn['action']}   (at random)")
        output.line(f"feedback  {turn['feedback'][:LONGEST]}" + ("" if turn["valid"] else "   (not understood)"))
    for problem in said["problems"]:
        output.line(f"problem   {problem}")
    output.line("it cannot be started so" if said["problems"] else "it can be started")


def _memory(need: Need) -> dict[str, Any]:
    return {
        "where": need.where,
        "gib": round(need.bytes / GIB, 3),
        "there": None if need.there is None else round(need.there / GIB, 3),
        "fits": need.fits,
        "parts": {f"{item.what} ({item.phase})": round(item.bytes / GIB, 3) for item in need.parts},
    }


def _there(place: dict[str, Any]) -> str:
    return "an unknown number of" if place["there"] is None else f"{place['there']:.1f}"

"""``coevo bank train-writer``."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.cli.run import Overrides
from coevo.flows.console import output
from coevo.flows.console.options import JsonOption
from coevo.flows.console.output import console
from coevo.utilities.errors import CoevoError


def train_writer(
    recipe: Annotated[str, typer.Argument(help="Recipe whose writer asks a model.")],
    directory: Annotated[Path, typer.Argument(help="New directory for the model.")],
    overrides: Overrides = None,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Optimizer steps.")] = 500,
    tasks: Annotated[int, typer.Option(min=1, max=1_000, help="Tasks of another world per step.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Train a small model that writes the lessons of a recipe.

    It learns from expert episodes of other worlds than those of training and evaluation, in an environment that knows
    what its episodes reveal. An examination in yet another world ends the training. Any server with OpenAI's protocol
    can serve the model.

    Example: coevo bank train-writer babyai-rules-coevo-rl-writer-model writer-model
    """
    from coevo.configs.load.load import load_recipe
    from coevo.envs.registry import make
    from coevo.flows.console.progress import shown
    from coevo.tasks.writing.writer_training import train_writer_model

    if directory.exists():
        raise CoevoError(f"{directory} exists: name a new directory")
    config = load_recipe(recipe, overrides or [])
    with closing(make(config.env)) as env, shown(console(stderr=as_json), 0) as progress:
        grade = train_writer_model(config, env, directory, steps, tasks, progress.note)
    wrong = grade.proposed - grade.true
    output.result(
        as_json,
        {"directory": str(directory), "revealed": grade.revealed, "true": grade.true, "wrong": wrong},
        f"{directory}: of {grade.revealed} notes that the episodes of another world reveal, the writer model wrote "
        f"{grade.true}, and {wrong} lessons that are not true notes.",
        f"Serve it with: transformers serve {directory} --port 8000",
    )

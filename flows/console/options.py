"""Options that the commands share."""

import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from typer.core import CompletionItem  # type: ignore[attr-defined]

from coevo.flows.console.home import ensure_home
from coevo.lineage.revision.sparse import OPTIMIZER
from coevo.lineage.workspace import Workspace

if TYPE_CHECKING:
    from coevo.configs.env import EnvConfig

VARIABLE = "COEVO_WORKSPACE"
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", envvar=VARIABLE, show_default="workspace", help="Directory of the runs."),
]
TrustOption = Annotated[
    str | None,
    typer.Option("--trust", metavar="NAME,...", help="Settings to confirm, for a run from elsewhere."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output, and nothing else.")
]
WithoutOptimizerOption = Annotated[
    bool,
    typer.Option("--without-optimizer", help="Leave out optimizer and critic; the next update begins new ones."),
]


ReturnT = TypeVar("ReturnT")


def with_option_groups(command: Callable[..., ReturnT]) -> Callable[..., ReturnT]:
    """Let a command take options that belong together as one object.

    Typer derives the options of a command from its parameters. Here a parameter whose type is a dataclass stands for
    the fields of that dataclass, in their order.
    """
    signature = inspect.signature(command)
    types = {name: each.annotation for name, each in signature.parameters.items()}
    groups = {name: kind for name, kind in types.items() if isinstance(kind, type) and is_dataclass(kind)}
    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in signature.parameters.values()
        for option in (inspect.signature(groups[each.name]).parameters.values() if each.name in groups else (each,))
    ]

    @wraps(command)
    def flat(**given: object) -> ReturnT:
        made = {
            name: group(**{option.name: given.pop(option.name) for option in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **made)

    flat.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return flat


@dataclass(frozen=True)
class EnvironmentOptions:
    """An environment that a command plays by itself."""

    env: Annotated[str, typer.Argument(help="Name of the environment, or package.module:Class.")]
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings of the environment.")
    ] = None
    python_path: Annotated[
        list[Path] | None, typer.Option("--python-path", metavar="FOLDER", help="Folder of your own modules.")
    ] = None

    def loaded(self) -> "EnvConfig":
        """Its configuration; modules of the user's folders can be imported from then on.

        Raises:
            CoevoError: there is no such environment or setting.
        """
        from coevo.configs.load.load import load_env

        sys.path.extend(str(folder.absolute()) for folder in self.python_path or ())
        return load_env(self.env, self.settings or [])


def left_out(without_optimizer: bool) -> tuple[str, ...]:
    """Artifacts that ``--without-optimizer`` leaves out."""
    return (OPTIMIZER,) if without_optimizer else ()


def workspace_of(directory: Path | str | None) -> Workspace:
    """Workspace of a function of the Python API; gives an unknown user a home, before large libraries are imported."""
    ensure_home()
    return _with_mlflow(Workspace(Path(directory or os.environ.get(VARIABLE) or "workspace")))


def workspace_at(directory: Path | None) -> Workspace:
    """Workspace of a command."""
    return _with_mlflow(Workspace(directory or Path("workspace")))


def _with_mlflow(workspace: Workspace) -> Workspace:
    """A workspace whose MLflow server this process may use, where ``MLFLOW_TRACKING_URI`` names it."""
    if os.environ.get("MLFLOW_TRACKING_URI", "").startswith("http"):
        from coevo.flows.servers.servers import use_mlflow

        use_mlflow(workspace.root)
    return workspace


def workspace_option(workspace: Workspace) -> str:
    """Option that a command needs for a workspace; empty for the default one."""
    return "" if workspace.root == workspace_at(None).root else f" --workspace {shlex.quote(str(workspace.root))}"


def resuming(run: str, iteration: int, iterations: int, workspace: Workspace) -> str:
    """Command that continues a run; one that has done all of its iterations needs more of them."""
    more = "" if iteration < iterations else f" --iterations {2 * max(1, iteration)}"
    return f"coevo resume {run}{more}{workspace_option(workspace)}"


@contextmanager
def standing_in(directory: Path) -> Iterator[None]:
    """Use a workspace, inside the block, for commands without ``--workspace``; the option stood before the command."""
    earlier = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(directory.absolute())
    try:
        yield
    finally:
        if earlier is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = earlier


def completing(named: str) -> Callable[[typer.Context, str], list[CompletionItem]] | None:
    """Function that completes an argument with the names that there are; None for one that names no such thing.

    Args:
        named: how the help names the argument: ``RUN`` and what begins with it stands for a run.
    """
    (word, *_) = re.split(r"\W+", named.lstrip("[").lower())
    if word in ("run", "runs"):
        return _offering(lambda context: [each.name for each in _workspace_given(context).runs()])
    kind = {"recipe": "recipes", "env": "envs", "study": "studies", "method": "methods"}.get(word)
    return None if kind is None else _offering(lambda _: _shipped(kind))


def _shipped(kind: str) -> list[str]:
    from coevo.configs.load.shipped_files import names  # it reads settings, which no other completion needs

    return names(kind)


def _offering(words: Callable[[typer.Context], list[str]]) -> Callable[[typer.Context, str], list[CompletionItem]]:
    return lambda context, begun: [CompletionItem(each) for each in words(context) if each.startswith(begun)]


def _workspace_given(context: typer.Context) -> Workspace:
    """Workspace of a command line that is still being typed; what stands behind the command counts before."""
    for each in (context, context.find_root()):
        for name in ("workspace", "directory"):
            source = each.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                return Workspace(each.params[name])
    return Workspace(Path(os.environ.get(VARIABLE) or "workspace"))


def as_typed(overrides: Mapping[str, object] | None) -> list[str]:
    """Settings by dotted key, as a user types them."""
    return [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]

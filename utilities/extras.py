"""Extras of the package: what each adds, so that a part that is not installed is one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

EXTRAS = {
    "api": (
        "anyio", "dvc", "dvc_data", "dvc_objects", "fastapi", "fsspec", "great_expectations", "httpx", "httpx2",
        "jinja2", "matplotlib", "mlflow", "openai", "pandas", "prefect", "sklearn", "sqlalchemy", "starlette",
        "tokenizers", "uvicorn",
    ),
    "postgres": ("psycopg2",),
    "train": ("deepspeed", "peft", "safetensors", "torch", "transformers"),
    "s3": ("dvc_s3", "s3fs", "boto3", "botocore"),
    "alfworld": ("alfworld", "fast_downward", "textworld"),
    "babyai": ("minigrid",),
    "gymnasium": ("gymnasium",),
    "openenv": ("websockets",),
    "textworld": ("textworld",),
    "lifelong": ("sqlglot",),
    "embedding": ("sentence_transformers",),
    "mcp": ("mcp", "mcp_types"),
    "ray": ("ray",),
}  # fmt: skip
"""Modules that each extra brings; ``train`` brings those of ``api`` as well."""
_REMEDIES = {"api": "pip install 'coevo[train]', or 'coevo[api]' for a policy behind an endpoint"}
_OF_MODULE = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def requirements(*extras: str) -> "list[Requirement]":
    """Requirements of the installed package with these extras, without those that this interpreter does not need.

    Raises:
        CoevoError: the installed package declares none, so that nothing can be checked or pinned.
    """
    # Every use of coevo imports this module, and few read requirements.
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    declared = [Requirement(line) for line in requires("coevo") or ()]
    if not declared:
        raise CoevoError("the installed package coevo declares no requirements: repeat pip install '.[train]'")
    found = [each for each in declared if any(_applies(each, extra) for extra in ("", *extras))]
    own = [each for each in found if each.name == "coevo"]  # an extra that brings another one
    brought = requirements(*(extra for each in own for extra in each.extras)) if own else []
    return list(dict.fromkeys([*(each for each in found if each not in own), *brought]))


def _applies(requirement: "Requirement", extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def missing_extra(error: BaseException) -> str | None:
    """One line for an import that failed because an extra is not installed; None for every other error."""
    for cause in _causes(error):
        if isinstance(cause, ModuleNotFoundError) and cause.name is not None:
            module = cause.name.partition(".")[0]
            if module in _OF_MODULE:
                extra = _OF_MODULE[module]
                remedy = f"pip install 'coevo[{extra}]'"
                return f"{module} is not installed: {_REMEDIES.get(extra, remedy)}"
    return None


def lacks(extra: str) -> bool:
    """True if a module of an extra is not installed; nothing is imported."""
    return any(find_spec(module) is None for module in EXTRAS[extra])


@contextmanager
def extras_named() -> Iterator[None]:
    """Raise ``CoevoError`` with that line where an extra is not installed; a decorator too."""
    try:
        yield
    except ImportError as error:
        line = missing_extra(error)
        if line is None:
            raise
        raise CoevoError(line) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__

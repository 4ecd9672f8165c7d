"""A run: all settings that decide its results. Their hash identifies the experiment."""

import hashlib
import json
from pathlib import Path
from typing import Self

from pydantic import ValidationInfo, field_validator, model_validator

from coevo.configs.compositions import flaws
from coevo.configs.sections import RunSections
from coevo.configs.trust_settings import is_stored


class RunConfig(RunSections):
    """The resolved configuration of a run."""

    @field_validator("python_path")
    @classmethod
    def _absolute(cls, folders: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not is_stored(info):
            return tuple(str(Path(folder).expanduser().absolute()) for folder in folders)
        relative = next((folder for folder in folders if not Path(folder).is_absolute()), None)
        if relative is not None:
            raise ValueError(f"{relative!r} depends on the working directory: write an absolute path")
        return folders

    @model_validator(mode="after")
    def _composed(self) -> Self:
        flaw = next(flaws(self), None)
        if flaw is not None:
            raise ValueError(flaw)
        return self

    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON of the settings that decide the results: all except ``iterations``."""
        return digest(self.model_dump(mode="json", exclude={"iterations"}))


def digest(value: object) -> str:
    """SHA-256 (hex) of a JSON-serialisable value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

"""Fields that users have in recipes and studies: names, defaults and bounds change only together with ``fields.txt``.

A field that came later is written down only where it is set, so that the runs before it keep their identity.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from coevo.configs.base import Config
from coevo.configs.policy_config import LoraConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.study_config import StudyConfig

FIELDS = Path(__file__).with_name("fields.txt")


def fields(root):
    """One line per field: ``Class.field`` and its schema without texts."""
    schema = root.model_json_schema()
    for name, kind in sorted({root.__name__: schema, **schema["$defs"]}.items()):
        for field, found in kind.get("properties", {}).items():
            rest = {key: value for key, value in found.items() if key not in ("description", "title")}
            yield f"{name}.{field} {json.dumps(rest, sort_keys=True)}"


def test_names_defaults_and_bounds_are_those_on_record():
    assert [*fields(RunConfig), *fields(StudyConfig)] == FIELDS.read_text("utf-8").splitlines()


def kinds(kind=Config):
    """Every class of the schema, without those of other tests."""
    found = {kind}.union(*map(kinds, kind.__subclasses__()))
    return {kind for kind in found if kind.__module__.startswith("coevo.")}


def possible(field, value):
    try:
        TypeAdapter(Annotated[field.annotation, Field(), *field.metadata]).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def others(field, default):
    """Values beside a default: the other choices, the neighbours of a number, another section; for null, any."""
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, int | float):
        step = 1 if isinstance(default, int) else 0.0625
        return [value for value in (default - step, default + step) if possible(field, value)]
    if isinstance(default, str):
        return [choice for choice in get_args(field.annotation) if choice != default]
    if isinstance(default, BaseModel):
        return [default.model_copy(update={name: None}) for name in type(default).model_fields]
    if isinstance(default, dict):
        return [{}, dict.fromkeys(default, True), {**default, "more": 1}]
    return [("x",)] if default == () else [0, "", {}]


def test_a_late_field_is_left_out_where_it_has_its_default_and_only_there():
    late = {f"{kind.__name__}.{name}": field for kind in kinds() for name, field in kind.model_fields.items()}
    late = {name: field for name, field in late.items() if field.exclude_if}
    assert len(late) > 30
    for name, field in late.items():
        default = field.get_default(call_default_factory=True)
        assert field.exclude_if(deepcopy(default)), name
        assert [value for value in others(field, default) if field.exclude_if(value)] == [], name
        assert others(field, default), name


def test_a_default_is_what_it_would_be_if_it_were_written():
    assert isinstance(LoraConfig().alpha, float)

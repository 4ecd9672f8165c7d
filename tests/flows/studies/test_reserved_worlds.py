"""No setting, test or recipe names a reserved world, and none is a default."""

import re
from pathlib import Path

from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.flows.studies.study_runs import RESERVED

ROOT = Path(__file__).parents[3]
ROOMS = (
    "benchmarks", "configs", "docs", "envs", "flows", "infra", "lineage", "memory", "models", "pipeline", "records",
    "tasks", "tests", "utilities",
)  # fmt: skip
WRITTEN = {".py", ".yaml", ".yml", ".md", ".txt", ".toml", ".json", ".html", ".js", ".sh", ""}
NUMBER = re.compile(r"(?<![\w.])\d[\d_]{9,}(?![\w.])")


def test_no_file_names_a_reserved_world_but_the_kept_results():
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in WRITTEN and path.is_file()]
    files = [*paths, *(path for path in ROOT.iterdir() if path.suffix in WRITTEN and path.is_file())]
    left = {ROOT / "flows" / "studies" / "study_runs.py", *(ROOT / "benchmarks" / "results").rglob("*.json")}
    assert len(files) > 1000
    found = {path: named for path in files if path not in left and (named := _named(path))}
    assert found == {}


def _named(path):
    numbers = NUMBER.findall(path.read_text("utf-8", errors="replace"))
    return [text for text in numbers if int(text.replace("_", "")) in RESERVED]


def test_a_reserved_world_is_noticed(tmp_path):
    (tmp_path / "a.yaml").write_text(f"env: {{world: {RESERVED[1]}}}\nseed: {RESERVED.stop:_}\n")
    assert _named(tmp_path / "a.yaml") == [str(RESERVED[1])]


def test_no_recipe_plays_one():
    for config in map(load_recipe, names("recipes")):
        assert config.seed not in RESERVED
        assert getattr(config.env, "world", 0) not in RESERVED

"""Whatever is done to a recipe, it loads or ends in one line that says where and what: never in anything else."""

import gc
import random
import re
import time

import pytest
import yaml

from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import ROOT, names
from coevo.configs.run_config import RunConfig
from coevo.utilities.errors import ConfigError

COUNT = 250
VALUES = (
    "", "null", "true", "yes", "no", "~", "x", "-1", "0", "1", "2", "1e-300", "1e309", ".nan", ".inf", "-.inf", "0x1F",
    "9" * 30, "9" * 5000, "1.5", "1:30", "2020-01-01", "''", '"\\ud800"', '"\\0"', '"a\\nb"', "\u65e5\u672c", "\u202ex",
    "[]", "[1, 2]", "[[]]", "{}", "{a: 1}", "{type: nope}", "{type: [1]}", "[" * 300 + "]" * 300,
    "{a: " * 30 + "1" + "}" * 30,
    "${seed}", "${oc.env:HOME}", "${", "???", "!!python/object:os.system x", "!!binary aGk=", "!!set {a}", "*none",
    "&a [*a]",    "|\n  many\n  lines", "x" * 2000, "../../etc/passwd", "/etc/passwd", "%s {0} {{x}}",
)  # fmt: skip
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def documents():
    """The recipes with what they build on, as documents of block style: a key a line."""
    for recipe in names("recipes"):
        settings = load_recipe(recipe).model_dump(mode="json", exclude={"recipe"})
        yield yaml.safe_dump(settings, default_flow_style=False).splitlines()


def drop(draw, lines, at):
    del lines[at]


def rename(draw, lines, at):
    key = lines[at].partition(":")[0]
    new = draw.choice(
        ["sed", "Iterations", "\u65e5", "a b", "1", "null", "[x]", "a.b", '"a\\nb"', "k" * 300, "${x}", "<<"]
    )
    lines[at] = lines[at].replace(key, " " * (len(key) - len(key.lstrip())) + new, 1)


def retype(draw, lines, at):
    lines[at] = f"{lines[at].partition(':')[0]}: {draw.choice(VALUES)}"


def double(draw, lines, at):
    lines.insert(at, lines[at])


def nest(draw, lines, at):
    lines[at] = " " * draw.choice([1, 2, 3, 7]) + lines[at]


def garble(draw, lines, at):
    directory = draw.randrange(len(lines[at]) + 1)
    lines[at] = (
        lines[at][:directory]
        + draw.choice(["\t", "\x00", "\ufeff", ":", "- ", "#", "&x ", "*x", "%", "@", "{", "]"])
        + lines[at][directory:]
    )


def build_on(draw, lines, at):
    value = draw.choice(
        ["x", "[x]", "[../load]", "[/etc/passwd]", "[[methods/grpo]]", "{a: 1}", "null", "[methods/grpo]", "5"]
    )
    lines.insert(0, f"defaults: {value}")


def blow_up(draw, lines, at):
    lines.append(BOMB)


MUTATIONS = (drop, drop, rename, retype, retype, retype, retype, double, nest, garble, build_on, blow_up)


def mutated(number, recipes):
    draw = random.Random(number)
    lines = list(draw.choice(recipes))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        draw.choice(MUTATIONS)(draw, lines, draw.randrange(len(lines)))
    return "\n".join(lines) + "\n"


@pytest.fixture
def limit(tmp_path):
    """Seconds that a document may take: 20 times what one without a flaw takes on this machine."""
    path = tmp_path / "flawless.yaml"
    path.write_text("\n".join(next(documents())), encoding="utf-8")
    load_recipe(str(path))
    gc.collect()
    gc.freeze()  # what other tests have left takes time to look through
    start = time.thread_time()  # threads of other tests may be busy
    for _ in range(5):
        load_recipe(str(path))
    yield 20 * (time.thread_time() - start) / 5
    gc.unfreeze()


@pytest.mark.full
def test_every_mutation_loads_or_is_one_line(tmp_path, limit):
    path, outcomes, recipes = tmp_path / "mine.yaml", {True: 0, False: 0}, list(documents())
    for number in range(COUNT):
        path.write_text(mutated(number, recipes), encoding="utf-8", errors="surrogatepass")
        start = time.thread_time()
        try:
            loaded, said = isinstance(load_recipe(str(path)), RunConfig), None
        except ConfigError as error:
            loaded, said = False, str(error)
        assert time.thread_time() - start < limit, number
        if said is not None:
            said = said.removeprefix(f"{str(path)!r}: ").removeprefix("mine: ")
            assert "\n" not in said, number
            assert said.isprintable(), number
            assert len(said) < 1000, number
            assert named(said), f"{number}: {said}"
        outcomes[loaded] += 1
    assert outcomes[False] > COUNT / 2
    assert outcomes[True] > COUNT / 25


def named(said):
    """Whether a message names a line or a field, and then the fault."""
    if said.startswith(("not readable", "Object of")):
        return re.search(r"\bline \d+|YAML: [\w.\[\]-]+: ", said)
    return re.match(r"(line \d+|\S.*?): .+", said)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "holds more than 5000 values"),
        ("a: &a [*a]\n", "contains itself"),
        ("x: " + "[" * 2000 + "]" * 2000, "nested more than 20 levels deep"),
        ("seed: " + "9" * 5000, "line 1: is longer than 1000 characters"),
        ("recipe: ok\nnote: " + '"\\ud800"', "line 2: holds an unprintable character"),
        ("x: 1\n" * 20_000, "has more than 32768 characters"),
        ("seed: 1\nseed: 2\n", "line 2"),
        ("defaults: [../load]", "'../load' cannot be built on."),
        ("defaults: recipes/homerules-grpo", "write a list: defaults: [recipes/homerules-grpo]"),
        ("defaults: [recipes/homerules-grpo]\nupdate: {optimizer: {lr: .inf}}", "update.optimizer.lr = "),
        ("defaults: [recipes/homerules-grpo]\nupdate: {optimizer: {betas: [0.9, 7]}}", "less than 1"),
        ("seed: 1", "iterations: is missing; set it, or build on a shipped recipe with defaults"),
        ('"a\\nb": 1\ndefaults: [recipes/homerules-grpo]', "a b: no such key"),
    ],
)
def test_a_mistake_in_a_file_says_where_and_what(text, says, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(ConfigError) as caught:
        load_recipe(str(path))
    assert time.process_time() - start < 2
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "key", ["seed", "policy", "env", "update.optimizer.lr", "evaluation.panels", "a..b", "[0]", "x.0"]
)
def test_every_override_loads_or_is_one_line(key):
    for value in VALUES:
        try:
            load_recipe("homerules-grpo", [f"{key}={value}"])
        except ConfigError as error:
            assert str(error).isprintable(), value
            assert len(str(error)) < 1000, value


@pytest.mark.parametrize(
    "name", ["", ".yaml", "../methods/grpo", "x" * 5000 + ".yaml", "a\nb", "\0.yaml", str(ROOT) + "/.yaml"]
)
def test_a_recipe_that_is_not_there_is_one_line(name):
    with pytest.raises(ConfigError) as caught:
        load_recipe(name)
    assert str(caught.value).isprintable()


def test_a_folder_and_an_unreadable_file_are_one_line(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9")
    for name, says in {"folder": "Is a directory", "latin": "not readable as YAML"}.items():
        with pytest.raises(ConfigError, match=says):
            load_recipe(str(tmp_path / f"{name}.yaml"))

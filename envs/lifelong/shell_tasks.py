"""Tasks of the shell, drawn from keys: wishes about files and about accounts, which scripts prepare, solve and judge.

A task joins one to four wishes. Each comes with the commands it needs, as LifelongAgentBench counts skills, and with
checks that name what is not as wished.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

SHELL_NAME = "lifelong-os"
ShellKind = Literal["files", "accounts"]
SHELL_PANELS = {"held-out": "wishes that training leaves out"}
THEN = " Then "
"""Word between the wishes of a task."""
MAX_DRAWS = 2_000
"""Draws without a new task, after which a split is taken to have no more."""
_SPLITS = ("held-out", "fresh", "train", "train")
_FOLDERS = ("reports", "archive", "backup", "inbox", "photos", "drafts", "exports", "notes")
_NAMES = ("alpha", "bravo", "delta", "echo", "golf", "hotel", "lima", "oscar", "quebec", "sierra", "tango", "zulu")
_PEOPLE = ("anna", "bert", "cora", "dirk", "elsa", "finn", "gina", "hugo", "iris", "jens")
_GROUPS = ("devs", "staffers", "editors", "pilots", "bakers", "crew")
_MODES = ("600", "640", "644", "700", "750", "755")


class ShellWish(NamedTuple):
    """One wish: words, a script before, a script that fulfils it, checks with what they say, and its commands."""

    words: str
    setup: str
    solution: str
    checks: tuple[tuple[str, str], ...]
    skills: tuple[str, ...]


class _Draws:
    """Names that do not repeat within a task."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._used = rng, set[str]()

    def new(self, values: Sequence[str]) -> str:
        """One of these that was not drawn yet."""
        left = [value for value in values if value not in self._used]
        chosen = left[int(self._rng.integers(len(left)))]
        self._used.add(chosen)
        return chosen

    def number(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``."""
        return int(self._rng.integers(low, high + 1))


def shell_tasks(kinds: Sequence[ShellKind], wishes: int, steps: int, count: int, draw: Key, split: str) -> list[Task]:
    """``count`` tasks of a split, different ones as long as there are enough.

    Raises:
        CoevoError: the split is ``held-out`` and has fewer, or it has none.
    """
    tasks, number, since = dict[str, Task](), 0, 0
    while len(tasks) < count and since < MAX_DRAWS:
        kind, number, since = kinds[number % len(kinds)], number + 1, since + 1
        task = _shell_task(kind, wishes, steps, generator(extend(draw, number)), split)
        if split_of(task) == split and task.id not in tasks:
            tasks[task.id], since = task, 0
    every = list(tasks.values())
    if len(every) < count and (split == "held-out" or not every):
        sort = f"{' and '.join(kinds)} with {wishes} wish(es)"
        raise CoevoError(f"{SHELL_NAME} has {len(every)} tasks of {sort} for {split}, not {count}: request fewer")
    return [every[index % len(every)] for index in range(count)]


def shell_panel(kinds: Sequence[ShellKind], wishes: int, steps: int, name: str, size: int) -> tuple[Task, ...]:
    """First ``size`` tasks of the panel.

    Raises:
        CoevoError: there is no such panel.
    """
    if name not in SHELL_PANELS:
        raise CoevoError(f"panel {name!r} is not one of {SHELL_NAME}: choose one of {', '.join(SHELL_PANELS)}")
    draw = key(SHELL_NAME, "panel", wishes, *kinds)
    return tuple(shell_tasks(kinds, wishes, steps, size, draw, "held-out"))


def split_of(task: Task) -> str:
    """TaskSplit of a task, by its content: neither the limit of steps nor the order of its wishes matters."""
    if task.kind == "published":
        parts = [str(task.data["number"]), task.instruction]
    else:
        scripts = (str(task.data[name]) for name in ("setup", "solution", "judge"))
        parts = ["\n".join(sorted(text.split("\n"))) for text in (task.instruction.replace(THEN, "\n"), *scripts)]
    return _SPLITS[seed_of(key(SHELL_NAME, "split", *parts)) % len(_SPLITS)]


def shell_task(kind: str, words: str, scripts: dict[str, str], skills: Sequence[str], steps: int, split: str) -> Task:
    """A task with its scripts ``setup``, ``solution`` and ``judge``."""
    data = {**scripts, "skills": sorted(set(skills)), "steps": steps}
    return Task(SHELL_NAME, kind, words, kind, split, data)


def _shell_task(kind: ShellKind, wishes: int, steps: int, rng: np.random.Generator, split: str) -> Task:
    draws = _Draws(rng)
    templates = _WISHES[kind]
    order = rng.permutation(len(templates))[:wishes]
    drawn = [templates[int(index)](draws) for index in order]
    checks = [f"{check} || {{ echo {said!r}; exit 1; }}" for wish in drawn for check, said in wish.checks]
    scripts = {
        "setup": "\n".join(wish.setup for wish in drawn if wish.setup),
        "solution": "\n".join(wish.solution for wish in drawn),
        "judge": "\n".join(checks),
    }
    words = THEN.join(wish.words for wish in drawn)
    return shell_task(kind, words, scripts, [each for wish in drawn for each in wish.skills], steps, split)


def _made_file(draws: _Draws) -> ShellWish:
    folder, name, text = draws.new(_FOLDERS), draws.new(_NAMES), draws.new(_NAMES)
    path = f"/srv/{folder}/{name}.txt"
    return ShellWish(
        f"create the folder /srv/{folder} with a file {name}.txt that holds the line {text}.",
        "",
        f"mkdir -p /srv/{folder}; echo {text} > {path}",
        (
            (f"[ -f {path} ]", f"{path} is missing"),
            (f'[ "$(cat {path})" = {text} ]', f"{path} has another text"),
        ),
        ("mkdir", "echo"),
    )


def _changed_mode(draws: _Draws) -> ShellWish:
    name, mode = draws.new(_NAMES), draws.new(_MODES)
    path = f"/opt/{name}.sh"
    return ShellWish(
        f"set the permissions of {path} to {mode}.",
        f"touch {path}; chmod 604 {path}",
        f"chmod {mode} {path}",
        ((f'[ "$(stat -c %a {path})" = {mode} ]', f"{path} has other permissions"),),
        ("chmod",),
    )


def _moved(draws: _Draws) -> ShellWish:
    name, folder = draws.new(_NAMES), draws.new(_FOLDERS)
    old, new = f"/tmp/{name}.dat", f"/srv/{folder}/{name}.dat"
    return ShellWish(
        f"move {old} into the new folder /srv/{folder}.",
        f"echo {name} > {old}",
        f"mkdir -p /srv/{folder}; mv {old} {new}",
        ((f"[ -f {new} ]", f"{new} is missing"), (f"[ ! -e {old} ]", f"{old} is still there")),
        ("mkdir", "mv"),
    )


def _copied(draws: _Draws) -> ShellWish:
    name, folder = draws.new(_NAMES), draws.new(_FOLDERS)
    old, new = f"/opt/{folder}", f"/var/tmp/{folder}"
    return ShellWish(
        f"copy the folder {old} with all that is in it to {new}, and keep {old}.",
        f"mkdir -p {old}/deep; echo {name} > {old}/deep/{name}",
        f"cp -r {old} {new}",
        (
            (f'[ "$(cat {new}/deep/{name})" = {name} ]', f"{new} lacks a file"),
            (f"[ -d {old}/deep ]", f"{old} is gone"),
        ),
        ("cp",),
    )


def _linked(draws: _Draws) -> ShellWish:
    name, other = draws.new(_NAMES), draws.new(_NAMES)
    return ShellWish(
        f"create a symbolic link /srv/{other} to /opt/{name}.conf.",
        f"echo {other} > /opt/{name}.conf",
        f"ln -s /opt/{name}.conf /srv/{other}",
        ((f'[ "$(readlink /srv/{other})" = /opt/{name}.conf ]', f"/srv/{other} is no link to /opt/{name}.conf"),),
        ("ln",),
    )


def _removed(draws: _Draws) -> ShellWish:
    folder, name = draws.new(_FOLDERS), draws.new(_NAMES)
    path = f"/srv/{folder}"
    return ShellWish(
        f"delete every file in {path} whose name ends in .log, and no other.",
        f"mkdir -p {path}/old; touch {path}/{name}.log {path}/old/{name}.log {path}/{name}.txt",
        f"find {path} -name '*.log' -exec rm {{}} +",
        (
            (f'[ -z "$(find {path} -name "*.log")" ]', f"{path} still has .log files"),
            (f"[ -f {path}/{name}.txt ]", f"{path}/{name}.txt is gone"),
        ),
        ("find", "rm"),
    )


def _counted(draws: _Draws) -> ShellWish:
    name, word, count = draws.new(_NAMES), draws.new(_NAMES), draws.number(3, 9)
    return ShellWish(
        f"write the number of lines of /var/log/{name}.log that hold the word {word} to /root/{name}.count.",
        f"for i in $(seq 1 12); do [ $i -le {count} ] && echo $i {word} || echo $i; done > /var/log/{name}.log",
        f"grep -c {word} /var/log/{name}.log > /root/{name}.count",
        (
            (f"[ -f /root/{name}.count ]", f"/root/{name}.count is missing"),
            (f'[ "$(tr -d " " < /root/{name}.count)" = {count} ]', f"/root/{name}.count has another number"),
        ),
        ("grep",),
    )


def _replaced(draws: _Draws) -> ShellWish:
    name, old, new = draws.new(_NAMES), draws.new(_NAMES), draws.new(_NAMES)
    path, wished = f"/opt/{name}.ini", f"one={new}\ntwo=same\nthree={new} {new}"
    return ShellWish(
        f"replace every {old} in {path} by {new}.",
        f"printf 'one={old}\\ntwo=same\\nthree={old} {old}\\n' > {path}",
        f"sed -i 's/{old}/{new}/g' {path}",
        (
            (f"[ -f {path} ]", f"{path} is gone"),
            (f'[ "$(cat {path})" = "{wished}" ]', f"{path} has another text"),
        ),
        ("sed",),
    )


def _summed(draws: _Draws) -> ShellWish:
    name, numbers = draws.new(_NAMES), [draws.number(2, 99) for _ in range(5)]
    lines = "\\n".join(f"item{index},{number}" for index, number in enumerate(numbers))
    return ShellWish(
        f"add the numbers after the commas in /srv/{name}.csv, and write the sum to /root/{name}.sum.",
        f"printf '{lines}\\n' > /srv/{name}.csv",
        f"awk -F, '{{ s += $2 }} END {{ print s }}' /srv/{name}.csv | tee /root/{name}.sum",
        (
            (f"[ -f /root/{name}.sum ]", f"/root/{name}.sum is missing"),
            (f'[ "$(tr -d " " < /root/{name}.sum)" = {sum(numbers)} ]', f"/root/{name}.sum has another number"),
        ),
        ("awk", "tee"),
    )


def _new_user(draws: _Draws) -> ShellWish:
    user = draws.new(_PEOPLE)
    return ShellWish(
        f"create the user {user} with a home directory and the shell /bin/bash.",
        "",
        f"useradd -m -s /bin/bash {user}",
        (
            (f"getent passwd {user} > /dev/null", f"there is no user {user}"),
            (f"[ -d /home/{user} ]", f"{user} has no home directory"),
            (f'[ "$(getent passwd {user} | cut -d: -f7)" = /bin/bash ]', f"{user} has another shell"),
        ),
        ("useradd",),
    )


def _new_group(draws: _Draws) -> ShellWish:
    user, group = draws.new(_PEOPLE), draws.new(_GROUPS)
    return ShellWish(
        f"create the group {group} and add the user {user} to it.",
        f"useradd -m {user}",
        f"groupadd {group}; usermod -aG {group} {user}",
        (
            (f"getent group {group} > /dev/null", f"there is no group {group}"),
            (f"id -nG {user} | tr ' ' '\\n' | grep -qx {group}", f"{user} is not in {group}"),
        ),
        ("groupadd", "usermod"),
    )


def _left_group(draws: _Draws) -> ShellWish:
    user, group = draws.new(_PEOPLE), draws.new(_GROUPS)
    return ShellWish(
        f"remove the user {user} from the group {group}, and keep both.",
        f"groupadd {group}; useradd -m -G {group} {user}",
        f"gpasswd -d {user} {group}",
        (
            (f"getent passwd {user} > /dev/null", f"there is no user {user}"),
            (f"getent group {group} > /dev/null", f"there is no group {group}"),
            (f"! id -nG {user} | tr ' ' '\\n' | grep -qx {group}", f"{user} is still in {group}"),
        ),
        ("gpasswd",),
    )


def _owned(draws: _Draws) -> ShellWish:
    user, group, folder = draws.new(_PEOPLE), draws.new(_GROUPS), draws.new(_FOLDERS)
    path = f"/srv/{folder}"
    return ShellWish(
        f"make {user} the owner and {group} the group of {path} and all that is in it.",
        f"useradd -m {user}; groupadd {group}; mkdir -p {path}/deep; touch {path}/deep/file",
        f"chown -R {user} {path}; chgrp -R {group} {path}",
        (
            (f'[ -z "$(find {path} ! -user {user})" ]', f"{user} does not own all of {path}"),
            (f'[ -z "$(find {path} ! -group {group})" ]', f"{group} is not the group of all of {path}"),
        ),
        ("chown", "chgrp"),
    )


def _aged(draws: _Draws) -> ShellWish:
    user, days = draws.new(_PEOPLE), draws.number(30, 120)
    return ShellWish(
        f"let the password of {user} expire after {days} days.",
        f"useradd -m {user}",
        f"chage -M {days} {user}",
        ((f'[ "$(getent shadow {user} | cut -d: -f5)" = {days} ]', f"the password of {user} expires otherwise"),),
        ("chage",),
    )


def _other_shell(draws: _Draws) -> ShellWish:
    user = draws.new(_PEOPLE)
    return ShellWish(
        f"change the login shell of {user} to /bin/bash.",
        f"useradd -m -s /bin/sh {user}",
        f"chsh -s /bin/bash {user}",
        ((f'[ "$(getent passwd {user} | cut -d: -f7)" = /bin/bash ]', f"{user} has another shell"),),
        ("chsh",),
    )


_WISHES: dict[ShellKind, tuple[Callable[[_Draws], ShellWish], ...]] = {
    "files": (_made_file, _changed_mode, _moved, _copied, _linked, _removed, _counted, _replaced, _summed),
    "accounts": (_new_user, _new_group, _left_group, _owned, _aged, _other_shell),
}
"""Wishes by the kind of their task."""

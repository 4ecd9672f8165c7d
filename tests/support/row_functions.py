"""Reward functions and tools of tables in tests, good and bad."""

import asyncio
import os
import threading
import time
from typing import Literal

import numpy as np

WORDS = {
    "nan": float("nan"), "inf": float("inf"), "big": 7, "negative": -0.5, "text": "1", "none": None, "list": [1.0],
    "object": object(), "huge": 10**400,
}  # fmt: skip
"""Answers for which ``moody`` returns what is no reward."""


def exact(answer, row):
    return float(answer.strip() == str(row["answer"]))


def short(answer, row):
    return 1.0 if len(answer) < 5 else 0.25


def signed(answer, row):
    return -1.0 if answer == "bad" else 1.0


def truth(answer, row):
    return answer == row["answer"]


def numpy_truth(answer, row):
    return np.all(np.array([answer == row["answer"]]))


def tensor(answer, row):
    return np.array(float(answer == row["answer"]), dtype=np.float32)


def moody(answer, row):
    if answer == "hang":
        while True:
            pass
    if answer == "die":
        os._exit(3)
    if answer == "raise":
        raise KeyError("no such thing")
    if answer == "leave":
        raise SystemExit(1)
    if answer == "mutate":
        row.clear()
    return WORDS.get(answer, 1.0)


def pid(answer, row):
    """A number that tells processes apart."""
    return (os.getpid() % 1000) / 1000


MET = 0


async def meets(answer, row):
    """1 if ten calls are awaited at the same time."""
    global MET  # noqa: PLW0603
    MET += 1
    for _ in range(200):
        if MET >= 10:
            return 1.0
        await asyncio.sleep(0.01)
    return 0.0


async def slow(answer, row):
    await asyncio.sleep(60 if answer == "hang" else 0)
    if answer == "raise":
        raise ValueError("not this one")
    return 1.0


async def blocks(answer, row):
    time.sleep(60)
    return 1.0


def share(answers, rows):
    """Each answer's share of the longest."""
    longest = max(map(len, answers))
    return [len(answer) / longest for answer in answers]


def lacks_one(answers, rows):
    return [1.0] * (len(answers) - 1)


def some_are_wrong(answers, rows):
    return [WORDS.get(answer, 1.0) for answer in answers]


def three(answer, row, more):
    return 1.0


NO_FUNCTION = 3


class Fair:
    """A class, which is no function."""


def add(a: int, b: int = 3) -> str:
    """Add two numbers.

    Both are whole.

    Args:
        a: the first.
        b: the second, more
            or less.

    Returns:
        their sum.
    """
    return str(a + b)


def look(where: Literal["here", "there"], deep: list[dict[str, float | None]] | None = None) -> dict:
    """Look somewhere."""
    return {"where": where, "deep": deep}


def troubled(how: str) -> str:
    """Fail in some way."""
    if how == "hang":
        threading.Event().wait()
    if how == "die":
        os._exit(3)
    if how == "long":
        return "x" * 200_000
    raise {"value": ValueError, "key": KeyError, "zero": ZeroDivisionError}.get(how, RuntimeError)("so it is")


def undocumented(a: int) -> str:
    return str(a)


def untyped(a) -> str:
    """Has no hints."""
    return a


def strange(a: Fair) -> str:
    """Has a hint that JSON has not."""
    return "a"


def many(*numbers: int) -> str:
    """Takes any number."""
    return "a"


def answer(answer: str) -> str:
    """Has the name of the tool that ends an episode."""
    return answer


async def waits(a: int) -> str:
    """Is a coroutine function."""
    return str(a)

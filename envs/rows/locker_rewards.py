"""Reward functions of the table ``lockers.jsonl``: what a table's functions look like."""

from coevo.envs.rows.task_table import Row

TOOLS = ("key", "crowbar", "code")


def opens(answer: str, row: Row) -> float:
    """1 if the answer is the tool that opens the locker, else 0."""
    return float(answer.strip() == row["answer"])


def names_a_tool(answer: str, row: Row) -> float:
    """1 if the answer is a tool, whether it opens the locker or not."""
    return float(answer.strip() in TOOLS)

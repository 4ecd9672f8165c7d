from enum import StrEnum
from typing import Any

from pydantic import BaseModel


class RewardType(StrEnum):
    DB = "DB"
    ENV_ASSERTION = "ENV_ASSERTION"
    ACTION = "ACTION"
    COMMUNICATE = "COMMUNICATE"


class State(BaseModel):
    initialization_data: dict[str, Any] | None = None
    initialization_actions: list[dict[str, Any]] | None = None
    message_history: list[Any] | None = None


class Assertion(BaseModel):
    func_name: str
    arguments: dict[str, Any]


class Criteria(BaseModel):
    actions: list[dict[str, Any]] | None = None
    env_assertions: list[Assertion] | None = None
    communicate_info: list[str] | None = None
    reward_basis: list[RewardType]


class Task(BaseModel):
    id: str
    ticket: str | None = None
    user_scenario: str
    initial_state: State | None = None
    evaluation_criteria: Criteria

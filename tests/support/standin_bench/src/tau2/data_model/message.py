from typing import Any

from pydantic import BaseModel


class ToolCall(BaseModel):
    id: str
    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"


class ToolMessage(BaseModel):
    id: str
    content: str
    requestor: str
    role: str = "tool"
    error: bool = False


class AssistantMessage(BaseModel):
    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class UserMessage(AssistantMessage):
    pass

"""Faults of answers: the reasons why an answer of a policy holds no usable action, and what to change."""

from collections.abc import Mapping
from enum import StrEnum


class Fault(StrEnum):
    """Reason why an answer cannot be used; the environment then gets an empty action, and the turn is invalid."""

    NO_ACTION = "no action"
    """Nothing in the answer has the form of an action."""
    CUT_OFF = "cut off"
    """The answer reached its length limit before an action was complete."""
    CUT_OFF_THINKING = "cut off while thinking"
    """The answer reached its length limit before its thinking ended."""
    NO_TOOLS = "no tools here"
    """The answer calls a tool, but the environment has none."""
    NOT_A_CALL = "text instead of a call"
    """The action is text, but the environment takes calls of its tools."""
    UNKNOWN_TOOL = "unknown tool"
    """The answer calls a tool that the environment does not have."""
    UNFENCED = "code without a fence"
    """Code follows the action's first line without a fence, so that the action's end cannot be known."""
    MISSING_ARGUMENT = "missing argument"
    """The call lacks an argument that its tool requires."""
    REFUSED = "refused by the environment"
    """The environment does not understand the action; the fault of a turn, not of its answer."""
    UNKNOWN_NAME = "unknown action"
    """The form's label is followed by a name that the form does not have."""
    NO_PAYLOAD = "missing payload"
    """The action is named, but its fence or its labelled text does not follow."""
    REPEATED = "format repeated"
    """The answer repeats the format of the prompt and leaves it empty, as in ``Your SQL here``."""
    SEVERAL_LINES = "more than one line"
    """The action has several lines, and its form has one."""
    PARSER_FAILED = "parser failed"
    """The environment's own parser raised an exception, or returned something else than text."""
    MALFORMED_CALL = "malformed call"
    """The call is not complete JSON, or not an object with a name and arguments."""


REMEDIES: Mapping[str, str] = {
    Fault.NO_ACTION: "compare the prompt (--dry-run) with context.parser",
    Fault.CUT_OFF: "raise rollout.sampling.max_new_tokens",
    Fault.CUT_OFF_THINKING: "raise rollout.sampling.max_new_tokens, or set context.template",
    Fault.NO_TOOLS: "say in the environment's guide how to act, or declare its tools",
    Fault.NOT_A_CALL: "show a call of a tool in the environment's guide (--dry-run)",
    Fault.UNFENCED: "ask for a code fence in the environment's guide",
    Fault.UNKNOWN_TOOL: "name every tool in the environment's guide",
    Fault.MISSING_ARGUMENT: "describe each tool's arguments in the environment's guide",
    Fault.REFUSED: "describe the actions in the environment's guide (--dry-run)",
    Fault.UNKNOWN_NAME: "show each action in examples of the environment's answer form",
    Fault.NO_PAYLOAD: "show each action in examples of the environment's answer form",
    Fault.REPEATED: "show filled examples in the environment's answer form",
    Fault.SEVERAL_LINES: "ask for one line in the guide, or name a BlockForm",
    Fault.PARSER_FAILED: "mend the parser of the environment's answer form",
    Fault.MALFORMED_CALL: "context.parser, or a larger rollout.sampling.max_new_tokens",
}
"""Changes that help if a fault is frequent, in at most 63 characters."""

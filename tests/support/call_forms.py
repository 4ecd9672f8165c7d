"""Writers of tool calls: the forms that chat templates teach, for any arguments that are texts."""

import json


def _elements(arguments):
    inner = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in arguments.items())
    return f"<tool_call>\n<function=go>\n{inner}</function>\n</tool_call>"


def _pairs(arguments):
    inner = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in arguments.items())
    return f"<tool_call>go\n{inner}</tool_call>"


def _invoked(arguments):
    inner = "".join(f'<parameter name="{name}">{value}</parameter>\n' for name, value in arguments.items())
    return f'<function_calls>\n<invoke name="go">\n{inner}</invoke>\n</function_calls>'


def python(arguments):
    return f"go({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _broken_lines(arguments):
    """Python's notation with quotes and backslashes escaped, but no line breaks."""
    texts = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in arguments.items()}
    return "go({})".format(", ".join(f'{name}="{value}"' for name, value in texts.items()))


def named(arguments, written=json.dumps):
    return written({"name": "go", "arguments": arguments})


ELEMENTS = {"qwen coder": _elements, "glm": _pairs, "claude": _invoked}
"""Forms without escapes: a value may hold the tags around it."""
OBJECTS = {
    "hermes": lambda it: f"<tool_call>\n{named(it)}\n</tool_call>",
    "hermes, python": lambda it: f"<tool_call>\n{named(it, repr)}\n</tool_call>",
    "function": lambda it: f"<function=go>{json.dumps(it)}</function>",
    "mistral": lambda it: f"[TOOL_CALLS]go{json.dumps(it)}",
    "kimi": lambda it: (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.go:0<|tool_call_argument_begin|>"
        f"{json.dumps(it)}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "deepseek": lambda it: (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>go\n```json\n"
        f"{json.dumps(it)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "label": lambda it: f"Thought: so\nAction: go\nAction Input: {json.dumps(it)}",
    "label, python": lambda it: f"Action: go\nAction Input: {it!r}",
    "bare": named,
    "bare, python": lambda it: f"I go.\n{named(it, repr)}",
}
PYTHON = {
    "python": lambda it: f"<tool_call>{python(it)}</tool_call>",
    "python, line breaks": lambda it: f"<|python_tag|>{_broken_lines(it)}",
    "lfm": lambda it: f"<|tool_call_start|>[{python(it)}]<|tool_call_end|>",
    "python, listed": lambda it: f"[{python(it)}]",
    "python, fenced": lambda it: f"```tool_code\n{python(it)}\n```",
    "python, label": lambda it: f"Thought: so\nAction: {python(it)}",
    "python, label, line breaks": lambda it: f"Action: {_broken_lines(it)}",
}

"""The rule of the parser: the last complete action before the first invented observation."""

import time

import pytest

from coevo.models.answers.forms import FORMS
from coevo.models.answers.read import Reader
from coevo.records.demonstration import Answer

GO = "go to fridge 1"
TOOLS = (
    {"name": "go", "parameters": {"properties": {"to": {}}, "required": ["to"]}},
    {"type": "function", "function": {"name": "search", "parameters": {"required": ["query"]}}},
)


def read(text, form="auto", tools=(), thinking=False, finished=True):
    return Reader(form, tools, thinking).read(text, finished)


@pytest.mark.parametrize(
    "text, action",
    [
        ("Thought: x\nAction: go to fridge 1", GO),
        ('Action: search\n{"q": "mugs"} is what I want to find', "search"),
        ("Action: look\n{} nothing to add", "look"),
        ("**Thought:** x\n**Action:** go to fridge 1", GO),
        ("**Action**: go to fridge 1", GO),
        ("action: go to fridge 1", GO),
        ("Action:\ngo to fridge 1", GO),
        ("Action\ngo to fridge 1", GO),
        ("### Action\n\ngo to fridge 1", GO),
        ("Action: `go to fridge 1`", GO),
        ('Action: "go to fridge 1".', GO),
        ("Action: go to fridge 1.", GO),
        ("Action:\n```bash\nls -la /tmp\ncat a.txt\n```", "ls -la /tmp\ncat a.txt"),
        ("Action: SELECT a,\n  b FROM t\nWHERE c = 1;", "SELECT a,\n  b FROM t\nWHERE c = 1;"),
        ("Action: cat <<EOF > a\nx = 1\nEOF", "cat <<EOF > a\nx = 1\nEOF"),
        ('Action: {"tool": "search",\n "query": "abc"}', '{"tool": "search",\n "query": "abc"}'),
        ("Action: go to fridge 1\nThought: b\nAction: open fridge 1", "open fridge 1"),
        ("Action: go to fridge 1\nResult: You arrive\nAction: take apple", GO),
        ("Action: go to fridge 1\nObservation: You arrive\nAction: take apple", GO),
        ("Action: go to fridge 1<|im_end|>\n<|im_start|>user\nAction: take apple", GO),
        ("<think>I could do Action: look.</think>\nAction: go to fridge 1", GO),
        ("Action: search\nAction Input: weather in Paris", "search weather in Paris"),
        ("Thought: The last Action: failed, so retry.\nAction: open door", "open door"),
        ("Thought: It is cold. Action: go to fridge 1", GO),
        ("Thought: the\nmug.\nAction: go to fridge 1\nThat is all.", GO),
        ("Observation: a kitchen\nThought: x\nAction: go to fridge 1\nObservation: open\nAction: look", GO),
        ("```\nThought: x\nAction: go to fridge 1\n```", GO),
        ("Action: <action>go to fridge 1</action>", GO),
        ("<action>Action: go to fridge 1</action>", GO),
        ("Action: cat <<EOF > a\nObservation: b\nAction: c\nEOF", "cat <<EOF > a\nObservation: b\nAction: c\nEOF"),
        ("Action:\n```python\nprint('''\nResult: 1\n''')\n```", "print('''\nResult: 1\n''')"),
        ("Action: run(\n  a,\n  b\n)\nDone.", "run(\n  a,\n  b\n)"),
        ("Action: cd ..", "cd .."),
        ("Action: grep -v '^#' a.cfg", "grep -v '^#' a.cfg"),
        ('Action: echo "a" > "b"', 'echo "a" > "b"'),
        ("Action: __init__()", "__init__()"),
        ("Action: _private()", "_private()"),
        ("Action: *.txt", "*.txt"),
        ("**Action**: *.txt", "*.txt"),
        ("**Action:** *.txt", "*.txt"),
        ("- **Action:** _private()", "_private()"),
        ("**_Action:_** go to fridge 1", GO),
        ("**Action:**go to fridge 1", GO),
        ("__Action: __ go to fridge 1", GO),
        ("**Action: go to fridge 1**", GO),
        ("Action: **go to fridge 1**", GO),
        ("So. Action: __init__()", "__init__()"),
        ("So. **Action:** _private()", "_private()"),
        ("Action: print(1 << 3)\nI hope this works.", "print(1 << 3)"),
        ("Action: say hello :(\nI hope this works.", "say hello :("),
        ("Action: go north,\nthen I will look", "go north,"),
        ("Action: SELECT a,\nb FROM t\nThat is all.", "SELECT a,\nb FROM t"),
        ("Action: run(a,\nb)\nDone.", "run(a,\nb)"),
        ("Selected action: go to fridge 1", GO),
        ("Best action: go to fridge 1", GO),
        ("Action - go to fridge 1", GO),
        ("**Action** - go to fridge 1", GO),
        ("Action – go to fridge 1", GO),
        ("[Action]: go to fridge 1", GO),
        ("`Action: go to fridge 1`", GO),
        ("Action： go to fridge 1", GO),
        ("• Action: go to fridge 1", GO),
        ("2) Action: go to fridge 1", GO),
        ("<b>Action:</b> go to fridge 1", GO),
        ("Action to take: go to fridge 1", GO),
        ("The next action is: go to fridge 1", GO),
        ("Agent: Action: go to fridge 1", GO),
        ("Action: go to fridge 1\n\nAssistant: Action: look", GO),
        ("Action: bash\n```bash\n<your command>\n```\nSo:\nAction: look", "look"),
    ],
)
def test_the_action_of_an_answer(text, action):
    assert read(text) == Answer(read(text).thought, action)


@pytest.mark.parametrize(
    "text, how, fault",
    [
        ("", {}, "no action"),
        ("I would go to the fridge.", {}, "no action"),
        ("Thought: the last Action: failed", {}, "no action"),
        ("Thought: x\nAction:", {}, "no action"),
        ("I will look at the code.\naction = policy(obs)\nThat is all.", {}, "no action"),
        ("He did it. action - packed movie", {}, "no action"),
        ("Action: go to fr", {"finished": False}, "cut off"),
        ("Thought: I think that", {"finished": False}, "cut off"),
        ("<action>go to fr", {"finished": False}, "cut off"),
        ("<action>go to fr", {"form": "tag"}, "no action"),
        ("Action:\n```bash\nls -la", {"finished": False}, "cut off"),
        ('Action: {"tool": "sea', {"finished": False}, "cut off"),
        ("Action: run(a,\nb,\n", {"finished": False}, "cut off"),
        ("<think>a line\nAction: look\nLet me think", {"finished": False}, "cut off while thinking"),
        ("a line\nAction: look\nLet me think", {"finished": False, "thinking": True}, "cut off while thinking"),
        ("a line\nAction: look", {"thinking": True}, "no action"),
        ('<tool_call>{"name": "go", "arguments": {"to": "a"}}</tool_call>', {}, "no tools here"),
        ('<tool_call>{"name": "fly", "arguments": {"to": "a"}}</tool_call>', {"tools": TOOLS}, "unknown tool"),
        ("Action: fly\nAction Input: a", {"tools": TOOLS}, "unknown tool"),
        ('<tool_call>{"name": "go", "arguments": {"from": "a"}}</tool_call>', {"tools": TOOLS}, "missing argument"),
        ('<tool_call>{"name": "go"}</tool_call>', {"tools": TOOLS}, "missing argument"),
        ('<tool_call>{"name": "go", "arguments": </tool_call>', {"tools": TOOLS}, "malformed call"),
        ('<tool_call>{"name": "go", "argum', {"tools": TOOLS, "finished": False}, "cut off"),
    ],
)
def test_an_answer_without_a_usable_action_has_its_fault(text, how, fault):
    answer = read(text, **how)
    assert (answer.action, answer.fault) == ("", fault)


@pytest.mark.parametrize(
    "text, action",
    [
        ("Action: go to fridge 1\nThought: b\nAction: open fri", GO),
        ("Action: go to fridge 1\n", GO),
        ("Action: go to fridge 1\nObservation: you arr", GO),
        ("<action>go to fridge 1</action> and th", GO),
        ("Action:\n```\ngo to fridge 1\n```", GO),
    ],
)
def test_a_cut_answer_keeps_its_last_complete_action(text, action):
    assert read(text, finished=False) == Answer("", action)


def test_a_call_where_tools_are_offered_is_its_name_and_arguments():
    said = '<tool_call>{"name": "go", "arguments": {"to": "fridge 1"}}</tool_call>'
    assert read(said, tools=TOOLS) == Answer("", '{"name": "go", "arguments": {"to": "fridge 1"}}')
    assert read("Action: search\nAction Input: weather in Paris", tools=TOOLS).action == (
        '{"name": "search", "arguments": {"query": "weather in Paris"}}'
    )


def test_of_several_calls_the_last_one_before_an_invented_result_counts():
    calls = [f'<tool_call>{{"name": "go", "arguments": {{"to": "{to}"}}}}</tool_call>' for to in "abc"]
    assert '"b"' in read("\n".join(calls[:2]), tools=TOOLS).action
    assert '"a"' in read(f"{calls[0]}\n<tool_response>ok</tool_response>\n{calls[1]}", tools=TOOLS).action
    assert '"a"' in read(f"{calls[0]}\nObservation: ok\n{calls[1]}", tools=TOOLS).action


SEARCH, LAST = (f'{{"name": "search", "arguments": {{"query": "{query}"}}}}' for query in "ab")


@pytest.mark.parametrize(
    "text, action",
    [
        (f"I will search.\n{SEARCH}", SEARCH),
        (f"I will search.\n\n[{SEARCH}, {LAST}]\n", LAST),
        (f"{SEARCH}; {LAST}", LAST),
        (f"So:\n{SEARCH}; {LAST}", LAST),
        (f"{SEARCH}\nThen:\n{LAST}", LAST),
        (f"{SEARCH}\nObservation: ok\n{LAST}", SEARCH),
        (f'{SEARCH}; {{"name": "sea', SEARCH),
        (f"```json\n{SEARCH}\n{LAST}\n```", LAST),
        (f"<tool_call>{SEARCH}\n{LAST}</tool_call>", LAST),
        (f"Action: search the web\n{SEARCH}", SEARCH),
        ('Action: go\nAction Input:\n{"to": "a", "name": "b", "input": "c"}',
         '{"name": "go", "arguments": {"to": "a", "name": "b", "input": "c"}}'),
    ],
)  # fmt: skip
def test_calls_in_json_need_no_marks(text, action):
    assert read(text, tools=TOOLS).action == action


@pytest.mark.parametrize(
    "text, fault",
    [
        ('It is\n{"name": "Bob"}', "no action"),
        (f"Use {SEARCH} here", "no action"),
        ('So:\n{"name": "fly", "arguments": {}}', "unknown tool"),
        ("<tool_call>)#</tool_call>", "malformed call"),
    ],
)
def test_other_json_is_no_call(text, fault):
    assert read(text, tools=TOOLS).fault == fault


def test_an_action_in_text_counts_where_calls_do_not():
    call = '<tool_call>{"name": "go", "arguments": {"to": "a"}}</tool_call>'
    assert read(f"Action: go to fridge 1\n{call}").action == GO


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_in_each_form_reads_back(form):
    tools = TOOLS if form == "call" else ()
    action = '{"name": "go", "arguments": {"to": "a"}}' if tools else GO
    assert read(FORMS[form].write(Answer("it is cold", action)), form, tools).action == action


@pytest.mark.parametrize("form, text", [("label", "<action>look</action>"), ("tag", "Action: look"), ("call", "look")])
def test_a_parser_reads_its_own_form_only(form, text):
    assert read(text, form).fault == "no action"


MARKS = ("(", "[", "**", " ", "\n", "Action", "Action:\n", "Action: (\n", "a. ", "<action>", "```", "<<EOF\n", '{"a":')
CALL_MARKS = ("<think>", "</think>", "<tool_call>", "<function=a>", "<arg_key>", "<parameter=a>", "[TOOL_CALLS]{")


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("part", [*MARKS, *CALL_MARKS, "Observation:\n"])
def test_no_answer_takes_long(part, finished):
    begun = time.process_time()
    read(part * (20_000 // len(part)), tools=TOOLS, finished=finished)
    read("Action: " + part * (20_000 // len(part)), finished=finished)
    assert time.process_time() - begun < 2


LONG = {
    "labels behind sentences": "Let me see. Action: go,\n" * 800,
    "labels in one line": ". Action: (" * 100 + "\n" * 19_000,
    "blanks behind a name": "<tool_call>search" + " " * 19_000 + "x",
    "blanks between marks": "<tool_call>search" + "[CALL_ID]x " * 1_700 + "x",
    "names of arguments": "<tool_call>search" + "<arg_key>a</arg_key><arg_value>" * 600 + "</tool_call>",
    "keys of arguments": "<tool_call>search" + "<arg_key>" * 2_200 + "</tool_call>",
    "marks behind an action": "Action: a <think> " * 1_100,
    "quotes that do not close": "Action: a <think> " + "\\' \"" * 4_800,
    "observations in brackets": "Action: (" + "(Observation: " * 1_300,
    "observations without an end": ("observation" + " " * 2_000 + "\n") * 9,
    "queries": "Action: " + "SELECT a\n\n-- b\n" * 1_100,
    "statements": "Action: " + "SELECT a;\n\n" * 1_600,
    "a query in one line": "Action: SELECT " + "'a -- " * 3_000 + "\nb;",
    "code": "Action: ls\n" + "x = 1\n\n# y\n" * 1_500,
    "blocks": "Action: " + "if x; then\n" * 1_700,
    "a line of code": "Action: ls\n" + "for a in b | " * 1_500,
    "objects": '{"name": "look", "input": {}} ' * 650,
    "open lines": "Action: (\n" + "x\n" * 9_500,
}


@pytest.mark.parametrize("name", LONG)
def test_no_repeated_label_or_blank_takes_long(name):
    begun = time.process_time()
    read(LONG[name], tools=TOOLS)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "value", ["{1,2}", 'b"x"', "...", "1+2j", "{(1,2):3}", "{{}: 1}", "0x" + "f" * 5_000, "1e999", "[{1}]"]
)
def test_a_value_that_json_lacks_is_a_malformed_call(value):
    assert read(f"<tool_call>search(query={value})</tool_call>", tools=TOOLS).fault == "malformed call"


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_json_lacks_is_a_malformed_call(value):
    said = f'<tool_call>{{"name": "search", "arguments": {{"query": {value}}}}}</tool_call>'
    assert read(said, tools=TOOLS).fault == "malformed call"


@pytest.mark.parametrize("name", ["f" + "()" * 400, "f" + ".a" * 450])
def test_a_call_of_a_deep_expression_is_malformed(name):
    said = f"<tool_call>{name}()</tool_call>"
    assert read(said, tools=TOOLS).fault in ("malformed call", "unknown tool")
    assert read(said).fault == "no tools here"


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"function": ', "}")])
def test_a_call_inside_deep_lists_or_calls_is_read(before, after):
    said = f'<tool_call>{before * 900}{{"name": "search"}}{after * 900}</tool_call>'
    assert read(said, tools=TOOLS).fault == "missing argument"


@pytest.mark.parametrize("text", ["write <p><s>old</s> new</p>", "say [INST] now", "say <s>a</s>, then [/INST] b"])
def test_html_ends_no_action(text):
    assert read(f"Action: {text}").action == text
    assert read(f"Action: {text}</s>").action == text
    assert read(f"Action: {text}</s>[INST] a hall [/INST] Action: look").action == text
    assert read(f"Action: {text}\n[INST] a hall [/INST]\nAction: look").action == text


@pytest.mark.parametrize("mark", ["<s>a</s> b", "<tool_call>", "</tool_call>", "</function>", "<think>", "[INST]"])
@pytest.mark.parametrize("before", ["<tool_call>", "[TOOL_CALLS]", "<think>so</think><tool_call>", "", "Action: "])
def test_marks_in_a_string_of_json_are_data(before, mark):
    call = f'{{"name": "search", "arguments": {{"query": "{mark}"}}}}'
    assert read(before + call + "</tool_call>" * ("<tool_call>" in before), tools=TOOLS).action == call


def test_halves_of_surrogate_pairs_are_replaced():
    said = r'<tool_call>{"name": "search", "arguments": {"query": "a \ud83d b \ud83d\ude00"}}</tool_call>'
    assert read(said, tools=TOOLS).action == '{"name": "search", "arguments": {"query": "a ? b \U0001f600"}}'

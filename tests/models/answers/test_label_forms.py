"""Answers in a labelled form, and in a tag: complete actions are read whole, and no incomplete one is passed on."""
# ruff: noqa: E501  (a case is read best in one line)

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import answer_shapes as shapes

from coevo.models.answers.forms import format_of
from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import BlockForm, LineForm, NamedAction, NamedForm, TagForm
from coevo.records.demonstration import Answer

DATABASE, SHELL, HOUSEHOLD = shapes.DATABASE, shapes.SHELL, shapes.HOUSEHOLD
LINE, BLOCK = LineForm(), BlockForm(label="SQL")
CORPUS = {
    "database": (DATABASE, shapes.fenced(DATABASE, shapes.QUERIES) | shapes.answers() | shapes.rounds()),
    "shell": (SHELL, shapes.fenced(SHELL, shapes.SCRIPTS, {})),
    "household": (HOUSEHOLD, shapes.tagged()),
}
F = "```"


def wrong(form, members, finished=True):
    """Members that are read in another way than they should be."""
    read = Reader(form).read
    return [
        (text, action, read(text, finished))
        for text, action in members
        if read(text, finished).action != (action or "")
    ]


@pytest.mark.parametrize("task", CORPUS)
def test_complete_answers_are_read_whole(task):
    form, found = CORPUS[task]
    assert all(len(members) >= 10 for members in found.values())
    assert [(shape, *each) for shape, members in found.items() for each in wrong(form, members)] == []


def test_no_incomplete_answer_is_passed_on():
    assert wrong(DATABASE, shapes.incomplete(shapes.INCOMPLETE, "Action", "Operation")) == []
    assert wrong(DATABASE, shapes.incomplete(shapes.CUTS, "Action", "Operation"), finished=False) == []
    assert wrong(HOUSEHOLD, [(text, None) for text in shapes.UNTAGGED]) == []


def test_shapes_that_occur_together_are_read_whole():
    members = shapes.mixed(600)
    assert len(wrong(DATABASE, members)) <= len(members) // 100, wrong(DATABASE, members)[:3]


@pytest.mark.parametrize("task", CORPUS)
def test_wherever_an_answer_is_cut_it_holds_the_whole_action_or_none(task):
    form, found = CORPUS[task]
    for shape, members in found.items():
        draw = random.Random(shape)
        for text, action in members[:3]:
            cuts = draw.sample(range(len(text)), min(len(text), 12))
            assert {Reader(form).read(text[:cut], finished=False).action for cut in cuts} <= {"", action}, text


@pytest.mark.parametrize(
    "text, action",
    [
        (f"🔧 **Action:** Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"<b>Action:</b> Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        ("Action: Operation\nSQL: SELECT a FROM t;", "Operation SELECT a FROM t;"),
        ("Action: Operation\n**Query:**\nSELECT a\nFROM t\nWHERE b = 2;\n", "Operation SELECT a\nFROM t\nWHERE b = 2;"),
        ("Action: Operation\n`SELECT a FROM t;`\nThis lists.", "Operation SELECT a FROM t;"),
        ("Action: Operation\n“SELECT 1;”", "Operation SELECT 1;"),
        ("Action: Operation SELECT a FROM `t` WHERE `b` = 1;", "Operation SELECT a FROM `t` WHERE `b` = 1;"),
        ("Action: Operation\nSELECT a,\n  b\n  FROM t\n\n WHERE c = 1\n", "Operation SELECT a,\n  b\n  FROM t\n\n WHERE c = 1"),
        ("Action: Operation\n-- all\nSELECT 1;", "Operation -- all\nSELECT 1;"),
        ("Action: Operation\nSHOW TABLES;", "Operation SHOW TABLES;"),
        (f"1. Action: Operation\n   {F}sql\n   SELECT a\n   FROM t;\n   {F}", "Operation SELECT a\nFROM t;"),
        (f"> Action: Operation\n> {F}sql\n> SELECT a\n> FROM t;\n> {F}", "Operation SELECT a\nFROM t;"),
        (f"[/INST] Action: Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"<|im_start|>assistant\nAction: Operation\n{F}sql\nSELECT 1;\n{F}<|im_end|>", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql SELECT 1; {F}", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}SELECT 1;{F}", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql\nSELECT 1;\n\nThis query lists all.", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql\nSELECT 1;\n\nResult:\n{F}\n| 1 |\n{F}\nAction: Answer\nFinal Answer: 1", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}\nSELECT 1;\nUser: ok\nAgent: Action: Operation\n{F}\nSELECT 2;\n{F}", "Operation SELECT 1;"),
        (f"Action: Operation\nThe schema is:\n{F}\nid | name\n{F}\nso\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql\nSELECT 1;\n{F}\nor\n{F}sql\nSELECT 2;\n{F}", "Operation SELECT 1;"),
        (f"{F}\nThought: x\nAction: Operation\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"{F}\nThought: x\nAction: Operation\n{F}sql\nSELECT 1;\n{F}\n{F}", "Operation SELECT 1;"),
        (f"Thought: not\n{F}sql\nSELECT 0;\n{F}\nbut another.\nAction: Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql\nINSERT INTO t VALUES ('a\nUser: x\nb');\n{F}", "Operation INSERT INTO t VALUES ('a\nUser: x\nb');"),
        (f"Action: Operation\n{F}sql\n-- Action: Answer\n-- Result: all\nSELECT 1;\n{F}", "Operation -- Action: Answer\n-- Result: all\nSELECT 1;"),
        (f"Action: Operation\n{F}sql\nSELECT 1\n{F}\nWait, this is wrong.\nAction: Operation\n{F}sql\nSELECT 2\n{F}", "Operation SELECT 2"),
        (f"Action: Operation\n{F}sql\nSELECT 1\n{F}\n\nNow I wait.\n\nAction: Answer\nFinal Answer: 3", "Operation SELECT 1"),
        (f"Action: Operation\n\nThought: x\n\nAction: Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"I use:\n{F}sql\nSELECT 0\n</think>\nAction: Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"**Final Answer**\n\nThe query is:\nAction: Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        ("**Final Answer**\n\\boxed{42}", "Answer 42"),
        ("Action: Answer\nFinal Answer: The answer is \\boxed{\\text{Rome}}.", "Answer Rome"),
        ("Action: Answer\nFinal Answer: **42**", "Answer 42"),
        ("Action: Answer: 42", "Answer 42"),
        ("Action: Answer\nAnswer: 42", "Answer 42"),
        ("Action: Answer, Final Answer: 42", "Answer 42"),
        ("So I answer. Action: Answer. Final Answer: 42", "Answer 42"),
        ("Action: Answer\n\nFinal Answer: \n\n- Rome\n- Ostia\n\nBoth lie there.", "Answer - Rome\n- Ostia"),
        ("Action: Answer\nFinal Answer: Rome\nOstia\nThese are all.", "Answer Rome\nOstia"),
        ('Action: Answer\nFinal Answer: ["a"]<|eot_id|>assistant\n\nAction: Answer\nFinal Answer: c', 'Answer ["a"]'),
        (f"Action:\n- Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"{F}\nAction: Operation\n{F}\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"Action:\n{F}\nOperation\n{F}\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"Action: Answer by a query\nAction: Operation is needed.\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        (f"Action: Operation\n{F}sql\nINSERT INTO t VALUES ('{F}x{F}');\n{F}", f"Operation INSERT INTO t VALUES ('{F}x{F}');"),
        (f"Action: Operation\n{F}sql\n-- all rows ...\nSELECT 1;\n{F}", "Operation -- all rows ...\nSELECT 1;"),
        (f"I use ```SELECT 0```.\nAction: Operation\n**Action Input**:\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
        ('Final Answer: ["x"]\n\nAction: Answer', 'Answer ["x"]'), ("Action: Answer\nFinal Answer: 42\nQuestion: b", "Answer 42"),
        ("Action: Answer\n<b>Final Answer:</b> 3", "Answer 3"), ("Action: Answer\nFinal Answer: 42\n---\nso", "Answer 42"),
        ("Action: Answer\nFinal Answer:\n| a |\n|---|\n| 1 |\n", "Answer | a |\n|---|\n| 1 |"),
        (f"Action – Operation\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"),
    ],
)  # fmt: skip
def test_answers_to_a_database_task(text, action):
    assert Reader(DATABASE).read(text).action == action


@pytest.mark.parametrize(
    "text, action",
    [
        ("Think: done.\n\nAct: finish", "finish"), ("Act: finish.", "finish"), ("Act: bash\nls -la", "bash ls -la"),
        (f"When done I use\nAct: finish\nbut first\nAct: bash\n{F}bash\nls\n{F}", "bash ls"),
        (f"Act: finish\nUser: ok\nAct: bash\n{F}bash\nls\n{F}", "finish"),
        (f"Act: bash\n{F}bash\n# Output: x\nls\n# Result: y\n{F}", "bash # Output: x\nls\n# Result: y"),
        (f"Act: bash\n{F}bash\necho a\n{F}\nOutput:\na\nAct: finish", "bash echo a"),
        (f"Act: bash\n{F}sh\ncat > a.md <<'E'\n{F}bash\nnpm i\n{F}\nE\n{F}", f"bash cat > a.md <<'E'\n{F}bash\nnpm i\n{F}\nE"),
    ],
)  # fmt: skip
def test_answers_to_a_shell_task(text, action):
    assert Reader(SHELL).read(text).action == action


@pytest.mark.parametrize(
    "text, action",
    [
        ("Thought: x\nAction: go to desk 1", "go to desk 1"), ("**Action:** `go to desk 1`.\n", "go to desk 1"),
        ("Action:\n\ngo to desk 1\n\nThis.", "go to desk 1"), ("Action: go to desk 1\ntake mug 1", "go to desk 1"),
        (f"Action:\n{F}\ngo to desk 1\n{F}", "go to desk 1"), ("Action: <your action>\nAction: look", "look"),
        ("Action: __init__()", "__init__()"), ("Action: *.txt", "*.txt"), ("Action: search[a: b]", "search[a: b]"),
        ("Action： 去桌子", "去桌子"), ("Action: open door Observation: it opens", "open door"),
        ("The last Action: failed, so retry.\nAction: open door", "open door"), ("action - look", "look"),
        ("`Action: look`", "look"), ("Action: “look”", "look"), ("Action: put mug in/on shelf 2.", "put mug in/on shelf 2"),
        ("Action: cd ..", "cd .."), ("Action: lookup U.S.", "lookup U.S."), ("Action:\n- go to desk 1\n- look", "go to desk 1"),
        ("Action: look\nThought: then\nAction: go", "look"), ("Action: look\nNo, wait.\nAction: go", "go"),
    ],
)  # fmt: skip
def test_one_line_behind_a_label(text, action):
    assert Reader(LINE).read(text).action == action


@pytest.mark.parametrize(
    "text, action",
    [
        ("SQL:\nSELECT a\n\nFROM t;\n", "SELECT a\n\nFROM t;"), ("Thought: x\nSQL: SELECT a\nFROM t;\nNote: y", "SELECT a\nFROM t;"),
        (f"SQL:\n{F}sql\nSELECT a\n{F}\nso", "SELECT a"), (f"SQL:\nSELECT a\n{F}", "SELECT a"), ("SQL: a\nUser: b\nSQL: c", "a"),
        (f"{F}\nSQL: SELECT a\n{F}\nI hope.", "SELECT a"), (f"SQL:\nHere it is:\n{F}sql\nSELECT a\n{F}", "SELECT a"),
        ("SQL:\nanything at all,\n\n  as it is", "anything at all,\n\n  as it is"), ("The SQL is good.\nSQL: SELECT 1", "SELECT 1"),
    ],
)  # fmt: skip
def test_all_lines_up_to_the_next_label(text, action):
    assert Reader(BLOCK).read(text).action == action


@pytest.mark.parametrize(
    "form, text, fault",
    [
        (DATABASE, "I query.", Fault.NO_ACTION), (DATABASE, "Action: Query\nSELECT 1;", Fault.UNKNOWN_NAME),
        (DATABASE, "Action: Operation\nThe table is empty.", Fault.NO_PAYLOAD), (DATABASE, "Action: Answer", Fault.NO_PAYLOAD),
        (DATABASE, f"Action: Operation\n{F}sql\nYour SQL here\n{F}", Fault.REPEATED), (LINE, "Action: ...", Fault.REPEATED),
        (DATABASE, f"Action: Operation\n{F}sql\nSELECT ... FROM t;\n{F}", Fault.REPEATED), (SHELL, "Act: finished", Fault.UNKNOWN_NAME),
        (DATABASE, "Action: Operation\nSELECT a\nb\nFROM t", Fault.UNFENCED), (SHELL, "Act: bash\nI look first.", Fault.NO_PAYLOAD),
        (SHELL, f"Act: bash\n{F}python\nprint(1)\n{F}", Fault.NO_PAYLOAD), (LINE, f"Action:\n{F}\na\nb\n{F}", Fault.SEVERAL_LINES),
        (LINE, "go north", Fault.NO_ACTION), (LINE, "Action:", Fault.NO_ACTION), (BLOCK, "SQL:\n\n", Fault.NO_ACTION),
        (HOUSEHOLD, "Action: look", Fault.NO_ACTION), (HOUSEHOLD, "<action>...</action>", Fault.NO_ACTION),
        (DATABASE, f"I could run:\n{F}sql\nSELECT 1;\n{F}\nAction: Operation\nHere is the query:", Fault.NO_PAYLOAD),
    ],
)  # fmt: skip
def test_what_differs_from_the_form_is_a_fault_with_its_reason(form, text, fault):
    answer = Reader(form).read(text)
    assert (answer.action, answer.fault) == ("", fault)


def test_a_tag_of_another_name_is_another_form():
    assert Reader(TagForm(name="move")).read("<action>a</action><move>b</move>").action == "b"
    assert Reader(TagForm(name="move")).read("I think.\n<move>b</move>").action == "b"
    ended = "I reason without an end.\n<action>look</action>"
    assert Reader(HOUSEHOLD, thinking=True).read(ended).action == "look"
    assert Reader(HOUSEHOLD, thinking=True).read(f"{ended} or not").action == ""
    assert Reader(HOUSEHOLD, thinking=True).read(ended, finished=False).action == ""


def test_an_example_of_the_form_that_is_repeated_is_passed_over():
    form = DATABASE.model_copy(update={"examples": ("Operation SELECT b FROM u;",)})
    text = f"Action: Operation\n{F}sql\nSELECT b FROM u;\n{F}\nSo:\nAction: Operation\n{F}sql\nSELECT 1;\n{F}"
    assert Reader(form).read(text).action == "Operation SELECT 1;"
    assert Reader(DATABASE).read(text).action == Reader(form).read(text[: text.index("So:")]).action == form.examples[0]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1)


@given(WORDS)
def test_any_payload_in_a_fence_is_read_as_it_is_written(words):
    form = NamedForm(actions=(NamedAction(name="run", fence="text"),))
    payload = f"x {words} y"
    said = format_of("auto", form, with_tools=False).write(Answer("so", f"run {payload}"))
    assert Reader(form).read(said).action in (f"run {payload}", "")


@pytest.mark.parametrize("form", [DATABASE, SHELL, LINE, BLOCK, HOUSEHOLD])
def test_hostile_answers_are_read_in_time(form):
    units = [
        "-",
        "Action: ",
        "Action: Operation\n",
        F,
        "\n",
        f"{F}sql\n",
        " ",
        "User:\n",
        "<<EOF\n",
        "1. ",
        "*_",
        "[",
        "<think>",
        "<action>",
    ]
    start = time.process_time()
    for unit in units:
        Reader(form).read(unit * (40_000 // len(unit)))
    assert time.process_time() - start < 5

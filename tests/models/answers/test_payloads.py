"""Actions of a name and a payload, in the shapes of real answers: a label, a name, and a query or a final answer."""

from itertools import product
from time import process_time

import pytest

from coevo.models.answers.read import Reader
from coevo.models.answers.spans import fences
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import NamedAction, NamedForm

LABELS = ["Action: {}", "**Action:** {}", "**Action**: {}", "Action:\n{}", "### Action\n{}", "Action: **{}**"]
THOUGHTS = ["", "Thought: I need the rows.\n", "the rows of the table.\n\n", "}\n", "\n\n\n", "1. First, list them.\n"]
QUERIES = [
    "SELECT a FROM t;",
    "SELECT a, b\nFROM t\nWHERE c = 'x';",
    "UPDATE t SET a = 'Action: Answer' WHERE b = 1;",
    "INSERT INTO t\n(a, b)\nVALUES\n(1, 'it''s');",
    "WITH x AS (\n  SELECT 1\n)\nSELECT * FROM x;",
]
ANSWERS = ["42", '["a", "b"]', "Rome", '[["a", 1], ["b", 2]]', "1,800 ft", "none"]
FENCES = {
    "fence": "{label}\n```sql\n{query}\n```",
    "fence without a language": "{label}\n```\n{query}\n```",
    "fence of tildes": "{label}\n~~~sql\n{query}\n~~~",
    "blank line before": "{label}\n\n```sql\n{query}\n```",
    "blank lines before": "{label}\n\n\n```SQL\n{query}\n```",
    "prose before": "{label}\nHere is the query:\n```sql\n{query}\n```",
    "prose and a blank before": "{label}\n\nThis lists them.\n\n```mysql\n{query}\n```",
    "prose behind": "{label}\n```sql\n{query}\n```\nThis query lists them.",
    "label inside": "```sql\n{label}\n{query}\n```",
    "label and a blank inside": "```\n{label}\n\n{query}\n```",
    "label behind": "```sql\n{query}\n```\n{label}",
    "label behind a blank line": "```sql\n{query}\n```\n\n{label}",
    "no fence": "{label}\n{query}",
    "no fence, a blank before": "{label}\n\n{query}",
    "no fence, prose behind": "{label}\n{query}\nThis query lists them.",
    "fence at the end, not closed": "{label}\n```sql\n{query}",
    "fence without a language at the end, not closed": "{label}\n```\n{query}",
}
FINALS = {
    "label": "{label}\nFinal Answer: {answer}",
    "bold": "{label}\n**Final Answer:** {answer}",
    "bold, colon behind": "{label}\n**Final Answer**: {answer}",
    "blank before": "{label}\n\nFinal Answer: {answer}",
    "prose before": "{label}\nI have counted them.\nFinal Answer: {answer}",
    "next line": "{label}\nFinal Answer:\n{answer}",
    "fence": "{label}\nFinal Answer:\n```\n{answer}\n```",
    "boxed": "{label}\nFinal Answer: \\boxed{{{answer}}}",
    "boxed without its label": "{label}\n\\boxed{{{answer}}}",
    "explained": "{label}\nFinal Answer: {answer}\nThis is the answer because it is.",
    "explained behind a blank": "{label}\nFinal Answer: {answer}\n\nit was counted twice.",
    "explained with a label": "{label}\nFinal Answer: {answer}\nExplanation: it was counted.",
}
ROUNDS = [
    "",
    "\nResult: 3 rows\nThought: so\nAction: Answer\nFinal Answer: [3]",
    "\nUser: [(1,)]\nAgent: Thought: so\nAction: Operation\n```sql\nSELECT 9;\n```",
    "\n\nOutput:\n[(1,)]\n\nAction: Answer\nFinal Answer: wrong",
    "\nObservation: ok\nAction: Operation\n```sql\nDROP TABLE t;\n```\nResult: ok",
    "\n\n**User:** done\n\n**Agent:** Action: Answer",
]
REPEATED = 'Action: Operation\n```sql\nYour SQL here\n```\n\nor\n\nAction: Answer\nFinal Answer: ["a"]\n\n'


def read(text, finished=True):
    return Reader().read(text, finished)


@pytest.mark.parametrize("shape", FENCES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_name_keeps_its_query(shape, query):
    for label, thought in product(LABELS, THOUGHTS):
        if shape.startswith("label") and label != LABELS[0]:
            continue
        said = thought + FENCES[shape].format(label=label.format("Operation"), query=query)
        assert read(said).action == f"Operation {query}", said


@pytest.mark.parametrize("shape", FINALS)
@pytest.mark.parametrize("given", ANSWERS)
def test_a_name_keeps_its_answer(shape, given):
    for label, thought in product(LABELS, THOUGHTS):
        said = thought + FINALS[shape].format(label=label.format("Answer"), answer=given)
        assert read(said).action == f"Answer {given}", said


@pytest.mark.parametrize("shape", [each for each in FENCES if "not closed" not in each and "no fence" not in each])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_first_round_counts_of_those_that_an_answer_invents(shape, rounds):
    said = FENCES[shape].format(label="Action: Operation", query=QUERIES[1])
    assert read(said + rounds).action == f"Operation {QUERIES[1]}"
    assert read(said + rounds, finished=False).action == (
        "" if shape.startswith("label behind") and not rounds else f"Operation {QUERIES[1]}"
    )


@pytest.mark.parametrize("shape", FINALS)
@pytest.mark.parametrize("rounds", ROUNDS[1:])
def test_an_answer_ends_at_an_invented_round(shape, rounds):
    said = FINALS[shape].format(label="Action: Answer", answer='["a"]')
    assert read(said + rounds).action == 'Answer ["a"]'


@pytest.mark.parametrize("shape", FENCES)
def test_a_format_that_is_repeated_and_then_used_is_used(shape):
    said = REPEATED + FENCES[shape].format(label="Action: Operation", query=QUERIES[0])
    assert read(said).action == f"Operation {QUERIES[0]}"


MARKED = [
    'SELECT "```" FROM t;', "UPDATE t SET a = '```sql' WHERE b = 1;", "INSERT INTO t VALUES ('a ``` b', '~~~');",
    'echo "```" > f; cat f', "print('x ``` y')", "sed -i 's/```/~~~/' notes.md", "cat > f <<EOF\nAction: x\n```\nEOF",
    "cat <<'END' | sh\necho '```sql'\n```\ntrue\nEND\ntrue", "grep -c '^```' *.md && echo ok", 'a = "~~~ no ~~~"',
    "SELECT 1 -- not ``` here\nFROM t;", "awk '/```/ {print $1}' f | sort",
]  # fmt: skip
"""Code with the mark of a fence in it."""
AROUND = ["```{}\n", "````{}\n", "`````{}\n", "~~~{}\n", "~~~~{}\n"]
BEHIND = ["", "\n", "\nObservation: x", "\n\nor\n```sql\nSELECT 9\n```"]
IN_LONGER = ["cat f\n```\ncat g", "```\ncode\n```", "echo a\n```sql\necho b\n```\necho c"]
"""Code with a line that is the mark of a fence, which a longer mark encloses."""
NAMED = NamedForm(actions=(NamedAction(name="Operation", fence=""),))


@pytest.mark.parametrize("code", [*MARKED, *IN_LONGER])
def test_the_mark_of_a_fence_in_code_does_not_end_it(code):
    for opening, language, behind, label in product(AROUND, ("", "bash"), BEHIND, LABELS[:2]):
        mark = opening.partition("{")[0]
        if code not in IN_LONGER or len(mark) > 3 or mark[0] == "~":
            said = f"{label.format('Operation')}\n{opening.format(language)}{code}\n{mark}{behind}"
            assert read(said).action == Reader(NAMED).read(said).action == f"Operation {code}", said
            assert Reader("fence").read(f"So:\n{opening.format(language)}{code}\n{mark}").action == code, said


def test_many_marks_are_read_in_little_time():
    since = process_time()
    for text in ("a ``` b\n" * 20_000, "``` " * 40_000, "```\n" * 40_000, "<<EOF\n```\n" * 20_000):
        fences(text)
    assert process_time() - since < 10


def test_an_answer_over_several_lines_is_kept():
    assert read("Action: Answer\nFinal Answer:\n- Rome\n- Ostia\n\nBoth lie there.").action == "Answer - Rome\n- Ostia"
    assert read('Action: Answer\nFinal Answer: [\n "a",\n "b"\n]\nso').action == 'Answer [\n "a",\n "b"\n]'


@pytest.mark.parametrize(
    "said",
    [
        "Action: Operation\n```sql\n", "Action: Operation\n```sql\n\n```", "Action: Operation\nHere is the query:\n",
        "Action: Operation\n\nHere is the SQL query:", "Action: Answer\nFinal Answer:",
        "Action: Answer\n**Final Answer:** \n\n",
        "\n \n\n", "Action:", "Final Answer: 42", "Action: Answer\nFinal Answer:\n\nObservation: wrong",
    ],
)  # fmt: skip
def test_an_action_without_its_announced_payload_is_not_executed(said):
    assert read(said).fault == Fault.NO_ACTION
    assert not read(said, finished=False).action


@pytest.mark.parametrize("shape", [each for each in FENCES if "not closed" in each])
def test_a_fence_that_was_cut_is_not_executed(shape):
    said = FENCES[shape].format(label="Action: Operation", query=QUERIES[1])
    assert read(said, finished=False).fault == Fault.CUT_OFF


@pytest.mark.parametrize(
    "said, action",
    [
        ("Action: look\nI hope this works.", "look"), ("Action: look\n\nThen I go on.", "look"),
        ("```\nAction: look\n```", "look"),
        ("Action: look\n```", "look"), ("Action: go north\n```sql\nSELECT 1;\n```", "go north"),
        ("Action: submit", "submit"),
        ("I see:\n```\na map\n```\nSo I look.\nAction: look", "look"), ("Action: look\n[Observation] a hall", "look"),
    ],
)  # fmt: skip
def test_other_names_have_no_payload(said, action):
    assert read(said).action == action


def test_the_payload_of_a_tool_is_its_arguments():
    tools = ({"name": "go", "parameters": {"required": ["to"]}},)
    for said in (
        'Action: go\n```json\n{"to": "a"}\n```',
        'Action: go\n{"to": "a"}',
        "Action: go\n\nSo:\n```\n{'to': 'a'}\n```",
    ):
        assert Reader(tools=tools).read(said).action == '{"name": "go", "arguments": {"to": "a"}}'


FURTHER = {
    "heading": "{label}\n### Final Answer\n{answer}",
    "sentence": "{label}\nThe final answer is: {answer}",
    "in the fence of its name": "```\n{label}\nFinal Answer: {answer}\n```",
}
APART = {
    "name in a fence of its own": "```\n{label}\n```\n\n```sql\n{code}\n```",
    "name in a fence, no language": "```\n{label}\n```\n```\n{code}\n```",
    "rest of a fence before": "}}\n```\n\n{label}\n```sql\n{code}\n```",
}
TYPED = ("Action: {}", "**Action:** {}", "### Action: {}", "action: {}", "Action：{}", "<b>Action</b>: {}")


@pytest.mark.parametrize("label", TYPED)
def test_a_final_answer_and_code_are_kept_wherever_they_stand(label):
    read = Reader("auto").read
    for shape in FURTHER.values():
        for answer in ("42", "[('a', 1), ('b', 2)]", '["x"]', "New York City", "3.75%", "[]", "2021-03-04"):
            said = shape.format(label=label.format("Answer"), answer=answer)
            assert read(said).action == f"Answer {answer}", said
    for shape in APART.values():
        for code in ("SELECT a\nFROM t;", "UPDATE t SET a = '```' WHERE b = \"it's\";", "DESCRIBE t;", "(SELECT 1)"):
            said = shape.format(label=label.format("Operation"), code=code)
            assert read(said).action == f"Operation {code}", said
    rows = "[('a', 1), (None, 2.5)]"
    assert read(f"{label.format('Answer')}\n{rows}").action == f"Answer {rows}"

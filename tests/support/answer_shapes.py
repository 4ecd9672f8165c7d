# ruff: noqa: E501  (members are read best many in a line)
"""Answers in the shapes that models of several families give to database, shell and household tasks.

Each shape has members: a text, and the action that a reader has to find in it, or None where there is no complete one.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from coevo.records.answer_form import NamedAction, NamedForm, TagForm

DATABASE = NamedForm(
    actions=(NamedAction(name="Operation", fence="sql"), NamedAction(name="Answer", label="Final Answer"))
)
SHELL = NamedForm(label="Act", actions=(NamedAction(name="bash", fence="bash"), NamedAction(name="finish")))
HOUSEHOLD = TagForm()
MEMBERS = 30
"""Members of a shape."""

LABELS = (
    "Action: {}", "**Action:** {}", "**Action**: {}", "**Action: {}**", "Action: **{}**", "### Action: {}", "- Action: {}",
    "* **Action:** {}", "1. Action: {}", "2) **Action**: {}", "action: {}", "ACTION: {}", "Action : {}", "Action：{}",
    "Action:{}", "Action:\n{}", "### Action\n{}", "**Action**\n{}", "Action: `{}`", "Action: “{}”", "> Action: {}",
    "Action 1: {}", "Next Action: {}", "Agent: Action: {}", "• Action: {}", "__Action:__ {}", "Action: {}.", "Action: [{}]",
    "\u00a0Action: {}", "The action is: {}", "[Action]: {}", "`Action: {}`", "Step 2: Action: {}", "\tAction:\t{}",
)  # fmt: skip
THOUGHTS = (
    "", "Thought: I need the rows.\n", "the rows of the table, as asked.\n\n", "}\n", "\n\n\n",
    "1. First, list them.\n2. Then count.\n\n", "**Thought:** We look at `t`; it's large.\n\n", "```\nplan\n```\n",
    "<think>\nAction: Answer\nFinal Answer: 1\n</think>\n\n", "Okay, so I should query.\nMaybe `t`?\n</think>\n\n",
    "Agent: Thought: I'll look.\n", "### Thought\nI query the table.\n\n", "Sure! Here is what I will do.\n\n",
    "<thinking>Act: finish?</thinking>\n", "思考：查询表。\n", "[THINK]so[/THINK]", "a'b \"c\n",
)  # fmt: skip
QUERIES = (
    "SELECT a FROM t;", "SELECT a, b\nFROM t\nWHERE c = 'x';", "UPDATE `t` SET `a` = 'Action: Answer' WHERE b = 1;",
    "INSERT INTO t\n(a, b)\nVALUES\n(1, 'it''s');", "WITH x AS (\n  SELECT 1\n)\nSELECT * FROM x;",
    "SELECT COUNT(*) FROM `my table` WHERE `b c` >= 3", "DELETE FROM t WHERE a IN (\n  SELECT b\n  FROM u\n);",
    "SELECT a\nFROM t -- all\nGROUP BY a\nHAVING COUNT(*) > 1\nORDER BY 1 DESC\nLIMIT 3;",
    "select a from t where b like '%...%' order by c;", "INSERT INTO t VALUES (1, 'User: hi'), (2, '“quoted”');",
    "SELECT `User`, `Result` FROM `log` WHERE msg = 'Final Answer: 3';",
)  # fmt: skip
SCRIPTS = (
    "ls -la /tmp", "cd /srv\nfind . -name '*.txt' | wc -l", "for f in *; do\n  echo \"$f\"\ndone",
    "cat <<EOF > a.txt\nAct: finish\nUser: x\n```\ncode\n```\nEOF", "useradd -m bob && passwd -l bob", "echo 'Output: 1'",
    "#!/bin/bash\nset -e\nmkdir -p a/b\nchmod 700 a", "grep -v '^#' a.cfg > b.cfg", "if [ -f a ]; then\n  rm a\nfi",
    "chown -R root:root /srv/www", "python3 - <<'X'\nprint('hi')\nX",
)  # fmt: skip
FINALS = (
    "42", '["a", "b"]', "Rome", '[["a", 1], ["b", 2]]', "1,800 ft", "none", "[('a', 1), ('b', 2)]", "[]", "New York City",
    "3.14", '[\n  "a",\n  "b"\n]', "2024-01-05", '{"a": 1}',
)  # fmt: skip
ROUNDS = (
    "\nUser: [(1,)]\nAgent: Thought: so\nAction: Operation\n```sql\nSELECT 9;\n```",
    "\nResult: 3 rows\nThought: so\nAction: Answer\nFinal Answer: [3]",
    "\n\nOutput:\n[(1,)]\n\nAction: Answer\nFinal Answer: wrong",
    "\nObservation: ok\nAction: Operation\n```\nDROP TABLE t;\n```\nResult: ok",
    "\n\n**User:** done\n\n**Agent:** Action: Answer\nFinal Answer: no",
    "\n\nUser: ok\n\nAgent: Action: Answer", "\n\n### User\nok\n\n### Agent\nAction: Answer\nFinal Answer: no",
    "\nuser：[]\nAction: Operation\n```sql\nSELECT 8", "\n\nAction: Answer\nFinal Answer: guessed",
    "<|im_end|>\n<|im_start|>user\nok<|im_end|>\nAction: Answer\nFinal Answer: no",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nok\nAction: Operation\n```sql\nSELECT 8;\n```",
    "\n\nSQL Result:\n| a |\n\nThought: so\n\nAction: Answer\nFinal Answer: no", "\n\nUser: ", "\nOutput:\n```\n1\n```\n",
    "\n\nAssistant: Action: Answer\nFinal Answer: 1", "\n[User]: ok\n[Agent]: Action: Answer\nFinal Answer: no",
)  # fmt: skip
REPEATED = (
    "Action: Operation\n```sql\nYour SQL here\n```\n\nor\n\nAction: Answer\nFinal Answer: [\"a\"]\n\n",
    "The format is:\n\nAction: Operation\n```sql\nSELECT * FROM table WHERE condition;\n```\n\n",
    "Action: Operation\n```sql\n...\n```\nAction: Answer\nFinal Answer: ...\n\nSo:\n\n",
    "Action: Operation\n```sql\n<your SQL query>\n```\n\nNow I use it.\n",
    "I answer either with\nAction: Operation\n```sql\nSELECT ... FROM ...;\n```\nor with\nAction: Answer\n"
    'Final Answer: ["ANSWER1", "ANSWER2", ...]\n\nThought: the first.\n',
    "Action: Operation or Answer\n\n", "Action: [action]\n\n", "Action: Operation\n```sql\n[SQL query]\n```\n\n",
    "Action: Answer\nFinal Answer: [your answer]\n\n", "Action: Operation\n```sql\n```\n\n",
)  # fmt: skip
MORE_THOUGHTS = (
    "To answer this, I first list the tables.\n\nStep 1: look.\nStep 2: count.\n\n", "Let me think.\n- `a`\n- `b`\n\n",
    "**Thought:** The user wants Action: Operation now.\n\n", "User: How many?\n\nAgent: ", "Result: 3 rows\nThought: so\n",
    "The final answer must be a list. ", "Here's the SQL:\n\n", "```json\n{\"a\": 1}\n```\n\n", "I think ```SELECT 1``` is wrong.\n",
)  # fmt: skip
EXPLAINED = (
    "", "\nThis query lists them.", "\n\n**Explanation:** it lists them.", "\n\nI will wait for the result.",
    "\n\n- `a`: the column\n- `b`: another\n", "\n\nNote: uses ``` as marks.", "\n\n(Waiting for the response.)",
    "\n\nExpected output:\n```\n1\n```",
)  # fmt: skip
TAILS = (
    "",
    "\n",
    "<|im_end|>",
    "</s>",
    "<|eot_id|>",
    "<|endoftext|>\n",
    "\n\n\n",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)
FENCES = {
    "fence": "{label}\n```sql\n{code}\n```",
    "fence without a language": "{label}\n```\n{code}\n```",
    "tildes": "{label}\n~~~sql\n{code}\n~~~",
    "another language of the family": "{label}\n```mysql\n{code}\n```",
    "upper case": "{label}\n```SQL\n{code}\n```",
    "blank before": "{label}\n\n```sql\n{code}\n```",
    "prose before": "{label}\nHere is the query:\n```sql\n{code}\n```",
    "prose and a blank before": "{label}\n\nThis lists them.\n\n```sql\n{code}\n```",
    "two lines of prose before": "{label}\nI list them first.\nThen I count them.\n\n```sql\n{code}\n```",
    "prose behind": "{label}\n```sql\n{code}\n```\nThis query lists them.",
    "explained behind": "{label}\n```sql\n{code}\n```\n\n**Explanation:** it lists them:\n```\na\n```",
    "fence in the line": "{label} ```sql\n{code}\n```",
    "end in the line": "{label}\n```sql\n{code}```",
    "language in the fence": "{label}\n```\nsql\n{code}\n```",
    "four marks": "{label}\n````sql\n{code}\n````",
    "indented": "{label}\n  ```sql\n{code}\n  ```",
    "label inside": "```sql\n{label}\n{code}\n```",
    "label and a blank inside": "```\n{label}\n\n{code}\n```",
    "label in a fence around a fence": "```\n{label}\n```sql\n{code}\n```\n```",
    "label behind": "```sql\n{code}\n```\n{label}",
    "label behind a blank line": "```sql\n{code}\n```\n\n{label}",
    "not closed": "{label}\n```sql\n{code}",
    "not closed, without a language": "{label}\n```\n{code}",
    "not closed, a blank behind": "{label}\n```sql\n{code}\n\n",
}
OPEN = {
    "no fence": "{label}\n{code}",
    "no fence, a blank before": "{label}\n\n{code}",
    "no fence, prose behind": "{label}\n{code}\n\nThis query lists them.",
    "no fence, prose before": "{label}\nHere is the query:\n{code}",
    "mark of an end alone": "{label}\n{code}\n```",
}
ANSWERS = {
    "label": "{label}\nFinal Answer: {answer}",
    "bold": "{label}\n**Final Answer:** {answer}",
    "bold, colon behind": "{label}\n**Final Answer**: {answer}",
    "bold as a whole": "{label}\n**Final Answer: {answer}**",
    "blank before": "{label}\n\nFinal Answer: {answer}",
    "prose before": "{label}\nI have counted them.\nFinal Answer: {answer}",
    "next line": "{label}\nFinal Answer:\n{answer}",
    "next line, a blank between": "{label}\nFinal Answer:\n\n{answer}",
    "fence": "{label}\nFinal Answer:\n```\n{answer}\n```",
    "full-width colon": "{label}\nFinal Answer：{answer}",
    "lower case": "{label}\nfinal answer: {answer}",
    "heading": "{label}\n### Final Answer\n{answer}",
    "item": "{label}\n- Final Answer: {answer}",
    "is": "{label}\nThe final answer is: {answer}",
    "boxed": "{label}\nFinal Answer: \\boxed{{answer}}",
    "boxed as a formula": "{label}\nFinal Answer: $\\boxed{{answer}}$",
    "boxed, next line": "{label}\nFinal Answer:\n\\[\n\\boxed{{answer}}\n\\]",
    "boxed without its label": "{label}\n\\boxed{{answer}}",
    "without its label": "{label}\n{answer}",
    "without the name": "Final Answer: {answer}",
    "bold without the name": "**Final Answer:** {answer}",
    "explained": "{label}\nFinal Answer: {answer}\nThis is the answer because it is.",
    "explained behind a blank": "{label}\nFinal Answer: {answer}\n\nit was counted twice.",
    "explained with a label": "{label}\nFinal Answer: {answer}\nExplanation: it was counted.",
    "in a fence": "```\n{label}\nFinal Answer: {answer}\n```",
}
INCOMPLETE = (
    "", "\n \n\n\n", "}", "I would query the table.", "{label}", "{label}\n", "{label}\n```sql\n", "{label}\n```sql\n\n```",
    "{label}\nHere is the query:\n", "{label}\n\nUser: please give a query\n", "Action: SELECT a FROM t;", "Action:",
    "{label}\n```sql\nYour SQL here\n```", "{label}\n```sql\n...\n```", "{label}\n```json\n{}\n```",
    "<think>\n{label}\n```sql\nSELECT 1;\n```", "Thought: I could do Action: something else", "\\boxed{42}",
    "Action: Answer", "Action: Answer\nFinal Answer:", "Action: Answer\n**Final Answer:** \n\n", "Action: Query\n```sql\nSELECT 1;\n```",
    "Action: Answer\nFinal Answer:\n\nUser: wrong", "Action: Answer\nI will now give the answer.", "{label}\nThe table is empty.",
    "Thought: we must write\n```sql\nSELECT 1;\n```\nso let me see.", "Action: Answer\nFinal Answer: ...", "..." , "Operation",
    "Action: Answer\nFinal Answer: <answer>",
)  # fmt: skip
CUTS = (
    "{label}\n```sql\nSELECT a FROM", "{label}\n```sql\nSELECT a FROM t;", "{label}\nSELECT a FROM t", "{label}", "Action: Ans",
    "Action: Answer\nFinal Answer: 4", "Action: Answer\nFinal Answer: [1,", "Thought: I think", "<think>\n{label}\n```sql\nSELECT 1;\n```",
    "Action: Answer\nFinal", "{label}\n```", "{label}\n```sq",
)  # fmt: skip
ACTS = (
    "go to desk 1",
    "take mug 1 from desk 1",
    "put mug 1 in/on shelf 2",
    "look",
    "heat apple 1 with microwave 1",
    "examine lamp",
)
LONG = "Okay, so I am in the middle of a room. " * 60
TAGGED = {
    "tag": "<think>so</think>\n<action>{act}</action>",
    "no opening tag": LONG + "\n</think>\n\n<action>{act}</action>",
    "no tag of thinking": LONG + "\n\n<action>{act}</action>",
    "lines": "Thus.\n<action>\n{act}\n</action>",
    "upper case": "</think><ACTION>{act}</ACTION>",
    "named before": "I have to write it in <action> </action> tags.\n</think>\n<action>{act}</action>",
    "format before": "I answer as <action>...</action>.\n\n<action>{act}</action>",
    "format in words before": "As <action>your action here</action>: I go.\n<action>{act}</action>",
    "draft in thinking": "<think>maybe <action>inventory</action>? No.</think><action>{act}</action>",
    "round behind": "<action>{act}</action>\nObservation: ok\n<action>inventory</action>",
    "user behind": "<action>{act}</action>\n\nUser: ok\n<action>inventory</action>",
    "fence": "```\n<action>{act}</action>\n```",
    "bold": "**<action>{act}</action>**",
    "label inside": "<action>Action: {act}</action>",
    "prose behind": "<action>{act}</action>\n\nThis takes me there.",
    "code in thinking": "```python\nx = 1\n</think>\n<action>{act}</action>",
}
UNTAGGED = (
    LONG, LONG + "</think>", "<action>go to", "<action></action>", "go to desk 1", "Action: go to desk 1", "<action>...</action>",
    "<think><action>look</action> or so", "", "\n\n", "<act>look</act>",
)  # fmt: skip


Member = tuple[str, str | None]


def _drawn(name: str, make: Callable[..., Member], *lists: Sequence[str]) -> list[Member]:
    """Members of a shape: each is made of one drawn from every list."""
    draw = random.Random(name)
    return [make(*(draw.choice(each) for each in lists)) for _ in range(MEMBERS)]


def _filled(shape: str, label: str, text: str = "") -> str:
    return shape.replace("{label}", label).replace("{code}", text).replace("{answer}", text)


def fenced(form: NamedForm, codes: Sequence[str], extra: Mapping[str, str] = OPEN) -> dict[str, list[Member]]:
    """Members of each shape of a finished answer whose first action has a fence."""
    name, language = form.actions[0].name, str(form.actions[0].fence)
    word, found = form.label, dict[str, list[Member]]()
    for title, shape in (FENCES | extra).items():
        spoken = (
            shape if language == "sql" else shape.replace("mysql", "sh").replace("SQL", "SH").replace("sql", language)
        )
        around = [f"{word}: {{}}"] if title.startswith("label") else _labels(word)

        def make(label: str, thought: str, code: str, tail: str, shape: str = spoken) -> Member:
            return thought + _filled(shape, label.format(name), code) + tail, f"{name} {code}"

        found[title] = _drawn(title, make, around, THOUGHTS, codes, TAILS)
    return found


def answers() -> dict[str, list[Member]]:
    """Members of each shape of a finished final answer."""
    found = dict[str, list[Member]]()
    for title, shape in ANSWERS.items():

        def make(label: str, thought: str, answer: str, tail: str, shape: str = shape) -> Member:
            return thought + _filled(shape, label.format("Answer"), answer) + tail, f"Answer {answer}"

        found[f"answer: {title}"] = _drawn(title, make, LABELS, THOUGHTS, FINALS, TAILS)
    return found


def rounds() -> dict[str, list[Member]]:
    """Members of the shapes with several rounds, or with the format of the prompt, in one answer."""

    def first(rest: str, thought: str, query: str, shape: str) -> Member:
        return thought + _filled(shape, "Action: Operation", query) + rest, f"Operation {query}"

    def after(rest: str, label: str, answer: str, shape: str) -> Member:
        return _filled(shape, label.format("Answer"), answer) + rest, f"Answer {answer}"

    def used(repeated: str, label: str, query: str, shape: str) -> Member:
        return repeated + _filled(shape, label.format("Operation"), query), f"Operation {query}"

    def carried(label: str, query: str, shape: str) -> Member:
        said = _filled(shape, label.format("Operation"), query)
        return said.replace("\n", "\r\n"), f"Operation {query}"

    apart = [shape for title, shape in FENCES.items() if not title.startswith("label")]
    return {
        "rounds": _drawn("rounds", first, ROUNDS, THOUGHTS, QUERIES, [*FENCES.values(), *OPEN.values()]),
        "rounds behind an answer": _drawn(
            "behind", after, ROUNDS, LABELS, FINALS, [shape for title, shape in ANSWERS.items() if "name" not in title]
        ),
        "format repeated": _drawn("repeated", used, REPEATED, LABELS, QUERIES, apart),
        "carriage returns": _drawn("carriage", carried, LABELS, QUERIES, apart),
    }


def mixed(count: int) -> list[Member]:
    """Members with a shape of each list at once: thoughts, labels, fences, explanations, rounds and tokens."""
    draw, found = random.Random("mixed"), list[Member]()
    while len(found) < count:
        title, shape = draw.choice([*FENCES.items(), *ANSWERS.items()])
        is_query, is_behind = title in FENCES and shape is FENCES[title], title.startswith("label behind")
        label = draw.choice(["Action: {}"] if title.startswith("label") else LABELS)
        text, name = (draw.choice(QUERIES), "Operation") if is_query else (draw.choice(FINALS), "Answer")
        rest = draw.choice(EXPLAINED) if is_query and not is_behind and "not closed" not in title else ""
        said = _filled(shape, label.format(name), text) + rest
        repeated = draw.choice([*REPEATED, *[""] * 40]) if not title.startswith("label") and "name" not in title else ""
        after = draw.choice([*ROUNDS, *[""] * len(ROUNDS)]) if "name" not in title else ""
        said = repeated + draw.choice([*THOUGHTS, *MORE_THOUGHTS]) + said + after + draw.choice(TAILS)
        found.append((said.replace("\n", "\r\n") if draw.random() < 0.1 else said, f"{name} {text}"))
    return found


def incomplete(shapes: Sequence[str], word: str, name: str) -> list[Member]:
    """Answers without a complete action."""
    draw = random.Random(word)
    labels = _labels(word)
    return [(_filled(shape, draw.choice(labels).format(name)), None) for shape in shapes for _ in range(MEMBERS // 3)]


def tagged() -> dict[str, list[Member]]:
    """Members of each shape of an answer to a household task."""
    return {
        title: _drawn(title, lambda act, tail, shape=shape: (shape.replace("{act}", act) + tail, act), ACTS, TAILS)
        for title, shape in TAGGED.items()
    }


def _labels(word: str) -> list[str]:
    """The typographies of a label, for another word than ``Action``."""
    return [
        each.replace("Action", word).replace("action", word.lower()).replace("ACTION", word.upper()) for each in LABELS
    ]


def shouted(text: str, finished: bool) -> object:
    """Parser of an ``OwnForm``: ``{ACTION}!``; it raises, or returns no text, where an answer says so."""
    if text == "raise":
        raise ValueError(text)
    inner = text.rpartition("{")[2].removesuffix("}!")
    return 7 if text == "odd" else inner if finished and text.endswith("}!") else None

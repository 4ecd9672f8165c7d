"""Answers as families of models wrap them, and scripts of a shell without a fence: whole, or none of them."""
# ruff: noqa: E501  (a case is read best in one line)

import random
import time

import pytest
from support.answer_shapes import DATABASE, HOUSEHOLD, SHELL

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault
from coevo.records.answer_form import LineForm

F = "```"
LINE = LineForm()
WRAPPED = {
    "deepseek-r1": "Okay, so a query. Maybe Action: Answer? Hmm, no.\n</think>\n\n{}<｜end▁of▁sentence｜>",
    "qwen3": "<think>\nFirst I look.\n\nAct: finish? No, <action>look</action>.\n</think>\n\n{}<|im_end|>",
    "gpt-oss": "<|channel|>analysis<|message|>An Action: Answer maybe.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "gpt-oss, marks lost": "analysisWe could write\nAction: Answer\nFinal Answer: 0\nor notassistantfinal{}",
    "llama3": "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
    "llama2": " {} </s><s>[INST] ok [/INST]",
    "mistral": "[/INST] {}</s>",
    "magistral": "[THINK]I plan: Action: Answer[/THINK]{}</s>",
    "kimi": "◁think▷so, Action: Answer◁/think▷{}",
    "glm": "<think>so</think>\n<|begin_of_box|>{}<|end_of_box|>",
    "hunyuan": "<think>\nso\n</think>\n<answer>\n{}\n</answer>",
    "gemma": "Okay, here's my plan.\n\n{}\n<end_of_turn>",
    "phi": "<|assistant|>\n{}<|end|>",
    "seed": "<seed:think>so\nAction: Answer\n</seed:think>{}",
    "exaone": "<thought>\nso\n</thought>\n\n{}[|endofturn|]",
    "granite": "<|start_of_role|>assistant<|end_of_role|>{}<|end_of_text|>",
    "command-r": "<|START_THINKING|>so<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "openthinker": "<|begin_of_thought|>so<|end_of_thought|>\n\n<|begin_of_solution|>\n{}\n<|end_of_solution|>",
    "yi": "{}<|im_end|>\n<|im_start|>user\nok<|im_end|>",
    "chatglm": "<|assistant|>\n{}<|user|>",
    "vicuna": "ASSISTANT: {}</s>",
    "alpaca": "### Response:\n{}\n\n### Instruction:\nnext",
    "smollm": "<think>\n\n</think>\n{}<|im_end|>\n",
    "minimax": "<think>hm.\n```sql\nSELECT 0;\n```\n</think>\n\n\n{}",
    "cohere": "{}<|END_OF_TURN_TOKEN|>",
    "idefics": "{}<end_of_utterance>",
}
INNER = [
    (DATABASE, f"Thought: x\nAction: Operation\n{F}sql\nSELECT a\nFROM t;\n{F}", "Operation SELECT a\nFROM t;"),
    (DATABASE, "Action: Operation\nSELECT a FROM t;", "Operation SELECT a FROM t;"),
    (DATABASE, f"**Action:** Operation\n\n{F}\nSELECT a FROM t\n{F}", "Operation SELECT a FROM t"),
    (DATABASE, "Action: Answer\nFinal Answer: [(1,)]", "Answer [(1,)]"),
    (DATABASE, "**Final Answer:** Rome", "Answer Rome"),
    (SHELL, f"Think: x\n\nAct: bash\n\n{F}bash\nls -l\ncd /x\n{F}", "bash ls -l\ncd /x"),
    (SHELL, "Act: bash\nls -la /tmp", "bash ls -la /tmp"),
    (SHELL, "Act: finish", "finish"),
    (HOUSEHOLD, "I go.\n<action>go to desk 1</action>", "go to desk 1"),
    (LINE, "Thought: x\nAction: go to desk 1", "go to desk 1"),
]  # fmt: skip
SCRIPTS = (
    "useradd bob", "groupadd devs", "touch /tmp/a.txt", "systemctl restart nginx", "kill 123", "id bob", "head -3 /etc/passwd",
    "sort names.txt", "diff a b", "true", "hostname web1", "ps aux", "which python3", "env", "set -e; ls", "umask 022",
    "unzip a.zip", "realpath a", "who", "(cd /tmp; ls)", "{ echo a; echo b; } > c", "! grep -q x a && echo no", ". ./env.sh",
    "rename s/a/b/ *.txt", "chattr +i a", "dd if=/dev/zero of=a count=1", "alias ll='ls -l'", "function f() { ls; }",
    "[ -d /data ] || mkdir /data", "until false; do break; done", "case $x in a) ls;; esac", "ls -l # count them", "cp a b &&\n  mv c d",
    'echo "the list of users is here"', "awk -F: '$3 >= 1000 {print $1}' /etc/passwd > users", "echo '```' > a.md",
    "cat > a.ini <<'EOF'\n[main]\nAct: no\nEOF", 'for u in ann bo; do\n  useradd -m "$u"\ndone',
    "for i in 1 2 3; do echo $i; done", "for i in *; do\n  echo $i\ndone", "if [ -f a ]; then rm a; fi", "if [ -f a ]; then\n  rm a\nfi",
    "if [ -f a ]\nthen\nrm a\nfi", "while read i; do echo $i; done < f", "while read i; do\n  echo $i\ndone < f", "echo hello there > a/f",
    "if [ -d b ]; then rmdir b; fi", "echo this is a test > /tmp/a", "test -f a && echo it works", "find . -type f -exec mv {} first \\;",
    "echo done!", "echo I am here.", "/usr/sbin/useradd bob", "/bin/touch a", "~/bin/x", "../x -v", "for i in a b\ndo\necho $i is here\ndone",
    "grep -c it a.txt", "grep the a.txt", "mkdir first", "cat it", "(id; ls)", "{ sort a; }", "if ! id bob; then useradd bob; fi", "find . -type f -exec chmod 644 {} +", "f() { ls; }", "((a++))", "exit 0",
    'mysql -e "SELECT 1"', "cat > a.md <<'EOF'\n```Act: no\nEOF",
)  # fmt: skip
BEHIND = (
    "",
    "\n",
    "\n\nThis does it.",
    "\nThis does it.",
    "\n\nUser: ok\nAct: finish",
    "\n\nThink: wait\nAct: finish",
    "<|im_end|>",
)
NO_SCRIPTS = (
    "I would list.", "touch the file now, then report", "list the files first", "Here is the command:", "the directory is empty",
    "no more commands are needed", "find out which files there are.", "first, look at the directory", "kill it", "done",
    "Let me check the passwd file", "list files\nmytool a\nls", "find what's there", "if needed, look at it", "(list files)", "rm is what we need", "(waiting for the output)", "cat is what I would use here.", "You should run ls",
)  # fmt: skip


@pytest.mark.parametrize("family", WRAPPED)
def test_marks_of_a_template_are_no_part_of_an_action(family):
    read = [Reader(form).read(WRAPPED[family].replace("{}", text)).action for form, text, _ in INNER]
    assert read == [action for _, _, action in INNER]


@pytest.mark.parametrize(
    "opening",
    ["<think>\nso", "<|channel|>analysis<|message|>so", "analysisWe could", "<seed:think>so", "[THINK]so", "◁think▷"],
)
def test_thinking_that_never_ends_holds_no_action(opening):
    assert [Reader(form).read(f"{opening}\n{text}").action for form, text, _ in INNER if form is not HOUSEHOLD] == [
        ""
    ] * 9


def test_scripts_without_a_fence_are_read_whole_or_not_at_all():
    draw, found = random.Random("scripts"), []
    for each in SCRIPTS * 4:
        script = "\n".join([each, *draw.sample(SCRIPTS, draw.randint(0, 3))])
        found.append((script, Reader(SHELL).read(f"Think: so.\n\nAct: bash\n{script}{draw.choice(BEHIND)}").action))
    assert [each for each in found if each[1] not in ("", f"bash {each[0]}")] == []
    assert sum(action == "" for _, action in found) <= len(found) // 50


@pytest.mark.parametrize(
    "before",
    ["bash\n", "to list files\n", "- list files\n", "(list files)\n", "Here it is:\n\n", "shell\n", "command:\n", ""],
)
def test_a_script_may_stand_behind_a_line_of_prose(before):
    assert Reader(SHELL).read(f"Act: bash\n{before}ls -l\nid bob").action == "bash ls -l\nid bob"
    assert Reader(SHELL).read(f"Act: bash {before}\nls -l\nid bob").action == "bash ls -l\nid bob"


@pytest.mark.parametrize("text", NO_SCRIPTS)
def test_a_sentence_in_place_of_a_script_is_none(text):
    assert Reader(SHELL).read(f"Act: bash\n{text}").action == ""


@pytest.mark.parametrize(
    "form, text, action",
    [
        (DATABASE, f"__Action__: __Operation__\n{F}sql\nSELECT 1;\n{F}", "Operation SELECT 1;"), (SHELL, "__Act__: __finish__", "finish"),
        (DATABASE, f"{F}\nAction: Operation\n{F}\n{F}\nSELECT 1;\n{F}", "Operation SELECT 1;"), (DATABASE, "Action: Answer 4.25", "Answer 4.25"),
        (SHELL, f"{F}\nAct: bash\n{F}\n{F}\nls\n{F}", "bash ls"), (SHELL, f"{F}bash\nls\n{F}Act: bash", "bash ls"),
        (DATABASE, f"{F}sql\nSELECT 1;\n{F}Action: Operation", "Operation SELECT 1;"), (DATABASE, "Action: Answer\nFinal: [(1,)]", "Answer [(1,)]"),
        (DATABASE, "Action: Answer\nFinal Answer:\n(1, 'a')\n(2, 'b')\n\nSo.", "Answer (1, 'a')\n(2, 'b')"),
        (DATABASE, "Action: Answer\nFinal Answer: [1]\n[2],\n[3]", "Answer [1]\n[2],\n[3]"), (HOUSEHOLD, "<action>[go to desk 1]</action>", "go to desk 1"),
        (DATABASE, "Action: Answer\nFinal Answer: (1, 'a')\n(That is the only row.)", "Answer (1, 'a')"),
        *((DATABASE, f"Action: Answer\nFinal Answer: {row}\n{remark}", f"Answer {row}") for row, remark in (("(1, 'a')", "(see above)"), ("(3)", "(as counted above)"), ("(3)", "(3 rows)"), ("[1]", "[note: sorted by id]"), ("[('a',)]", "[end]"))),
        *((DATABASE, f"Action: Answer\nFinal Answer: {rows}", f"Answer {rows}") for rows in ("[null]\n[-1.5]", "(None, 1)\n(True,)", "[[1]]\n[[2]]", "[]\n[]", "(1,)\n(Decimal('2'),)")),
        *((SHELL, f"Act: finish{remark}", "finish") for remark in (". all done", ", all is done", " - the file exists", ": all done", " (all done)", "; so it is")),
        (SHELL, "```bash\nls\n```Act: bash", "bash ls"), (SHELL, f"Act: bash\n{F}bash\ncat > a.md <<'EOF'\n{F}Act: no\nEOF\n{F}", f"bash cat > a.md <<'EOF'\n{F}Act: no\nEOF"),
        (LINE, "Action: [go to desk 1]", "go to desk 1"), (LINE, "Action: [1, 2]", "[1, 2]"), (LineForm(examples=("[go]",)), "Action: [look]", "[look]"),
    ],
)  # fmt: skip
def test_typography_around_a_name_or_an_answer(form, text, action):
    assert Reader(form).read(text).action == action


@pytest.mark.parametrize(
    "form, text, fault",
    [
        (DATABASE, f"Action: Operation\n{F}sql\nSELECT column FROM table_name WHERE condition;\n{F}", Fault.REPEATED),
        (DATABASE, f"Action: Operation\n{F}sql\nSELECT <columns> FROM <table>;\n{F}", Fault.REPEATED), (SHELL, f"Act: bash\n{F}bash\n$CMD\n{F}", Fault.REPEATED),
        (DATABASE, f"Action: Operation\n{F}sql\n$SQL\n{F}", Fault.REPEATED), (DATABASE, f"Action: Operation\n{F}sql\n# all\n-- rows\n{F}", Fault.REPEATED),
        (DATABASE, "Action: Operation\nSELECT", Fault.UNFENCED), (DATABASE, "Action: Operation\nSELECT a FROM", Fault.UNFENCED),
        (DATABASE, "Action: Operation\nINSERT INTO t VALUES ('Agent: a\nUser: b');", Fault.UNFENCED),
        (DATABASE, "Action: Operation\nINSERT INTO t VALUES ('Agent: a\nUser: b');\n\nUser: ok\n\nAction: Answer\nFinal Answer: 1", Fault.UNFENCED),
        (SHELL, f"Act: bash\n{F}bash\n# put the files there\n{F}", Fault.REPEATED), (SHELL, "Act: finish the task by removing", Fault.UNKNOWN_NAME),
    ],
)  # fmt: skip
def test_what_only_looks_like_an_action_is_a_fault(form, text, fault):
    answer = Reader(form).read(text)
    assert (answer.action, answer.fault) == ("", fault)


@pytest.mark.parametrize(
    "before", ["The format is Action: Operation with SQL.\n\n", "For example, I may use either.\n"]
)
@pytest.mark.parametrize(
    "behind", ["\nOutput: []\n", "\n\n---\n\n**Next**\n", "\n\nQuestion: next one?\n", "\n\nUser: ok\n\nAgent: "]
)
def test_an_action_behind_a_sentence_about_the_format_counts(before, behind):
    text = f"{before}Action: Operation\n{F}sql\nSELECT 1;\n{F}{behind}Action: Operation\n{F}sql\nDROP TABLE t;\n{F}"
    assert Reader(DATABASE).read(text).action == "Operation SELECT 1;"


def test_an_example_whose_result_follows_was_used():
    text = f"For example:\n\nAction: Operation\n{F}sql\nSELECT 1;\n{F}\nOutput: []\nAction: Operation\n{F}sql\nDROP TABLE t;\n{F}"
    assert Reader(DATABASE).read(text).action == "Operation SELECT 1;"


@pytest.mark.parametrize(
    "unit",
    [
        "# a ",
        "-- ",
        "echo 'a",
        "[1]\n",
        "(",
        "a <b",
        "\\",
        "`",
        "[ ",
        "analysisA",
        "ls\n",
        "the ",
        '\\"',
        "\\'",
        "'",
        "-- -- ",
        "# Output:\nls\n",
        "<<A <<B\n",
        "'\n```\n",
        "a='\n",
        ": > ",
    ],
)
def test_hostile_payloads_are_read_in_time(unit):
    start = time.process_time()
    for form, before in (
        (SHELL, "Act: bash\n"),
        (DATABASE, f"Action: Operation\n{F}sql\n"),
        (DATABASE, "Action: Answer\nFinal Answer: "),
    ):
        for text in (unit * (20_000 // len(unit)), f"{unit * (20_000 // len(unit))}\nls\n{F}"):
            Reader(form).read(f"{before}{text}")
            Reader(form).read(f"{before}{F}bash\n{text}")
    assert time.process_time() - start < 20


def test_hostile_cues_are_read_in_time():
    start = time.process_time()
    for text in (
        "either " * 1000 + "x\n",
        "either " * 20 + " " * 2000 + "\n",
        "either\n" * 1000,
        "either" + "\n" * 2000,
    ):
        Reader(LINE).read(text + "Action: look\n" * 64)
    assert time.process_time() - start < 2


def test_a_comparison_in_a_query_is_no_place_to_fill_in():
    query = "SELECT a FROM t WHERE b <c AND d> 3 AND e < 'from <table>';"
    assert Reader(DATABASE).read(f"Action: Operation\n{F}sql\n{query}\n{F}").action == f"Operation {query}"


ROUND = f"\nUser: ok\nAction: Operation\n{F}sql\nDROP TABLE t;\n{F}"


@pytest.mark.parametrize("behind", ["", ROUND])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM tablename WHERE b = 1;", "SELECT a FROM table_name;", "SELECT a FROM some_table;", "SELECT your_column FROM t;",
        "SELECT condition FROM table_name WHERE condition = 'x';", "INSERT INTO t VALUES ('sent by <b>me</b>');",
        "UPDATE t SET a = 'x\nfrom <b>me</b>';", "SELECT a FROM t -- from <b>\nWHERE b = 1;",
    ],
)  # fmt: skip
def test_a_whole_query_is_executed_whatever_its_names_and_data_are(query, behind):
    assert Reader(DATABASE).read(f"Action: Operation\n{F}sql\n{query}\n{F}{behind}").action == f"Operation {query}"


def test_markup_in_a_script_is_data():
    script = "echo 'made by <i>me</i>, from <b>it</b>' > a.html"
    assert Reader(SHELL).read(f"Act: bash\n{F}bash\n{script}\n{F}\nUser: ok\nAct: finish").action == f"bash {script}"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t; # it's all", "SELECT a FROM t /* it's */;", "SELECT a FROM t -- it's all", "INSERT INTO t DEFAULT VALUES",
        "PRAGMA foreign_keys = ON", "SELECT a FROM t WHERE b LIKE '10\\%' ESCAPE '\\';", "INSERT INTO t VALUES ('it\\'s');",
        "INSERT INTO t VALUES ('it''s');", 'SELECT a FROM t WHERE b = "it\'s"', "SELECT `it's` FROM t",
    ],
)  # fmt: skip
def test_a_query_without_a_fence_is_whole_where_its_text_is(query):
    assert Reader(DATABASE).read(f"Action: Operation\n{query}").action == f"Operation {query}"


def test_a_sentence_before_an_example_of_the_format_may_be_whole():
    for between in ("\n\nNow my turn:\n\n", "\n\nSo I query.\n"):
        text = f"The format is as follows.\n\nAction: Operation\n{F}sql\nDELETE FROM t;\n{F}{between}Action: Operation\n{F}sql\nSELECT 1;\n{F}"
        assert Reader(DATABASE).read(text).action == "Operation SELECT 1;"
    assert Reader(LINE).read("For example, either.\nAction: look\nAction: go").action == "go"

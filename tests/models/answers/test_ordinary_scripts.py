"""Scripts and queries as people write them, in each place that an answer has for them: whole, or not at all.

Texts of code hold what looks like the answer around it: labels, other speakers, marks of fences, quotation marks.
"""
# ruff: noqa: E501  (a case is read best in one line)

import random

import pytest
from support.answer_shapes import DATABASE, HOUSEHOLD, SHELL

from coevo.models.answers.read import Reader
from coevo.records.answer_faults import Fault

F = "```"
SCRIPTS = (
    "cat > /etc/motd <<'MSG'\nWelcome.\n\nAct: finish\nUser: nobody\n\"quoted 'mixed'\nMSG\nchmod 644 /etc/motd",
    "#!/usr/bin/env bash\nset -euo pipefail\n\n# create the tree\nmkdir -p /srv/{raw,clean}\n\n# Output: two folders\nls -R /srv",
    'for f in /var/*.csv; do\n  n=$(wc -l < "$f")\n  if [ "$n" -gt 10 ]; then\n    echo "$f: $n" >> /root/big.txt\n  fi\ndone',
    "awk 'BEGIN { FS=\",\" }\n{ s += $3 }\nEND { print \"Result: \" s }' sales.csv > /tmp/sum.txt",
    "python3 -c 'import os\nfor n in sorted(os.listdir(\"/etc\")):\n    print(n)' | head -n 5",
    "tee /etc/cron.d/job >/dev/null <<EOF\n*/5 * * * * root /usr/bin/job >> /var/log/job.log 2>&1\nEOF",
    'case "$(uname -m)" in\n  x86_64) echo amd64 ;;\n  *) echo \'unknown: other\' ;;\nesac > arch.txt',
    "cat <<'A' > one; cat <<'B' > two\nfirst `tick`\nA\nsecond ``` marks\nB", "mkdir a; cd a\n: > empty\nprintf %s x >> empty",
    "echo '{\"Action\": \"finish\", \"Act\": \"bash\"}' | tee a.json", "echo 'Done. Act: finish' > a\ncat a", ": > empty\nls -l empty",
    "sed -n '/^\\[main\\]/,/^\\[/p' conf.ini\ngrep -c \"a'b\" conf.ini", "awk '{\n  if ($1 == \"Action:\") n++\n}\nEND { print n }' log.txt",
    "# find the biggest\ndu -a /var | sort -n -r | head -n 10\n\n# and count\nls /var | wc -l", "echo \"It's done; don't worry\" > n.txt\ncat n.txt",
    "cat << \"PY\" > run.py\n\"\"\"Doc.\n\nAgent: text\n\"\"\"\nprint('''x\n'''.strip())\nPY\npython3 run.py", "grep -o word <<<word\necho ok",
    "trap 'rm -f \"$t\"' EXIT\nt=$(mktemp)\necho hi > \"$t\"\nwc -c < \"$t\"", "read -r first rest <<< \"one two\"\necho \"$first\"",
    "cat <<-END > t.txt\n\tone\n\ttwo's\n\tEND\nwc -l t.txt", "echo '```' > fence.md\nls", "perl -pe 's/\\bfoo\\b/bar/g; s/'\\''/\"/g' in.txt > out.txt",
    "(cd /tmp && tar cf - x) | (cd /srv && tar xf -)", "x=5; if (( x > 3 )); then echo 'big'; else echo \"small\"; fi", "echo \"He said \\\"hi\\\" and it's ok\"",
    "{\n  echo '[core]'\n  echo 'x = \"1\"'\n} > core.ini", "crontab -l | { cat; echo '0 5 * * * /root/b.sh'; } | crontab -", "echo $((3 << 2))\necho done",
    "mysql -u root -e \"INSERT INTO t VALUES (1, 'it''s');\n  SELECT * FROM t;\"", "cat > README.md <<EOF\n# Title\n\n```bash\nls\n```\n\nOutput:\nnothing\nEOF",
)  # fmt: skip
QUERIES = (
    "SELECT c.name, SUM(o.total) AS s\nFROM c\nJOIN orders o ON o.cid = c.id\n\nWHERE o.note <> 'refund; see Action: Answer'\nGROUP BY c.name;",
    "UPDATE posts SET body = REPLACE(body, '```', '~~~') WHERE id IN (1, 2, 3);", "SHOW COLUMNS FROM payments", "DESCRIBE payments;",
    "BEGIN;\nUPDATE acc SET bal = bal - 5 WHERE id = 1;\nUPDATE acc SET bal = bal + 5 WHERE id = 2;\nCOMMIT;", "TRUNCATE TABLE logs;",
    "INSERT INTO quotes (who, txt) VALUES\n('Ann', 'She said \"no\"'),\n('Bob', 'It''s fine'),\n('Cid', 'a\\'b');",
    "SELECT title /* the name; of it */, year -- when it's out\nFROM film\nWHERE year BETWEEN 1990 AND 1999;", "(SELECT a FROM x)\nUNION\n(SELECT a FROM y)\nORDER BY a;",
    "WITH RECURSIVE n(x) AS (\n    SELECT 1\n    UNION ALL\n    SELECT x + 1 FROM n WHERE x < 5\n)\nSELECT x FROM n;", "SET @n = 3;\nSELECT * FROM t WHERE id = @n;",
    "UPDATE t SET p = '{\"Action\": \"Answer\", \"n\": [1, 2]}' WHERE id = 4;", "SELECT a FROM t WHERE b = 'x. Action: Answer' AND c = \"y'z\";",
    "CREATE TABLE IF NOT EXISTS t2 (\n  id INT PRIMARY KEY, -- key\n  label VARCHAR(20) DEFAULT 'n/a'\n);\nINSERT INTO t2 VALUES (1, 'User: x');",
)  # fmt: skip
IN_FENCES = (
    "DELETE FROM log\nWHERE msg = 'Agent: hi\nUser: bye' OR msg IS NULL;",
    "INSERT INTO msgs (id, txt) VALUES (1, 'Dear User:\n\nThanks.\n\nAgent: Bob'), (2, 'b');",
)
"""Queries that are whole in a fence alone: without one, an invented turn may have cut them."""
PLACES = {
    "fence": "{L}: {N}\n{F}{lang}\n{C}\n{F}",
    "fence without a language": "**{L}:** {N}\n\n{F}\n{C}\n{F}\n\nThat's it.",
    "tildes": "{L}: {N}\n\n~~~{lang}\n{C}\n~~~",
    "not closed": "{L}: {N}\n{F}{lang}\n{C}",
    "not closed, prose behind": "{L}: {N}\n{F}{lang}\n{C}\n\nI'll wait for the result.",
    "not closed, a list behind": "{L}: {N}\n{F}{lang}\n{C}\n\n- first it looks\n- then it counts",
    "not closed, a round behind": "{L}: {N}\n{F}{lang}\n{C}\n\nUser: it's ok\n\nAgent: {L}: {E}",
    "not closed, a thought behind": "{L}: {N}\n{F}{lang}\n{C}\n\nThought: wait for it\n{L}: {E}",
    "label in the fence": "{F}{lang}\n{L}: {N}\n{C}\n{F}\n\nDone, it's run.",
    "label and a blank in the fence": "{F}\n{L}: {N}\n\n{C}\n{F}",
    "rounds in the fence": "{F}\n{L}: {N}\n{C}\n{F}\nOutput: 1\n{F}\n{L}: {E}\n{F}",
    "label behind": "{F}{lang}\n{C}\n{F}\n\n{L}: {N}",
    "bold label behind": "Here it is:\n\n{F}{lang}\n{C}\n{F}\n**{L}: {N}**",
    "not closed, a remark behind": "{L}: {N}\n{F}{lang}\n{C}\n\n(It's safe.)",
    "no fence, a quotation behind": "<b>{L}</b>: {N}\n{C}\n\n> It's one line.",
    "markup around the label": "<b>{L}</b>: {N}\n{F}{lang}\n{C}\n{F}",
    "round behind": "{L}: {N}\n{F}{lang}\n{C}\n{F}\n\nUser: ok\n\nAgent: {L}: {E}",
    "no fence": "{L}: {N}\n{C}",
    "no fence, prose behind": "{L}: {N}\n\n{C}\n\nLet's see what it's like.",
    "no fence, a round behind": "{L}: {N}\n{C}\n\nOutput:\n1\n\n{L}: {E}",
    "named before in quotes": '("{L}: {N}" runs it, "{L}: finish" ends it.)\n\n{L}: {N}\n{F}{lang}\n{C}\n{F}',
}
FORMS = {
    "shell": (SHELL, {"L": "Act", "N": "bash", "lang": "bash", "E": "finish"}, SCRIPTS),
    "database": (
        DATABASE,
        {"L": "Action", "N": "Operation", "lang": "sql", "E": "Answer\nFinal Answer: 0"},
        QUERIES + IN_FENCES,
    ),
}
BEFORE = (
    "",
    'Thought: it\'s time to look ("now").\n\n',
    "<think>\nMaybe Act: finish? Or Action: Answer.\n</think>\n\n",
    "Let's do it.\n\n",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("task", FORMS)
def test_ordinary_code_is_read_whole_in_each_place(task, place):
    form, names, codes = FORMS[task]
    fitting = [each for each in codes if "no fence" not in place or each not in IN_FENCES]
    draw, wrong = random.Random(place), []
    for code in fitting:
        said = PLACES[place].format(F=F, C=code, **names)
        said = said if said.startswith(F) else draw.choice(BEFORE) + said
        answer = Reader(form).read(said)
        wrong += [] if answer.action == f"{names['N']} {code}" else [(said, answer)]
    assert wrong == []


@pytest.mark.parametrize("task", FORMS)
def test_a_cut_answer_with_ordinary_code_holds_it_whole_or_not_at_all(task):
    form, names, codes = FORMS[task]
    draw = random.Random(task)
    for place, shape in PLACES.items():
        for code in draw.sample(codes, 4):
            said = shape.format(F=F, C=code, **names)
            for cut in draw.sample(range(len(said)), 12):
                answer = Reader(form).read(said[:cut], finished=False)
                assert answer.action in ("", f"{names['N']} {code}"), (place, said[:cut])


@pytest.mark.parametrize("script", ["ls\nmysecond", "echo 'a\nUser: b' > c", 'echo "a\nls', 'ls -l "a\nb'])
def test_a_script_without_a_fence_that_may_not_be_whole_is_a_fault_and_what_follows_is_invented(script):
    for behind in ("", "\n\nThat's it.", "\n\nUser: ok\n\nAgent: Act: finish", "\n\nThink: so\nAct: finish"):
        answer = Reader(SHELL).read(f"Act: bash\n{script}{behind}")
        assert answer.action == "" and answer.fault in (Fault.UNFENCED, Fault.NO_PAYLOAD)


@pytest.mark.parametrize(
    "form, text",
    [
        (DATABASE, f"Action: Operation\n{F}sql\nSELECT a, b FROM your_table WHERE your_condition;\n{F}"), (SHELL, f"Act: bash\n{F}bash\nyour_command\n{F}"),
        (DATABASE, f"Action: Operation\n{F}sql\nTODO\n{F}"), (HOUSEHOLD, "I put it in <action> and </action>."), (DATABASE, f"Action: Operation\n{F}\n-- TODO\n{F}\n"),
        (HOUSEHOLD, "It has to stand between <action> and </action>.\n\n<action>look"),
    ],
)  # fmt: skip
def test_what_nobody_has_filled_in_is_no_action(form, text):
    assert Reader(form).read(text).action == ""


def test_an_action_that_cannot_be_read_may_be_taken_back():
    text = f"Act: bash\necho 'a\nls\n\nWait, that was wrong.\n\nAct: bash\n{F}bash\nls\n{F}"
    assert Reader(SHELL).read(text).action == "bash ls"


def test_rows_of_a_cut_answer_are_no_answer():
    for rows in ("('x', 1)\n('y',", "[1],\n[2", "(1, 'a'),\n(2, 'b"):
        assert Reader(DATABASE).read(f"Action: Answer\nFinal Answer: {rows}", finished=False).action == ""


def test_an_answer_behind_a_sentence_about_the_format_counts_where_another_speaker_follows():
    text = "The format is Action: Operation plus SQL.\n\nAction: Answer\nFinal Answer: 3\n\nAgent: Action: Answer\nFinal Answer: 9"
    assert Reader(DATABASE).read(text).action == "Answer 3"

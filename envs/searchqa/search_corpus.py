"""Questions and passages of a folder, and retrievers behind an address. All texts are data: bounded, never executed.

Files are JSON Lines, and all that match are read: ``questions*.jsonl`` with ``question``, ``golden_answers`` and, if
training and test are divided already, ``split``; ``corpus*.jsonl`` with ``id`` and ``contents``.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request

from pydantic import BaseModel, Field, ValidationError

from coevo.configs.proxies import opener_of
from coevo.envs.rows.task_table import MAX_TABLE_ROWS, TaskTable, load_table
from coevo.envs.search_index import SearchIndex
from coevo.envs.searchqa.search_episode import MAX_PASSAGE_CHARS, normal
from coevo.utilities.errors import CoevoError

VARIABLE = "SEARCH_QA_DIR"
"""Variable of the environment that names the folder where no setting does."""
MAX_ANSWERS, MAX_TEXT_CHARS = 100, 2_000
MAX_REPLY_BYTES = 2**22
TIMEOUT_S = 30.0


class AskedQuestion(NamedTuple):
    """A question of a file.

    Attributes:
        text: the question.
        golden: right answers, at least one.
        split: ``train`` or another split; empty where the file does not say.
    """

    text: str
    golden: tuple[str, ...]
    split: str = ""


class _Document(BaseModel):
    contents: str = ""
    text: str = ""


class _Hit(_Document):
    document: _Document | None = None

    def passage(self) -> str:
        """Text of the passage, with or without a score around it."""
        inner = self.document or self
        return inner.contents or inner.text


class RetrieverReply(BaseModel):
    """The part of a response that is read: for each query, its passages."""

    result: list[list[_Hit]] = Field(min_length=1, max_length=1)


class FileQuestions:
    """Questions of a folder, with their corpus or a retriever.

    Args:
        folder: the folder; None for the one that ``SEARCH_QA_DIR`` names.
        retriever: address of a retriever that is searched instead of a corpus.

    Raises:
        CoevoError: a file is missing, or is not in this format.
    """

    def __init__(self, folder: str | None, retriever: str | None) -> None:
        named = folder or os.environ.get(VARIABLE)
        if not named:
            raise CoevoError(f"env.data=files: set env.path or {VARIABLE} to a folder with questions*.jsonl")
        self._folder, self._retriever = Path(named), retriever
        tables = self._tables("questions*.jsonl", "question", "golden_answers")
        self.questions = tuple(
            _question(row, f"{table.source}, row {n}") for table in tables for n, row in enumerate(table.rows, 1)
        )
        parts = [_joined(tables).digest, retriever or self._corpus.digest]
        self.name = f"files/{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:12]}"

    def search(self, query: str, hits: int) -> tuple[str, ...]:
        """The passages that fit best, at most ``hits``.

        Raises:
            CoevoError: the retriever does not reply, or with something else.
        """
        if self._retriever is not None:
            return retrieved(self._retriever, query, hits)
        return tuple(self._corpus.rows[number]["contents"] for number in self._index.search(query, hits))

    @cached_property
    def _corpus(self) -> TaskTable:
        tables = self._tables("corpus*.jsonl", "contents")
        for table in tables:
            if not all(isinstance(row.get("contents"), str) for row in table.rows):
                raise CoevoError(f"{table.source}: contents of a row is no text: write one passage per row")
        return _joined(tables)

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex(row["contents"] for row in self._corpus.rows)

    def _tables(self, pattern: str, *columns: str) -> list[TaskTable]:
        """All files of a pattern, by their names."""
        found = sorted(self._folder.glob(pattern))
        if not found:
            raise CoevoError(f"env.path={self._folder}: it has no {pattern}: name the folder of questions and corpus")
        tables = list[TaskTable]()
        for path in found:
            tables.append(load_table(str(path)))
            for column in columns:
                tables[-1].require(column, "env.path")
            if sum(len(table.rows) for table in tables) > MAX_TABLE_ROWS:
                raise CoevoError(f"{path}: {pattern} have more than {MAX_TABLE_ROWS} rows together: leave some out")
        return tables


def _joined(tables: Sequence[TaskTable]) -> TaskTable:
    """One table of all rows: its digest does not tell how many files they were in."""
    return TaskTable(tables[0].source, tuple(chain.from_iterable(table.rows for table in tables)))


def retrieved(address: str, query: str, hits: int) -> tuple[str, ...]:
    """Passages that a retriever returns to ``{"queries": [query], "topk": hits}``.

    Raises:
        CoevoError: it does not reply, or with something else.
    """
    body = json.dumps({"queries": [query], "topk": hits, "return_scores": False}).encode()
    request = Request(address, body, {"Content-Type": "application/json", "User-Agent": "coevo"})
    try:
        with opener_of(address, "env.retriever").open(request, timeout=TIMEOUT_S) as response:
            content = response.read(MAX_REPLY_BYTES + 1)
        if len(content) > MAX_REPLY_BYTES:
            raise CoevoError(f"env.retriever={address}: its response has more than {MAX_REPLY_BYTES} bytes")
        reply = RetrieverReply.model_validate_json(content)
    except (OSError, HTTPException) as error:
        reason = f"{type(error).__name__}: {str(error)[:100]}"
        raise CoevoError(f"env.retriever={address}: it does not reply ({reason}): start it, or correct it") from None
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))[:60]
        raise CoevoError(f"env.retriever={address}: {place} of its response: {problem['msg'][:100]}") from None
    passages = (hit.passage()[:MAX_PASSAGE_CHARS] for hit in reply.result[0][:hits])
    return tuple(passage.encode("utf-8", "replace").decode() for passage in passages if passage)


def _question(row: Mapping[str, Any], place: str) -> AskedQuestion:
    text, golden, split = row.get("question"), row.get("golden_answers"), row.get("split") or ""
    answers = [golden] if isinstance(golden, str) else golden
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT_CHARS or not isinstance(split, str):
        raise CoevoError(f"{place}: question is no text of 1 to {MAX_TEXT_CHARS} characters, or split is none")
    if not isinstance(answers, list) or not 1 <= len(answers) <= MAX_ANSWERS or not all(map(_is_answer, answers)):
        raise CoevoError(f"{place}: golden_answers is no list of 1 to {MAX_ANSWERS} texts that say something")
    return AskedQuestion(text.strip(), tuple(answers), split)


def _is_answer(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARS and bool(normal(value))

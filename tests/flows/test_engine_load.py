"""Each engine's queue is read from what its vLLM server logs; the busiest one comes first, beside the mean."""

import pytest

from coevo.flows.engine_load import MAX_LINES, engine_load, load_lines, summary_of

LINE = (
    "INFO 11-29 10:00:0{second} [loggers.py:127] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation "
    "throughput: {speed} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, {more}GPU KV cache usage: "
    "{cache}%, Prefix cache hit rate: 0.0%\n"
)
MORE = ("", "Deferred: 2 reqs, Preemptions: 3, ", "KV fetch: 1 waiting to start, 0 in progress, 0 completed waiting, ")
"""Parts that vLLM 0.32 adds to its line where there is some."""


def write(folder, number, *rows, more=""):
    folder.mkdir(parents=True, exist_ok=True)
    said = [
        LINE.format(second=n, speed=a, running=b, waiting=c, cache=d, more=more) for n, (a, b, c, d) in enumerate(rows)
    ]
    (folder / f"server-{number}.log").write_text("INFO: started\n" + "".join(said))


@pytest.mark.parametrize("more", MORE)
def test_the_busiest_engine_stands_beside_the_mean(tmp_path, more):
    write(tmp_path, 0, (9.0, 9, 9, 9.0), (100.0, 4, 0, 10.0), more=more)
    write(tmp_path, 1, (50.0, 8, 6, 90.0), more=more)
    write(tmp_path, 2)
    engines = list(engine_load(tmp_path))
    assert [each["name"] for each in engines] == ["server-0", "server-1"]
    found = summary_of(engines)
    assert found["mean"] == {"tokens_per_s": 75.0, "running": 6.0, "waiting": 3.0, "cache": 50.0}
    assert found["worst"] == {"name": "server-1", "tokens_per_s": 50.0, "running": 8, "waiting": 6, "cache": 90.0}
    assert load_lines(engines) == (
        "mean of 2 engines: 6 running, 3 waiting, 75 tokens/s, cache 50 %",
        "server-1, the busiest: 8 running, 6 waiting, 50 tokens/s, cache 90 %",
        "server-0: 4 running, 0 waiting, 100 tokens/s, cache 10 %",
    )


def test_one_engine_has_no_mean_and_no_engine_no_line(tmp_path):
    assert (summary_of([]), load_lines([]), list(engine_load(tmp_path / "none"))) == (None, (), [])
    write(tmp_path, 0, (50.0, 8, 6, 90.0))
    assert load_lines(list(engine_load(tmp_path))) == ("server-0: 8 running, 6 waiting, 50 tokens/s, cache 90 %",)


def test_of_many_engines_those_with_the_longest_queues_are_told(tmp_path):
    for number in range(MAX_LINES + 3):
        write(tmp_path, number, (50.0, 8, number, 90.0))
    _, first, *rest, last = load_lines(list(engine_load(tmp_path)))
    assert first.startswith(f"server-{MAX_LINES + 2}, the busiest: 8 running, {MAX_LINES + 2} waiting")
    assert (len(rest), last) == (MAX_LINES - 1, "and 3 with shorter queues")


def test_the_line_of_a_server_on_a_cpu_is_read(tmp_path):
    """As vLLM 0.32 wrote it in a run of two iterations."""
    (tmp_path / "server-0.log").write_text(
        "(APIServer pid=11038) INFO 11-30 20:57:09 [loggers.py:335] Engine 000: "
        "Avg prompt throughput: 2423.8 tokens/s, "
        "Avg generation throughput: 927.5 tokens/s, Running: 5 reqs, Waiting: 0 reqs, CPU KV cache usage: 0.0%, "
        "Prefix cache hit rate: 0.0%\n"
    )
    assert load_lines(list(engine_load(tmp_path))) == ("server-0: 5 running, 0 waiting, 927.5 tokens/s, cache 0 %",)

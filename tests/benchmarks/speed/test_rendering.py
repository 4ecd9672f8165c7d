"""The episodes whose prompts are timed."""

from benchmarks.speed import rendering


def test_prompts_grow_and_none_is_repeated(monkeypatch, capsys):
    monkeypatch.setattr(rendering, "EPISODES", 2)
    monkeypatch.setattr(rendering, "MAX_PROMPT_TOKENS", 600)
    found = rendering.measure("conversation")
    assert 600 <= found["longest"] < 900
    assert found["prompts"] >= 4
    rendering.report("conversation", found)
    assert "CPU-s per 1,000 prompts (target 2)" in capsys.readouterr().out

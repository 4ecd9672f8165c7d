"""A study of two arms, whose settings a test adds."""

ENTRIES = {
    "name": "entries",
    "paper": "a guess",
    "finding": "Four entries are better than two.",
    "recipe": "homerules-coevo-rl",
    "arms": [
        {"name": "four", "settings": ["bank.retrieval.k=4"]},
        {"name": "two", "expected": "worse", "settings": ["bank.retrieval.k=2"]},
    ],
    "seeds": 1,
    "metrics": [{"name": "agent/success/seen-houses"}],
}
RUNS = ("entries-four-s1", "entries-two-s1")

"""Vectors are computed once for each text, however many come."""

import numpy as np

from coevo.memory.retrieval.encoder import Encoder


def test_each_text_has_one_vector_however_many_come():
    asked = []

    def embed(texts):
        asked.extend(texts)
        return np.array([[float(text), 1.0] for text in texts], np.float32)

    encoder, texts = Encoder(embed, 2), [str(n) for n in range(300)]
    assert encoder.vectors().shape == (0, 2)
    for count in (1, 63, 64, 65, 128, 129, 300, 7):
        numbers = encoder.numbers([*texts[:count], *texts[:2]])
        assert encoder.vectors()[numbers, 0].tolist() == [*range(count), 0, 1]
    assert asked == texts
    assert encoder.vectors()[:, 1].tolist() == [1.0] * 300
    assert [encoder.query("7").tolist(), encoder.query("7").tolist()] == [[7.0, 1.0]] * 2
    assert asked == [*texts, "7"], "questions are kept apart from entries"

"""An answer that a session keeps begins with what its client got, and one that is drawn again is sent once."""

from coevo.models.answers.incremental import IncrementalReader
from coevo.models.policy.message_prompts import ReadAnswer
from coevo.records.answer_faults import Fault
from coevo.records.message import Message
from coevo.tasks.gateway.answer_stream import StreamedAnswer


class Letters:
    """A detokenizer whose tokens are characters."""

    def add(self, token):
        return chr(token)


def streamed(text, again=0, most=None):
    """An answer that was drawn, once up to a number of tokens and then anew; what was sent, and the last verdict."""
    sent = []
    answer = StreamedAnswer(
        lambda: (Letters(), IncrementalReader(False, True, ("STOP",))), most, lambda text, _: sent.append(text) is None
    )
    for count in (again, len(text)):
        wanted = [answer(number, ord(text[number])) for number in range(count)]
    return answer, "".join(sent), wanted


def test_an_answer_that_is_drawn_again_is_sent_once():
    answer, sent, _ = streamed("so it is", again=5)
    assert answer.sent == sent == "so it is"


def test_nothing_is_wanted_behind_a_stop_or_the_limit():
    assert streamed("so STOP it")[2] == [True] * 6 + [False] * 4
    assert streamed("so it", most=3)[2] == [True, True, False, False, False]


def test_thinking_that_ends_behind_what_was_sent_is_text():
    text = "so it is</think> and more"
    answer, _, _ = streamed(text)
    read = answer.settled(ReadAnswer(Message.answer("and more"), "so it is"), text)
    assert (read.message.text, read.fault) == (text, Fault.MALFORMED_CALL)
    again, sent, _ = streamed("<think>so</think>so</think>x")
    assert sent == "so"
    read = again.settled(ReadAnswer(Message.answer("x"), ""), "<think>so</think>so</think>x")
    assert read.message.text == "so</think>x"
    same = ReadAnswer(Message.answer(text), "")
    assert answer.settled(same, text) is same

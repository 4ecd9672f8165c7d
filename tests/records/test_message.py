"""Calls of messages are equal whatever their writing, and can be written to a file whatever they hold."""

import json

from hypothesis import given
from hypothesis import strategies as st

from coevo.records.message import MessageCall

ANY = st.text(st.characters(exclude_categories=()), max_size=8) | st.just("\ud83d")


@given(name=ANY, values=st.dictionaries(ANY, ANY, max_size=3), escaped=st.booleans(), bare=ANY)
def test_every_call_can_be_encoded_and_stays_itself(name, values, escaped, bare):
    for arguments in (json.dumps(values, ensure_ascii=escaped), bare):
        call = MessageCall.of(name, arguments)
        (call.name + call.arguments).encode()
        assert MessageCall.of(call.name, call.arguments) == call

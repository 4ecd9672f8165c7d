"""The layout of a template is found in few renderings, however many messages it has."""

from hypothesis import given
from hypothesis import strategies as st

from coevo.models.policy.encoding import Piece
from coevo.models.policy.layout import TRIMS, piece_of

FIXED = st.text(st.sampled_from(" \n\t<a"), max_size=4)


@given(first=FIXED, rest=st.lists(st.tuples(FIXED, st.sampled_from(TRIMS)), min_size=1, max_size=30))
def test_every_change_to_blanks_is_found_in_few_renderings(first, rest):
    piece, renderings = Piece((first, *(text for text, _ in rest)), tuple(trim for _, trim in rest)), []

    def write(contents):
        renderings.append(contents)
        return piece.text(contents)

    assert piece_of(write, len(rest)) == piece
    assert len(renderings) <= 8

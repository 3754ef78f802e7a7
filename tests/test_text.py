"""Visible text, exact incremental decoding, and stop strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling_lab.models.huggingface.tokenizer import HfTokenizer
from sampling_lab.text import (
    IncrementalDecoder,
    StopMatcher,
    common_prefix,
    visible,
    visible_bytes,
)
from tests import tiny

FAMILY = "👨‍👩‍👧 你好 é"


def decode_bytes(ids):
    return bytes(ids).decode("utf-8", errors="replace")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" ", "␣"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("", "∅"),
        ("\x00", "\\x00"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202e", "\\u202e"),
        ("<b>x", "<b>x"),
        ("中ｱ", "中ｱ"),
    ],
)
def test_visible(text, shown):
    assert visible(text) == shown


@given(st.text())
def test_visible_is_printable_and_never_blank(text):
    shown = visible(text)
    assert shown.isprintable()
    assert shown.strip()


def test_broken_bytes_are_shown_as_hex():
    assert visible_bytes("é".encode()[:1]) == "⟨c3⟩"


def test_family_streamed_byte_by_byte_holds_back_half_characters():
    decoder = IncrementalDecoder(decode_bytes)
    pieces = [decoder.push(byte) for byte in FAMILY.encode()]
    assert "\ufffd" not in "".join(pieces)
    assert "".join(pieces) + decoder.flush() == FAMILY


@given(st.binary(max_size=200))
def test_streamed_equals_decoded_for_any_bytes(data):
    decoder = IncrementalDecoder(decode_bytes)
    pieces = [decoder.push(byte) for byte in data]
    assert "".join(pieces) + decoder.flush() == decode_bytes(data)


def test_incomplete_at_the_end_comes_out_of_flush():
    decoder = IncrementalDecoder(decode_bytes)
    assert [decoder.push(byte) for byte in b"a\xf0\x9f"] == ["a", "", ""]
    assert decoder.flush() == "\ufffd"


def test_a_rewritten_text_loses_nothing_that_follows():
    """A decoder that is not told of stray bytes shows a line feed too early."""
    tokenizer = HfTokenizer(tiny.sentence_piece())
    vocabulary = tokenizer.wrapped.get_vocab()
    pieces = ["▁hello", "<0x0A>", "<0xC3>", *["▁world"] * 40]
    ids = [vocabulary[piece] for piece in pieces]
    decoder = IncrementalDecoder(tokenizer.decode)  # without its probes
    streamed = "".join(map(decoder.push, ids)) + decoder.flush()
    assert decoder.rewritten
    assert streamed == "hello\n\ufffd\ufffd" + " world" * 40
    assert tokenizer.decode(ids) == "hello\ufffd\ufffd" + " world" * 40


def test_a_special_token_can_be_part_of_a_stop_string():
    matcher = StopMatcher(["<end>", "<begin>user"], {"<end>": 7, "<begin>": 8})
    assert matcher.is_special(7) and not matcher.is_special(9)
    assert [matcher.push("a"), matcher.push("b", 8), matcher.push("us")] == [
        "a",
        "b",
        "",
    ]
    assert matcher.push("ual") == "usual"
    assert matcher.push("c", 7) == "c"
    assert matcher.stopped


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_a_common_prefix_is_the_longest(a, b):
    shared = common_prefix(a, b)
    assert a[:shared] == b[:shared]
    assert (
        a[shared : shared + 1] != b[shared : shared + 1] or not a[shared:] + b[shared:]
    )
    assert common_prefix(tuple(a), tuple(b)) == shared


def test_stop_string_split_over_pieces_never_shows():
    matcher = StopMatcher(["beta gamma"])
    pieces = [matcher.push(piece) for piece in ("al", "pha be", "ta ga", "mma x")]
    assert pieces == ["al", "pha ", "", ""]
    assert matcher.stopped
    assert matcher.flush() == ""


def test_false_start_of_a_stop_string_is_released():
    matcher = StopMatcher(["beta"])
    assert [matcher.push(p) for p in ("be", "st ", "bet")] == ["", "best ", ""]
    assert matcher.flush() == "bet"


@given(
    st.text(alphabet="ab", max_size=30),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), min_size=1, max_size=3),
    st.data(),
)
def test_stream_is_cut_where_the_whole_text_would_be(text, stops, data):
    matcher, shown, rest = StopMatcher(stops), "", text
    while rest and not matcher.stopped:
        size = data.draw(st.integers(1, len(rest)))
        shown, rest = shown + matcher.push(rest[:size]), rest[size:]
    shown += matcher.flush()
    seen = text[: len(text) - len(rest)]
    hits = [seen.find(stop) for stop in stops if stop in seen]
    if matcher.stopped:
        assert shown == seen[: len(shown)]
        assert any(seen[len(shown) :].startswith(stop) for stop in stops)
    else:
        assert not hits
        assert shown == text

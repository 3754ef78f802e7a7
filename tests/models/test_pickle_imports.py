"""Names that a pickle would import are found in every protocol, and nothing runs."""

import os
import pickle
from collections import OrderedDict
from importlib import import_module
from io import BytesIO

import pytest

from sampling_lab.models.pickle_imports import HARMLESS, first_refused, imported_names
from sampling_lab.models.pickle_values import STAND_INS
from tests.formats import Opens


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_dangerous_name_is_found_and_not_run(tmp_path, protocol):
    target = tmp_path / "made"
    data = pickle.dumps({"a": [1, Opens(target)]}, protocol=protocol)
    assert first_refused(BytesIO(data)) == f"{os.mkdir.__module__}.mkdir"
    assert not target.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_import_nothing(protocol):
    data = pickle.dumps({"a": [1, 2.5, None, "text", (True,)]}, protocol=protocol)
    assert list(imported_names(BytesIO(data))) == []


def test_memoised_names_are_followed():
    value = [OrderedDict(), OrderedDict(), Opens("x"), Opens("y")]
    names = list(imported_names(BytesIO(pickle.dumps(value, protocol=4))))
    assert names[0] == "collections.OrderedDict"
    assert names[-1].endswith(".mkdir")


def test_old_opcodes_are_read():
    assert first_refused(BytesIO(b"(S'x'\nios\nsystem\n.")) == "os.system"
    assert first_refused(BytesIO(b"\x80\x02\x82\x07.")) == "extension code 7"


def test_a_dangerous_name_before_a_cut_is_still_found():
    data = pickle.dumps([Opens("x"), "a" * 1000], protocol=2)[:200]
    assert first_refused(BytesIO(data)).endswith(".mkdir")
    assert first_refused(BytesIO(b"\x80\x02]q\x00(K\x01")) is None
    assert first_refused(BytesIO(b"")) is None


def test_harmless_names_exist():
    for name in HARMLESS - set(STAND_INS):
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module), last)


TEXT = b"X\x02\0\0\0ab"
LATIN1 = b"X\x06\0\0\0latin1"
HEX = b"X\x03\0\0\0hex"
ENCODE = b"c_codecs\nencode\n"
LONG = b"X\x40\0\0\0" + b"a" * 64


@pytest.mark.parametrize(
    ("operations", "is_harmless"),
    [
        (ENCODE + TEXT + LATIN1 + b"\x86R", True),
        (ENCODE + b"q\x05" + TEXT + b"q\x07" + LATIN1 + b"q\x06\x86q\x08Rq\x09", True),
        (TEXT + b"q\x01" + ENCODE + b"h\x01" + LATIN1 + b"\x86R", True),
        # A long text that is recalled takes more memory each time.
        (LONG + b"q\x01" + ENCODE + b"h\x01" + LATIN1 + b"\x86R", False),
        # So does what is encoded again.
        (ENCODE + ENCODE + TEXT + LATIN1 + b"\x86R" + HEX + b"\x86R", False),
        (ENCODE + TEXT + HEX + b"\x86R", False),
        (ENCODE + b"(" + TEXT + LATIN1 + b"tR", False),
        (ENCODE + b"q\x01" + TEXT + LATIN1 + b"\x86Rh\x01h\x01", False),
        (ENCODE + TEXT + LATIN1 + b"\x86b", False),
    ],
)
def test_bytes_are_made_only_as_pickle_makes_them(operations, is_harmless):
    refused = first_refused(BytesIO(b"\x80\x02" + operations + b"."))
    assert (refused is None) is is_harmless
    assert is_harmless or refused.startswith("_codecs.encode for more than")

"""Names that a pickle would import are found in every protocol, and nothing runs."""

import os
import pickle
from collections import OrderedDict
from io import BytesIO

import pytest
import torch

from sampling_lab.models.pickle_imports import HARMLESS, first_refused, imported_names
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
    for name in HARMLESS - {"collections.OrderedDict"}:
        value = torch
        for part in name.split(".")[1:]:
            value = getattr(value, part)

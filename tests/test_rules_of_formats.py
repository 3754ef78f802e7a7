"""The table of rules in checkpoints/README.md names code and tests that exist."""

import re

import pytest

from tests.helpers import ROOT

ROW = re.compile(r"\| ([\w ]+) \| .+ \| `([\w/.]+\.py)` \| `([\w/.]+)(?:::(\w+))?` \|")
README = (ROOT / "checkpoints/README.md").read_text(encoding="utf-8")
ROWS = ROW.findall(README)


def test_every_system_has_its_rules():
    assert {system for system, *_ in ROWS} == {"XSLM", "scratch LLM", "Kimi K3", "all"}
    table = README[README.index("## The rules") : README.index("Where the lab differs")]
    assert len(ROWS) == table.count("\n| ") - 1  # all but the heads of the columns


@pytest.mark.parametrize(("system", "code", "file", "test"), ROWS)
def test_each_rule_names_code_and_a_test_that_exist(system, code, file, test):
    assert (ROOT / "sampling_lab" / code).is_file()
    assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8")

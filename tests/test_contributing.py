"""The worked example of CONTRIBUTING: a class and a row make a sampler, everywhere."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.helpers import ROOT

CHECKS = """
import torch
from sampling_lab import SamplingParams, as_code
from sampling_lab.cli.main import main
from sampling_lab.sampling.notes import idle, notes
from sampling_lab.sampling.settings_text import parse_settings

params = SamplingParams(temperature=0.5, max_gap=2)
assert params.describe() == "temperature 0.5, max-gap 2, seed 0"
assert parse_settings("max_gap=2, temperature 0.5") == params
ledger = params.chain().ledger(torch.tensor([4.0, 3.5, 2.0, 0.0]))
assert ledger.kept.tolist() == [True, True, False, False]
assert ledger.why(2) == "rank 3: removed by max-gap, logit 4 < 6"
assert notes(params, 4) == (
    "transformers itself has no max-gap: here it is the lab's own",
)
assert idle(SamplingParams(temperature=0))["max_gap"] == "temperature is 0"
assert "max_gap=2" in as_code(params)
assert "max_gap: keep logits at most this far" in SamplingParams.__doc__
options = ["--checkpoint", CHECKPOINT, "--prompt", "Q: hi", "--text"]
assert main(["generate", *options, "--max-gap", "2"]) == 0
assert main(["generate", *options, "--max-gap", "-2"]) == 2
"""


@pytest.fixture(scope="module")
def blocks():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Add a sampler")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.S)


def test_a_class_and_a_row_make_a_sampler(blocks, tmp_path):
    stage, row = blocks
    package = tmp_path / "sampling_lab"
    shutil.copytree(ROOT / "sampling_lab", package)
    truncation = package / "sampling/truncation.py"
    truncation.write_text(f"{truncation.read_text()}\n\n{stage}")
    table = package / "sampling/parameters.py"
    before, after = table.read_text().split("\n\n\nPARAMETERS: ")
    table.write_text(f"{before}\n{row}\n\nPARAMETERS: {after}")
    checkpoint = str(ROOT / "checkpoints/xslm/model.json")
    done = subprocess.run(
        [sys.executable, "-c", f"CHECKPOINT = {checkpoint!r}\n{CHECKS}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    refusal = "error: --max-gap must be a finite number > 0, got -2\n"
    assert done.stderr.endswith(f"sampling-lab: {refusal}")

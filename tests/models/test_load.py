"""Finding a checkpoint and its format, and saying what is wrong with a file."""

import json
import socket

import pytest

from sampling_lab import load
from sampling_lab.errors import CheckpointError, ParameterError
from sampling_lab.models.formats import FORMATS, detect
from tests.helpers import ROOT


@pytest.fixture
def no_network(monkeypatch):
    def rule_error(*args, **kwargs):
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", rule_error)


@pytest.mark.parametrize(
    "name",
    ["checkpoints/mistyped", "./model.json", "/nowhere/model.pt", "no_such.gguf"],
)
def test_a_mistyped_path_names_the_absolute_path_and_asks_no_hub(name, no_network):
    with pytest.raises(CheckpointError, match="there is no file or directory /"):
        load(name)


def test_a_mistyped_path_lists_what_is_there(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"holds: model\.json"):
        load(tmp_path / "mode.json")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"hello, world", r"12 bytes, beginning b'hello, world'.*it loads"),
        (b"{broken", "not valid JSON"),
        (b'{"a": 1}', r"keys \['a'\]; an XSLM checkpoint has settings"),
        (b'{"a": ' + b"[" * 200_000, "not valid JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not valid JSON"),
        (b"[1, 2]", "is no checkpoint the lab knows"),
        (b"PK\x03\x04cut", "begins like a .pt but is cut short"),
    ],
)
@pytest.mark.parametrize("suffix", [".pt", ".json", ".txt"])
def test_damaged_files_say_what_they_are(tmp_path, content, problem, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=problem) as error:
        load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_directory_without_config_says_what_it_has(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json$") as error:
        load(tmp_path)
    assert str(tmp_path) in str(error.value)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"did you mean .*model\.json\?"):
        load(tmp_path)


def test_config_json_alone_points_to_its_directory(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(CheckpointError, match="load its directory"):
        load(tmp_path / "config.json")


def test_unknown_format_lists_the_known_ones():
    with pytest.raises(ParameterError, match=", ".join(FORMATS)):
        load("anything", format="onnx")


@pytest.mark.parametrize("head", [b"GGUF\x03\x00\x00\x00"])
def test_gguf_is_found_by_its_first_bytes(tmp_path, head):
    path = tmp_path / "weights.bin"
    path.write_bytes(head)
    assert detect(path) == "huggingface"


def test_bundled_checkpoint_is_found_from_the_file_itself(tmp_path):
    assert load("checkpoints/xslm/model.json").card.format == "xslm"


@pytest.mark.parametrize(
    ("checkpoint", "text", "special"),
    [
        ("kimi_k3/last.pt", "hi<|end|>", 0),
        ("scratch_llm/tiny_sft.pt", "hi<|endoftext|>", 50256),
        ("smollm2-135m-instruct", "hi<|im_end|>", 2),
    ],
)
def test_names_of_special_tokens_are_text_unless_asked_for(checkpoint, text, special):
    path = ROOT / "checkpoints" / checkpoint
    if not path.exists():
        pytest.skip("SmolLM2 is not fetched")
    plain, parsed = load(path), load(path, parse_special=True)
    assert special not in plain.prompt_ids(text)
    assert parsed.prompt_ids(text) == [*plain.prompt_ids("hi"), special]
    if plain.card.chat:
        turns = [{"role": "user", "content": text}]
        assert parsed.prompt_ids(turns) == plain.prompt_ids(turns)


OPTIONS = {
    "backend": "reference",
    "tokenizer": "gpt2",
    "revision": "main",
    "local_files_only": True,
    "trust_remote_code": True,
    "rename": {},
    "no_such": 1,
}
HAVE = {
    "xslm/model.json": (),
    "scratch_llm/tiny_sft.pt": (),
    "kimi_k3/last.pt": OPTIONS.keys() - {"no_such"},
}


@pytest.mark.parametrize(
    ("checkpoint", "option"),
    [(path, o) for path, own in HAVE.items() for o in OPTIONS if o not in own],
)
def test_an_option_of_another_format_is_one_sentence(checkpoint, option, no_network):
    name = checkpoint.split("/")[0]
    with pytest.raises(ParameterError, match=f"{option} is no option of {name} check"):
        load(ROOT / "checkpoints" / checkpoint, **{option: OPTIONS[option]})

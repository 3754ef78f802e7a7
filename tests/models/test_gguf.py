"""GGUF files: converted once and whole, and never believed about their sizes."""

import json
import os
import struct

import pytest
import torch

from sampling_lab import load
from sampling_lab.errors import CheckpointError, MissingPackageError
from sampling_lab.models.huggingface import gguf as gguf_file
from sampling_lab.models.huggingface.gguf_header import read_header
from tests import tiny

MADE = {
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "source.json",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture
def gguf(tmp_path):
    path = tmp_path / "sunny.gguf"
    tiny.write_gguf(path)
    return path


def conversions(monkeypatch):
    """Count conversions from here on."""
    seen, convert = [], gguf_file.convert

    def counted(path, directory, **options):
        seen.append(path)
        return convert(path, directory, **options)

    monkeypatch.setattr(gguf_file, "convert", counted)
    return seen


def test_the_model_is_the_one_that_was_written(gguf):
    expected = tiny.llama(len(tiny.byte_level()))
    model = load(gguf)
    ids = [5, 9, 33, 7]
    with torch.inference_mode():
        logits = expected(input_ids=torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(model.logits(ids), logits, atol=1e-5, rtol=1e-5)
    card = model.card
    assert (card.name, card.dtype, card.context_length) == ("sunny", "float32", 64)
    assert (card.stop_token_ids, card.bos_token_id, card.chat) == ((2,), 0, True)


def test_the_tokenizer_is_the_one_that_was_written(gguf):
    model, words = load(gguf), tiny.byte_level()
    for said in ("the sun is warm", "你好 👋\n\t", "<|im_end|>"):
        assert model.tokenizer.decode(model.prompt_ids(said)) == said
    turns = [{"role": "user", "content": "the sun"}]
    theirs = words.apply_chat_template(turns, add_generation_prompt=True)
    assert model.prompt_ids(turns) == theirs["input_ids"]


def test_numbers_are_split_as_the_vocabulary_was_learnt(gguf):
    wrapped = load(gguf).tokenizer.wrapped
    split = wrapped.backend_tokenizer.pre_tokenizer.pre_tokenize_str
    pieces = [piece for piece, _ in split("  1234 a5")]
    assert pieces == ["ĠĠ", "1", "2", "3", "4", "Ġa", "5"]


def test_every_end_is_kept(tmp_path):
    path = tmp_path / "a.gguf"
    tiny.write_gguf(path, eot_token_id=1, eom_token_id=0)
    assert load(path).card.stop_token_ids == (0, 1, 2)


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


def test_positions_that_are_rescaled_stay_so(tmp_path, capfd):
    expected = tiny.write_gguf(tmp_path / "a.gguf", rope=LLAMA3)
    plain = tiny.write_gguf(tmp_path / "b.gguf")
    ids = [5, 9, 33, 7, 8, 1] * 8
    with torch.inference_mode():
        logits = expected(input_ids=torch.tensor([ids])).logits[0, -1]
        others = plain(input_ids=torch.tensor([ids])).logits[0, -1]
    found = load(tmp_path / "a.gguf").logits(ids)
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=1e-5)
    assert (found - others).abs().max() > 0.01
    assert capfd.readouterr() == ("", "")


def test_it_is_converted_once(gguf, monkeypatch):
    seen = conversions(monkeypatch)
    load(gguf)
    made = gguf.with_name("sunny-safetensors")
    assert {path.name for path in made.iterdir()} == MADE
    assert sorted(gguf.parent.iterdir()) == [made, gguf]
    load(gguf)
    os.utime(gguf, (1, 1))  # the same bytes with another date
    load(gguf)
    assert load(made).card.name == "sunny-safetensors"
    assert len(seen) == 1


def test_a_changed_file_is_converted_again(gguf, monkeypatch):
    load(gguf)
    seen = conversions(monkeypatch)
    tiny.write_gguf(gguf, padding_token_id=2)
    assert load(gguf).tokenizer.wrapped.pad_token_id == 2
    assert len(seen) == 1


def test_the_directory_that_holds_its_file_is_used(gguf, monkeypatch):
    gguf_file.convert(gguf, gguf.parent)
    seen = conversions(monkeypatch)
    assert gguf_file.converted(gguf) == gguf.parent
    tiny.write_gguf(gguf, padding_token_id=2)
    assert gguf_file.converted(gguf) == gguf.parent
    assert len(seen) == 1


def test_what_an_interrupt_leaves_is_not_taken_for_whole(gguf, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(gguf_file, "_write_tokenizer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            load(gguf)
    assert list(gguf.parent.iterdir()) == [gguf]
    load(gguf)


def test_a_place_that_cannot_be_written_is_not(gguf, monkeypatch, tmp_path):
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    seen = conversions(monkeypatch)
    assert load(gguf).card.name == load(gguf).card.name == "sunny"
    assert len(seen) == 1
    assert sorted(gguf.parent.iterdir()) == [cache, gguf]


def test_conversion_is_silent_unless_asked(gguf, capfd):
    load(gguf)
    assert capfd.readouterr() == ("", "")
    gguf_file.convert(gguf, gguf.parent / "again", progress=True)
    assert "Converting GGUF" in capfd.readouterr().err


def test_an_unknown_architecture_lists_the_known_ones(tmp_path):
    path = tmp_path / "a.gguf"
    tiny.write_gguf(path, architecture="nonesuch")
    with pytest.raises(CheckpointError, match=r"'nonesuch', .* llama, .*qwen2") as e:
        load(path)
    assert list(tmp_path.iterdir()) == [path]
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_a_missing_package_is_named_with_its_command(gguf, monkeypatch, package):
    monkeypatch.setattr(gguf_file, "find_spec", lambda name: name != package or None)
    with pytest.raises(MissingPackageError, match=f"pip install {package}"):
        load(gguf)


def test_a_weight_too_many_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.gguf"
    real = tiny._in_gguf

    def renamed(name, weight, config):
        name, weight = real(name, weight, config)
        return name.replace("output_norm", "output_gnome"), weight

    monkeypatch.setattr(tiny, "_in_gguf", renamed)
    tiny.write_gguf(path)
    with pytest.raises(CheckpointError, match=r"lacks the weights model\.norm\.weight"):
        load(path)


def header(tensors=0, keys=0, rest=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest


def text(content):
    return struct.pack("<Q", len(content)) + content


HOSTILE = {
    "tensors without end": header(tensors=2**62),
    "keys without end": header(keys=2**62),
    "a long text": header(keys=1, rest=struct.pack("<Q", 2**40)),
    "a long array": header(keys=1, rest=text(b"k") + struct.pack("<IIQ", 9, 4, 2**61)),
    "many texts": header(keys=1, rest=text(b"k") + struct.pack("<IIQ", 9, 8, 2**62)),
    "arrays in arrays": header(keys=1, rest=text(b"k") + struct.pack("<IIQ", 9, 9, 9)),
    "an unknown type": header(keys=1, rest=text(b"k") + struct.pack("<I", 77)),
    "no text": header(keys=1, rest=text(b"\xff\xfe")),
    "many dimensions": header(tensors=1, rest=text(b"t") + struct.pack("<I", 2**31)),
    "a huge tensor": header(
        tensors=1, rest=text(b"t") + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, 0)
    ),
    "a tensor far away": header(
        tensors=1, rest=text(b"t") + struct.pack("<IQIQ", 1, 4, 0, 2**60)
    ),
    "an unknown kind of tensor": header(
        tensors=1, rest=text(b"t") + struct.pack("<IQIQ", 1, 4, 999, 0)
    ),
    "an alignment of nothing": header(
        keys=1,
        rest=text(b"general.alignment") + struct.pack("<II", 4, 0),
    ),
    "another version": header(version=9),
    "more keys than any file": header(keys=1_025, rest=bytes(1 << 16)),
    "more tensors than any file": header(tensors=16_385, rest=bytes(1 << 16)),
    "arrays of no vocabulary": header(
        keys=1, rest=text(b"k") + struct.pack("<IIQ", 9, 0, 5_000) + bytes(5_000)
    ),
    "the same key twice": header(
        keys=2, rest=(text(b"k") + struct.pack("<II", 4, 0)) * 2
    ),
    "a text longer than any": header(keys=1, rest=text(bytes((1 << 20) + 1))),
    "an offset beyond 64 bits": header(
        tensors=1, rest=text(b"t") + struct.pack("<IQIQ", 1, 4, 0, 2**64 - 1)
    ),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_header_is_never_believed(tmp_path, content):
    path = tmp_path / "a.gguf"
    path.write_bytes(content + b"\0" * 64)
    with pytest.raises(CheckpointError, match="cut short or damaged"):
        load(path)


@pytest.mark.parametrize("key", ["block_count", "embedding_length", "vocab_size"])
def test_sizes_that_the_tensors_do_not_have_are_refused(gguf, key):
    data = gguf.read_bytes()
    name = f"llama.{key}".encode()
    at = data.index(text(name)) + 8 + len(name) + 4
    gguf.write_bytes(data[:at] + struct.pack("<I", 10**6) + data[at + 4 :])
    with pytest.raises(CheckpointError, match=r"asks for [\d,]+"):
        load(gguf)
    assert list(gguf.parent.iterdir()) == [gguf]


def test_a_header_without_its_keys_is_refused(gguf):
    data = gguf.read_bytes()
    gguf.write_bytes(data.replace(b"llama.block_count", b"llama.block_caunt"))
    with pytest.raises(CheckpointError, match=r"sunny\.gguf"):
        load(gguf)


def test_a_header_tells_what_the_file_holds(gguf):
    found = read_header(gguf)
    network = tiny.llama(len(tiny.byte_level()))
    assert found.architecture == "llama"
    assert found.elements == sum(p.numel() for p in network.parameters())
    assert found.shapes["blk.0.ffn_up.weight"] == (48, 32)
    assert found.metadata["tokenizer.ggml.tokens"] == len(tiny.byte_level())


def test_source_records_what_was_converted(gguf):
    made = gguf_file.converted(gguf)
    source = json.loads((made / "source.json").read_text())
    assert source["file"] == "sunny.gguf"
    assert source["sha256"] == gguf_file.sha256(gguf)
    (made / "source.json").write_text("broken")
    assert not gguf_file.is_current(made, gguf)

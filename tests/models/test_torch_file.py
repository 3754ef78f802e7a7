"""A .pt is opened without running any of it or taking memory it has not earned."""

import pickle
import random
import warnings
import zipfile
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.torch_version import TorchVersion

from sampling_lab.errors import CheckpointError
from sampling_lab.models.torch_file import check_state, read_torch_file, strip_prefixes
from tests.formats import Opens


def save(path, content, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(content, path, **options)
    return path


def rewritten(source, target, change, compression=zipfile.ZIP_STORED):
    """Copy an archive with each (name, bytes) changed; None leaves one out."""
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", compression) as new,
    ):
        for name in old.namelist():
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data)
    return target


@pytest.fixture
def plain(tmp_path):
    content = {
        "state": OrderedDict(w=torch.arange(10.0), b=torch.ones(2000)),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "groups": [{"lr": 1}]},
        "pytorch_version": TorchVersion("2.13.0+cpu"),
        "dtype": torch.bfloat16,
        "device": torch.device("cuda:1"),
        "shape": torch.Size([2, 3]),
    }
    return save(tmp_path / "plain.pt", content)


def test_plain_content_comes_back(plain):
    content = read_torch_file(plain)
    assert torch.equal(content["state"]["w"], torch.arange(10.0))
    assert content["pytorch_version"] == "2.13.0+cpu"
    assert content["shape"] == (2, 3)
    assert content["dtype"] is torch.bfloat16


def test_without_weights_there_are_shapes_only(plain):
    weight = read_torch_file(plain, weights=False)["state"]["b"]
    assert weight.shape == (2000,)
    assert weight.is_meta


def test_writing_to_a_tensor_leaves_the_file_alone(plain):
    before = plain.read_bytes()
    read_torch_file(plain)["state"]["w"].zero_()
    assert plain.read_bytes() == before


def test_no_registration_is_left_and_none_of_the_callers_is_removed(plain):
    before = set(torch.serialization.get_safe_globals())  # they are in no order
    read_torch_file(plain)
    assert set(torch.serialization.get_safe_globals()) == before
    with torch.serialization.safe_globals([TorchVersion]):
        read_torch_file(plain)
        assert TorchVersion in torch.serialization.get_safe_globals()


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_run_and_the_type_is_named(tmp_path, protocol):
    marker = tmp_path / "made"
    content = {"model_state_dict": {"w": torch.ones(2)}, "cfg": [Opens(marker)]}
    path = save(tmp_path / "zip.pt", content, pickle_protocol=protocol)
    for weights in (True, False):
        with pytest.raises(CheckpointError, match=r"asks for posix\.mkdir"):
            read_torch_file(path, weights=weights)
    assert not marker.exists()


def test_another_pickle_in_the_archive_is_read_too(tmp_path, plain):
    with zipfile.ZipFile(plain, "a") as archive:
        archive.writestr("plain/more", pickle.dumps(Opens(tmp_path / "made")))
    with pytest.raises(CheckpointError, match=r"plain/more asks for posix\.mkdir"):
        read_torch_file(plain)


def test_an_archive_in_the_archive_is_refused(tmp_path, plain):
    inner = save(tmp_path / "inner.pt", {"a": 1}).read_bytes()
    with zipfile.ZipFile(plain, "a") as archive:
        archive.writestr("plain/inner.pt", inner)
    with pytest.raises(CheckpointError, match=r"an archive, plain/inner\.pt, which"):
        read_torch_file(plain)


def test_names_that_are_no_utf_8_are_refused(tmp_path, plain):
    data = plain.read_bytes()
    name = "plain/é".encode()
    with zipfile.ZipFile(plain, "a") as archive:
        archive.writestr(name.decode(), b"")
    plain.write_bytes(plain.read_bytes().replace(name, b"plain/\xff\xff"))
    assert len(plain.read_bytes()) > len(data)
    with pytest.raises(CheckpointError, match=r"is a damaged archive: 'utf-8' codec"):
        read_torch_file(plain)
    pickled = rewritten(
        save(tmp_path / "a.pt", {"é": 1}),
        tmp_path / "b.pt",
        replaced("é".encode(), b"\xff\xff"),
    )
    with pytest.raises(CheckpointError, match=r"not a whole \.pt checkpoint: 'utf-8'"):
        read_torch_file(pickled)


@pytest.mark.parametrize(
    "value", [bytearray(3), complex(1, 2), torch.sparse_coo, np.float64]
)
def test_names_that_torch_allows_but_no_checkpoint_needs_are_refused(tmp_path, value):
    path = save(tmp_path / "x.pt", {"a": value})
    with pytest.raises(CheckpointError, match="asks for"):
        read_torch_file(path)


def test_a_caller_cannot_widen_what_is_allowed(tmp_path):
    path = save(tmp_path / "x.pt", {"a": bytearray(3)})
    with (
        torch.serialization.safe_globals([bytearray]),
        pytest.raises(CheckpointError, match="bytearray"),
    ):
        read_torch_file(path)


def test_a_caller_cannot_change_what_a_name_stands_for(tmp_path):
    path = save(tmp_path / "x.pt", {"a": Path("/a/b")})
    with torch.serialization.safe_globals([(print, "pathlib.PosixPath")]):
        assert read_torch_file(path)["a"] == PurePosixPath("/a/b")


NOTES = {
    "float64": (np.float64(1.5), 1.5),
    "float32": (np.float32(0.25), 0.25),
    "float16": (np.float16(0.5), 0.5),
    "int64": (np.int64(-3), -3),
    "uint8": (np.uint8(200), 200),
    "bool": (np.bool_(True), True),
    "complex": (np.complex64(1 + 2j), 1 + 2j),
    "text": (np.str_("añb"), "añb"),
    "bytes": (b"\x00\xff", b"\x00\xff"),
    "no bytes": (b"", b""),
    "namespace": (Namespace(lr=0.1, out=Path("a/b")), {"lr": 0.1, "out": Path("a/b")}),
    "simple namespace": (SimpleNamespace(lr=0.1), {"lr": 0.1}),
    "path": (Path("/ephemeral/ckpts/sft.pt"), PurePosixPath("/ephemeral/ckpts/sft.pt")),
    "windows": (PureWindowsPath("C:/x y"), PureWindowsPath("C:/x y")),
}


@pytest.mark.parametrize("kind", NOTES)
def test_what_trainers_note_comes_back_as_plain_values(tmp_path, kind):
    value, expected = NOTES[kind]
    content = read_torch_file(save(tmp_path / "x.pt", {"a": value, "b": [value]}))
    assert content == {"a": expected, "b": [expected]}
    assert type(content["a"]) is type(expected) or kind.endswith("namespace")


RANDOM_STATES = {
    "an array": lambda: np.arange(6.0).reshape(2, 3),
    "an empty array": lambda: np.zeros(0),
    "an array of objects": lambda: np.array([None, {"a": 1}], dtype=object),
    "a tuple": np.random.get_state,
    "a dictionary": lambda: np.random.get_state(legacy=False),
    "RandomState": lambda: np.random.RandomState(1),
    "Generator": lambda: np.random.default_rng(1),
    **{
        name: lambda name=name: getattr(np.random, name)(1)
        for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")
    },
}


@pytest.mark.parametrize("kind", RANDOM_STATES)
def test_arrays_and_random_states_of_numpy_are_let_pass_unread(tmp_path, kind):
    path = save(tmp_path / "x.pt", {"a": RANDOM_STATES[kind](), "w": torch.ones(2)})
    content = read_torch_file(path)
    assert torch.equal(content["w"], torch.ones(2))
    assert not isinstance(content["a"], np.ndarray | np.random.RandomState)
    assert str(content) == str(read_torch_file(path))  # no address in memory


@pytest.mark.parametrize(
    ("value", "old", "new", "expected"),
    [
        (np.float64(1.5), b"numpy._core.", b"numpy.core.", 1.5),
        (Path("/a/b"), b"pathlib\n", b"pathlib._local\n", PurePosixPath("/a/b")),
        (Path("a/b"), b"PosixPath", b"WindowsPath", PureWindowsPath("a/b")),
    ],
)
def test_what_other_versions_and_systems_write_loads_too(
    tmp_path, value, old, new, expected
):
    source = save(tmp_path / "source.pt", {"a": value})
    path = rewritten(source, tmp_path / "x.pt", replaced(old, new))
    assert read_torch_file(path) == {"a": expected}


@pytest.mark.parametrize(
    "value", [np.datetime64("2026-01-01"), np.void(b"ab"), np.timedelta64(3)]
)
def test_a_numpy_value_that_is_no_number_is_refused_in_a_sentence(tmp_path, value):
    path = save(tmp_path / "x.pt", {"a": value})
    with pytest.raises(CheckpointError, match=r"NumPy value of type .* is no"):
        read_torch_file(path)


BAD_FILES = {
    "text": ("Здравствуй, a note.\n".encode() * 40, "is text, not a .pt"),
    "binary": (b"\x00\x01\x02\xff", "data that begins"),
    "cut": (b"PK\x03\x04" + b"\0" * 50, "cut short"),
    "pickle": (pickle.dumps({"a": 1}), "old format, or is a plain pickle"),
    "tar": (b"pickle" + bytes(251) + b"ustar", "data that begins b'pickle"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_what_is_no_checkpoint_is_named(tmp_path, kind):
    data, message = BAD_FILES[kind]
    path = tmp_path / "x.pt"
    path.write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        read_torch_file(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_old_format_without_code_is_refused_too(tmp_path):
    path = save(
        tmp_path / "x.pt", {"w": torch.ones(2)}, _use_new_zipfile_serialization=False
    )
    with pytest.raises(CheckpointError, match="old format"):
        read_torch_file(path)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(CheckpointError, match="is a directory"):
        read_torch_file(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_torch_file(tmp_path / "nowhere.pt")


@pytest.mark.parametrize("value", [[1, 2], torch.ones(2), "text", None])
def test_the_top_is_a_dictionary(tmp_path, value):
    with pytest.raises(CheckpointError, match="at the top"):
        read_torch_file(save(tmp_path / "x.pt", value))


def replaced(old, new):
    def change(name, data):
        if not name.endswith("data.pkl"):
            return data
        assert old in data
        return data.replace(old, new)

    return change


HUGE = b"\x8a\x05\x00\x00\x00\x00\x10"  # 2 ** 36
CLAIMS = {
    "tensor": (replaced(b"K\x00K\x0a\x85", b"K\x00" + HUGE + b"\x85"), "claim 274,"),
    "storage": (replaced(b"K\x0atq", HUGE + b"tq"), "claim 274,"),
    "a little": (replaced(b"K\x00K\x0a\x85", b"K\x00K\x0b\x85"), "not a whole .pt"),
    "negative": (
        replaced(b"K\x00K\x0a\x85", b"K\x00J\xff\xff\xff\xff\x85"),
        "not a whole",
    ),
    "broadcast": (
        lambda name, data: (
            data.replace(b"K\x00K\x0a\x85", b"K\x00" + HUGE + b"\x85").replace(
                b"K\x01\x85", b"K\x00\x85"
            )
            if name.endswith("data.pkl")
            else data
        ),
        "claim 274,",
    ),
    "no bytes": (
        lambda name, data: None if name.endswith("data/0") else data,
        "data/0",
    ),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_sizes_are_compared_with_the_file(tmp_path, kind):
    change, message = CLAIMS[kind]
    content = {"w": torch.arange(10.0), "b": torch.ones(2000)}
    source = save(tmp_path / "source.pt", content)
    with pytest.raises(CheckpointError, match=message):
        read_torch_file(rewritten(source, tmp_path / "x.pt", change))


def test_flipped_bits_in_a_pickle_give_content_or_a_sentence(tmp_path):
    notes = {"é": np.float64(1.5), "n": Namespace(p=Path("a/ü")), "t": "Wärme"}
    source = save(tmp_path / "source.pt", {"w": torch.arange(10.0), **notes})
    dice = random.Random(3)

    def flipped(name, data):
        if not name.endswith("data.pkl"):
            return data
        changed = bytearray(data)
        changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return bytes(changed)

    refused = 0
    for _ in range(500):
        try:
            read_torch_file(rewritten(source, tmp_path / "x.pt", flipped))
        except CheckpointError as error:
            refused += 1
            assert "\n" not in str(error)
            assert len(str(error)) <= 600
    assert 100 < refused < 500


def test_many_names_for_the_same_bytes_are_refused_but_tied_weights_load(tmp_path):
    weight = torch.ones(50_000)
    tied = save(tmp_path / "tied.pt", {"embed": weight, "head": weight})
    assert read_torch_file(tied)["head"].shape == (50_000,)
    many = save(tmp_path / "many.pt", {f"w{n}": weight for n in range(9)})
    with pytest.raises(CheckpointError, match="claim"):
        read_torch_file(many)


def test_compressed_archives_are_refused(tmp_path):
    source = save(tmp_path / "source.pt", {"w": torch.zeros(1_000_000)})
    path = rewritten(
        source, tmp_path / "x.pt", lambda _, data: data, zipfile.ZIP_DEFLATED
    )
    assert path.stat().st_size < 20_000
    with pytest.raises(CheckpointError, match=r"unpacks to 4,0\d\d,\d+ bytes"):
        read_torch_file(path)


def test_odd_archives_are_refused(tmp_path, plain):
    with pytest.raises(CheckpointError, match="TorchScript"):
        with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
            archive.writestr("x/constants.pkl", b"\x80\x02N.")
        read_torch_file(tmp_path / "script.pt")
    with zipfile.ZipFile(tmp_path / "word.docx", "w") as archive:
        archive.writestr("word/document.xml", b"<x/>")
    with pytest.raises(CheckpointError, match="not a whole"):
        read_torch_file(tmp_path / "word.docx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(plain, "a") as archive:
            archive.writestr("plain/data.pkl", b"\x80\x02N.")
    with pytest.raises(CheckpointError, match="twice"):
        read_torch_file(plain)


def test_a_container_that_holds_itself_does_not_hang(tmp_path):
    loop = []
    loop.append(loop)
    assert read_torch_file(save(tmp_path / "x.pt", {"a": loop}))["a"][0]


@pytest.mark.parametrize(
    "name",
    [
        "lm_head.weight",
        "module.lm_head.weight",
        "_orig_mod.lm_head.weight",
        "module._orig_mod.lm_head.weight",
        "_orig_mod.module.transformer.lm_head.weight",
        "module.module.lm_head.weight",
        "transformer._orig_mod.module.transformer.lm_head.weight",
    ],
)
def test_prefixes_are_stripped_in_any_order(name):
    assert strip_prefixes({name: 1}) == {"lm_head.weight": 1}


def test_prefixes_inside_a_name_stay():
    names = {"blocks.0.module.x": 1, "my_module.y": 2, "modules.z": 3}
    assert strip_prefixes(names) == names


def test_names_that_meet_or_are_no_text_are_refused():
    with pytest.raises(CheckpointError, match="twice"):
        strip_prefixes({"a": 1, "module.a": 2})
    with pytest.raises(CheckpointError, match="must be text, got 3"):
        strip_prefixes({3: 1})


SHAPES = {"a": (2, 3), "b": (4,)}
GOOD = {"a": torch.ones(2, 3), "b": torch.ones(4)}


def test_a_fitting_state_passes():
    check_state(SHAPES, GOOD)
    check_state(SHAPES, {**GOOD, "mask": torch.ones(2)}, optional={"mask": (2,)})
    check_state(SHAPES, {**GOOD, "v.x": torch.ones(9)}, allowed_extra=["v."])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": GOOD["a"]}, "1 missing (b)"),
        ({**GOOD, "c": GOOD["b"]}, "1 unexpected (c)"),
        ({**GOOD, "b": torch.ones(5)}, "1 wrong (b is (5,), not (4,))"),
        ({**GOOD, "b": [1.0]}, "b is a list, not a tensor"),
        ({**GOOD, "b": torch.ones(4).int()}, "b is torch.int32, not floating-point"),
        ({"c": GOOD["a"]}, "2 missing (a, b); 1 unexpected (c)"),
        ({**GOOD, "mask": torch.ones(3)}, "mask is (3,), not (2,)"),
    ],
)
def test_every_difference_is_listed(state, message):
    with pytest.raises(CheckpointError) as caught:
        check_state(SHAPES, state, optional={"mask": (2,)}, source="x.pt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("x.pt")


def test_long_lists_are_cut_and_counted():
    expected = {f"w{n}": (1,) for n in range(3000)}
    with pytest.raises(CheckpointError, match=r"3,000 missing \(w0, .*2,996 more\)"):
        check_state(expected, {})

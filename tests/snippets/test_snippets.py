"""Code to paste: run, it gives the same tokens; what it cannot do, it says."""

import ast
import json
import re
import shlex

import pytest

from sampling_lab import SamplingParams, generate, load
from sampling_lab.cli import commands
from sampling_lab.cli import main as cli
from sampling_lab.errors import ParameterError
from sampling_lab.snippets import TARGETS, as_code
from tests import tiny
from tests.helpers import run_cell, run_cli
from tests.sampling.test_params import FULL

MESSAGES = [{"role": "user", "content": "hello"}]
PROMPTS = ['hello <|im_end|> it\'s "{warm}"\n', [5, 6, 7], MESSAGES]
PARAMS = [
    SamplingParams(temperature=0.7, top_k=20, top_p=0.9, seed=7),
    SamplingParams(seed=3, typical_p=0.8, min_p=0.02, repetition_penalty=1.3),
    SamplingParams(
        temperature=1.5,
        seed=11,
        logit_bias={5: -2.0, 70: 1.5},
        banned_token_ids=[2, 9],
        no_repeat_ngram_size=2,
    ),
    SamplingParams(temperature=0, top_k=3, repetition_penalty=1.2),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A tiny model whose author has settings that would be filled in."""
    directory = tiny.save(tmp_path_factory.mktemp("code") / "it's a model")
    authors = '{"do_sample": true, "top_k": 2, "temperature": 0.2, "eos_token_id": 2}'
    (directory / "generation_config.json").write_text(authors)
    return str(directory)


@pytest.fixture(scope="module")
def model(checkpoint):
    return load(checkpoint)


@pytest.mark.parametrize("params", PARAMS, ids=SamplingParams.describe)
@pytest.mark.parametrize("prompt", PROMPTS, ids=["text", "ids", "chat"])
def test_transformers_code_gives_the_same_tokens(checkpoint, model, params, prompt):
    asked = {"prompt": prompt, "checkpoint": checkpoint, "max_new_tokens": 12}
    code = as_code(params, "transformers", **asked)
    names, printed = run_cell(code)
    ours = generate(model, prompt, params, max_new_tokens=12)
    last = [ours.stop_step.token_id] if ours.stop_step else []
    assert names["new_ids"].tolist() == [*ours.token_ids, *last]
    assert printed.strip() == ours.text.strip()


def test_transformers_code_stops_where_it_is_told(checkpoint, model):
    params = SamplingParams(seed=5)
    free = generate(model, [5], params, max_new_tokens=9, stop_token_ids=())
    end = free.token_ids[4]
    asked = {"prompt": [5], "checkpoint": checkpoint, "max_new_tokens": 9}
    code = as_code(params, "transformers", **asked, stop_token_ids=[end])
    new_ids = run_cell(code)[0]["new_ids"].tolist()
    assert new_ids == list(free.token_ids[: free.token_ids.index(end) + 1])


@pytest.mark.parametrize("params", PARAMS, ids=SamplingParams.describe)
def test_the_labs_own_code_gives_the_same_text(checkpoint, model, params):
    for prompt in PROMPTS:
        code = as_code(params, prompt=prompt, checkpoint=checkpoint, max_new_tokens=8)
        names, printed = run_cell(code)
        assert names["params"] == params
        assert printed == generate(model, prompt, params, max_new_tokens=8).text + "\n"


def pasted(prompt, checkpoint):
    """Return the words of a command line, without the one that asks for text alone."""
    params = FULL.replace(top_k=200)
    code = as_code(
        params, "cli", prompt=prompt, checkpoint=checkpoint, max_new_tokens=10
    )
    program, *words, last = shlex.split(code)
    assert (program, last) == ("sampling-lab", "--text")
    return params, words


def test_the_command_line_gives_the_same_tokens(checkpoint, model):
    params, words = pasted(PROMPTS[0], checkpoint)
    output = run_cli(*words, check=True).stdout
    ours = generate(model, PROMPTS[0], params, max_new_tokens=10)
    assert json.loads(output)["generated_token_ids"] == list(ours.token_ids)


def test_the_command_line_takes_token_ids(checkpoint, model, capsys):
    params, words = pasted(PROMPTS[1], checkpoint)
    assert cli.main(words) == 0
    ours = generate(model, PROMPTS[1], params, max_new_tokens=10)
    output = json.loads(capsys.readouterr().out)
    assert output["generated_token_ids"] == list(ours.token_ids)


def command_line_params(params):
    """Return the parameters that the command line's own parser reads."""
    words = shlex.split(as_code(params, "cli", prompt="-x"))[1:]
    return commands._requested(cli.build_parser().parse_args(cli._normalised(words)))


@pytest.mark.parametrize(
    "params",
    [
        *PARAMS,
        FULL,
        FULL.replace(penalize_prompt=True, dialect="llama.cpp"),
        SamplingParams(seed=None),
        SamplingParams(presence_penalty=-0.5, logit_bias={3: -1e-3}),
    ],
    ids=SamplingParams.describe,
)
def test_the_command_line_says_every_parameter(params):
    assert command_line_params(params) == params


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("params", [*PARAMS, FULL], ids=SamplingParams.describe)
def test_every_target_is_well_formed(target, params):
    code = as_code(params, target, prompt='it\'s {x} "quoted" \\ -- $HOME\n')
    if target in ("cli", "llama.cpp"):
        assert 'it\'s {x} "quoted" \\ -- $HOME\n' in shlex.split(code, comments=True)
    else:
        ast.parse(code)
        assert len(code.splitlines()[-1]) > 0


def test_llama_cpp_says_what_is_off_too():
    params = SamplingParams(seed=1)
    code = as_code(params, "llama.cpp", prompt="a b", checkpoint="m.gguf")
    assert code == (
        "llama-completion -no-cnv -m m.gguf -p 'a b' -n 64 --temp 1.0 --top-k 0 "
        "--top-p 1.0 --min-p 0.0 --seed 1\n"
    )


def test_llama_cpp_has_an_option_for_every_parameter_of_its_own():
    not_its_own = ("no_repeat_ngram_size", "penalize_prompt", "draw_method")
    params = FULL.replace(dialect="llama.cpp", **dict.fromkeys(not_its_own))
    code = as_code(params, "llama.cpp", prompt="a", max_new_tokens=None)
    expected = (
        "--logit-bias 2+3.0 --logit-bias 7-1.5 --logit-bias 4-inf "
        "--logit-bias 9-inf --temp 0.7 --top-k 40 --top-p 0.9 --min-p 0.05 "
        "--repeat-penalty 1.1 --frequency-penalty 0.25 --presence-penalty -0.5 "
        "--typical 0.95 --top-nsigma 1.5 --xtc-probability 0.5 --xtc-threshold 0.2 "
        "--repeat-last-n 64 --seed 3"
    )
    assert shlex.split(code)[6:] == expected.split()


def test_vllm_code_takes_text_ids_and_chat():
    params = SamplingParams(0.5, top_p=0.8, seed=2, banned_token_ids=[4])
    code = as_code(params, "vllm", prompt=[1, 2], checkpoint="m", stop_token_ids=[0])
    assert "generate({'prompt_token_ids': [1, 2]}, params)" in code
    assert "    logit_bias={4: -100.0},\n" in code
    assert "    stop_token_ids=[0],\n" in code
    assert "llm.chat([{'role'" in as_code(params, "vllm", prompt=MESSAGES)
    assert "llm.generate('hi', params)" in as_code(params, "vllm", prompt="hi")


@pytest.mark.parametrize(
    ("target", "settings", "caveat"),
    [
        ("transformers", {"xtc_probability": 0.5}, "transformers has no XTC: left out"),
        ("transformers", {"top_n_sigma": 1.0}, "transformers has no top-nσ: left out"),
        ("vllm", {"typical_p": 0.5}, "vllm has no typical-p: left out"),
        (
            "vllm",
            {"frequency_penalty": 1.0, "penalty_window": 9},
            "vllm has no penalty window: all tokens count",
        ),
        (
            "vllm",
            {"frequency_penalty": 1.0, "penalize_prompt": True},
            "vllm does not count the prompt for frequency penalty",
        ),
        (
            "llama.cpp",
            {"repetition_penalty": 1.1, "penalize_prompt": False},
            "llama.cpp counts the prompt for repetition penalty",
        ),
        (
            "transformers",
            {"dialect": "mlx"},
            "these are the rules of mlx; transformers has its own order, ties, nucleus "
            "and draw",
        ),
        (
            "transformers",
            {"draw_method": "keyed"},
            "the lab draws by keyed, transformers in its own way",
        ),
    ],
)
def test_a_comment_for_what_the_engine_does_otherwise(target, settings, caveat):
    code = as_code(SamplingParams(**settings), target)
    comments = [line for line in code.splitlines() if line.startswith("# ")]
    assert f"# {caveat}" in comments


@pytest.mark.parametrize("target", ["transformers", "vllm", "llama.cpp"])
def test_no_comment_where_the_engine_does_the_same(target):
    params = SamplingParams(0.5, top_k=3, top_p=0.9, repetition_penalty=1.2)
    assert not re.search("^# these|left out", as_code(params, target), re.M)


def test_a_gguf_file_is_named_in_its_folder():
    code = as_code(SamplingParams(), "transformers", checkpoint="a/b/m.gguf")
    assert "AutoTokenizer.from_pretrained('a/b', gguf_file='m.gguf')" in code


@pytest.mark.parametrize(
    ("target", "prompt", "message"),
    [
        ("ggml", "a", "target must be one of 'sampling_lab', .* got 'ggml'"),
        ("llama.cpp", [1], "prompt must be text for llama.cpp"),
        ("cli", MESSAGES, "prompt must be text or token ids for a command line"),
        ("cli", "", "prompt must not be empty"),
    ],
)
def test_what_cannot_be_written_is_refused(target, prompt, message):
    with pytest.raises(ParameterError, match=message):
        as_code(SamplingParams(), target, prompt=prompt)

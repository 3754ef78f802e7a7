"""The toy GPT: its file, tokenizer, arithmetic, window, training and checkpoints."""

import hashlib
import json
import math
import random
import re
import warnings

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from sampling_lab import SamplingParams, generate, load
from sampling_lab.cli.main import main
from sampling_lab.errors import (
    CheckpointError,
    ParameterError,
    PromptError,
    SamplingLabError,
)
from sampling_lab.models.xslm import model as xslm
from sampling_lab.models.xslm import training as xslm_training
from sampling_lab.models.xslm.tokenizer import BPE, UnknownCharacterWarning
from tests.formats import threads
from tests.models.xslm_comparison import first_difference
from tests.models.xslm_reference import Reference

GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def path(request):
    return request.config.rootpath / "checkpoints" / "xslm" / "model.json"


@pytest.fixture(scope="module")
def model(path):
    return load(path)


@pytest.fixture(scope="module")
def reference(path):
    return Reference(path)


@pytest.fixture
def data(path):
    return json.loads(path.read_text(encoding="utf-8"))


def answer(model, question, params=GREEDY, **options):
    return generate(model, f"Q: {question}\nA: ", params, **options).text


# The shipped checkpoints


def test_the_card_says_what_the_file_says(model, path):
    card = model.card
    assert (card.vocab_size, card.context_length, card.dialect) == (40, 12, "xslm")
    assert (card.format, card.dtype, card.parameters) == ("xslm", "float64", 15_232)
    assert card.stop_token_ids == (model.tokenizer.encode("\n")[0],)
    assert card.default_max_new_tokens == 24
    assert card.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("question, expected", xslm.PAIRS)
def test_the_trained_model_answers_its_questions(model, question, expected):
    result = generate(model, f"Q: {question}\nA: ", GREEDY)
    assert (result.text, result.finish_reason) == (expected, "stop")


def test_the_barely_trained_model_answers_none(path):
    barely = load(path.with_name("model-20-steps.json"))
    assert all(answer(barely, q) != expected for q, expected in xslm.PAIRS)


def test_twelve_pairs_among_them_the_warm_sun():
    assert len(dict(xslm.PAIRS)) == 12
    assert "the sun is warm." in dict(xslm.PAIRS).values()


def test_the_readme_tells_the_truth(path):
    readme = path.with_name("README.md").read_text(encoding="utf-8")
    for name in ("model.json", "model-20-steps.json"):
        digest = hashlib.sha256(path.with_name(name).read_bytes()).hexdigest()
        assert digest in next(
            line for line in readme.splitlines() if f"`{name}`" in line
        )
    rows = re.findall(r"^\| ([a-z ?]+) \| ([a-z ]+\.) \|$", readme, re.MULTILINE)
    assert tuple(rows) == xslm.PAIRS


# The arithmetic against plain Python numbers


@pytest.mark.parametrize("length", [1, 2, 11, 12, 13, 40])
def test_logits_equal_plain_arithmetic(model, reference, length):
    dice = random.Random(length)
    ids = [dice.randrange(40) for _ in range(length)]
    expected = torch.tensor(reference.logits(ids), dtype=torch.float64)
    assert torch.allclose(model.logits(ids), expected, rtol=0, atol=1e-9)
    assert model.logits(ids).dtype == torch.float64


def test_two_hundred_random_generations_equal_plain_arithmetic(model, path):
    assert first_difference(model, path, 200) is None  # `make bench` tries 10,000


def test_only_the_last_twelve_tokens_count(model):
    ids = model.tokenizer.encode("Q: is the sun warm?\nA: the sun is")
    assert len(ids) > 12
    assert torch.equal(model.logits(ids), model.logits(ids[-12:]))
    assert not torch.equal(model.logits(ids), model.logits(ids[-11:]))


# Generation: what is returned, and when it ends


def test_only_new_text_without_the_newline(model):
    result = generate(model, "Q: hi\nA: ", GREEDY)
    assert result.text == "hello."
    assert result.stop_step.token_text == "⏎"
    assert model.tokenizer.decode(result.token_ids) == "hello."


def test_an_answer_can_be_empty(model):
    result = generate(model, "Q: hi\nA: hello.", GREEDY)
    assert (result.text, result.token_ids, result.finish_reason) == ("", (), "stop")


def test_a_prompt_longer_than_the_window_slides(model):
    result = generate(model, "Q: what can run?\nA: the dog can r", GREEDY)
    assert len(result.prompt_ids) > 12
    assert result.text == "un."


def test_the_budget_is_24_and_at_most_64(model):
    never = {"stop_token_ids": ()}
    assert len(generate(model, "hi", GREEDY, **never).token_ids) == 24
    assert (
        len(generate(model, "hi", GREEDY, max_new_tokens=64, **never).token_ids) == 64
    )
    with pytest.raises(ParameterError, match=r"max_new_tokens must be <= 64.*got 65"):
        generate(model, "hi", GREEDY, max_new_tokens=65)


def test_an_empty_prompt_is_refused(model):
    with pytest.raises(PromptError, match="prompt is empty"):
        generate(model, "", GREEDY)


# The tokenizer


def test_the_prompt_ending_is_one_token_and_without_its_space_two(model):
    pieces = lambda text: list(map(model.token_text, model.tokenizer.encode(text)))  # noqa: E731
    assert pieces("A: ") == ["A:␣"]
    assert pieces("A:") == ["A", ":"]
    assert pieces("Q: hi\nA: ") == ["Q:␣", "h", "i", "⏎", "A:␣"]


def test_an_unknown_character_becomes_the_unknown_token_and_warns(model):
    with pytest.warns(
        UnknownCharacterWarning, match="character 'H' at position 3 .* becomes �$"
    ):
        ids = model.tokenizer.encode("Q: Hi")
    assert model.tokenizer.decode(ids) == "Q: �i"
    with pytest.warns(UnknownCharacterWarning, match="position 0 .*, and so do 2 more"):
        model.tokenizer.encode("¿q¿")


def test_the_unknown_character_itself_is_known(model):
    assert model.tokenizer.encode("�") == [model.tokenizer.unknown_id]


def test_ids_outside_the_vocabulary_add_no_text(model):
    tokenizer = model.tokenizer
    assert tokenizer.decode([40, -1, *tokenizer.encode("hi")]) == "hi"
    assert (tokenizer.token_bytes(40), tokenizer.token_text(40)) == (b"", "⟨40⟩")


@given(st.text(alphabet="\n� .:?AQabcdeghiklmnorstuwy", max_size=60))
def test_encoding_is_the_leftmost_first_learned_merge_and_decodes_back(
    model, reference, text
):
    ids = model.tokenizer.encode(text)
    assert ids == reference.encode(text)
    assert model.tokenizer.decode(ids) == text


def test_merges_are_learned_by_frequency_then_by_place():
    bpe = BPE.learn("ab ab cd cd cd", 11)
    assert bpe.tokens[:7] == ["\n", "�", " ", "a", "b", "c", "d"]
    assert bpe.merges == [("c", "d"), ("a", "b"), ("ab", " "), ("cd", " ")]
    assert BPE.learn("ab", 40).vocab_size == 5
    with pytest.raises(ParameterError, match=r"at most 3 different characters.* got 4"):
        BPE.learn("abcd", 5)


def test_the_unknown_character_is_never_merged():
    assert BPE.learn("a�a� a�a� ab", 40).merges == [("a", "b")]


@pytest.mark.parametrize(
    "characters, merges, message",
    [
        (7, [], "characters must be a string, got int"),
        ("\nab", [], "characters must hold newline"),
        ("�ab", [], "characters must hold newline"),
        ("\n�aba", [], "no character twice"),
        ("\n�\ud800", [], "half of a surrogate"),
        ("\n�ab", [("a", "c")], "merge 0 must be a pair of earlier tokens"),
        ("\n�ab", [("a", "b"), ("a", "b")], "merge 1 must make a new token"),
        ("\n�ab", [("a", "\n")], "without newline"),
        ("\n�ab", ["ab"], "must be a pair of earlier tokens, got ab"),
        ("\n�ab", [("a", 1)], "must be a pair"),
        ("\n�ab", [("a", "b", "a")], "must be a pair"),
    ],
)
def test_arguments_that_make_no_vocabulary_are_refused(characters, merges, message):
    with pytest.raises(CheckpointError, match=message):
        BPE(characters, merges)


# The file


def put(*keys_and_value):
    """Return a change of the file's data: set what the keys lead to."""
    *keys, last, value = keys_and_value

    def change(data):
        for key in keys:
            data = data[key]
        data[last] = value

    return change


def drop(*keys):
    def change(data):
        for key in keys[:-1]:
            data = data[key]
        del data[keys[-1]]

    return change


DAMAGE = {
    "settings a list": (put("settings", []), "settings must be an object, got list"),
    "weights missing": (drop("weights", "mix"), "weights .*missing: mix"),
    "weights unknown": (put("weights", "bias", []), "weights .*unknown: bias"),
    "width huge": (
        put("settings", "width", 10**9),
        "weights.tokens must be 40 x 10000",
    ),
    "context huge": (
        put("settings", "context", 10**9),
        "weights.positions must be 1000",
    ),
    "width float": (put("settings", "width", 32.0), "width must be an integer >= 1"),
    "width bool": (put("settings", "width", True), "width must be an integer >= 1"),
    "width text": (put("settings", "width", "32"), "width must be .*got '32'"),
    "width zero": (put("settings", "width", 0), "width must be an integer >= 1, got 0"),
    "seed negative": (
        put("settings", "training_seed", -1),
        "seed must be an integer >= 0",
    ),
    "seed large": (
        put("settings", "training_seed", 2**64),
        "seed must be an integer in",
    ),
    "rate zero": (
        put("settings", "learning_rate", 0),
        "learning_rate must be a number",
    ),
    "tokens > max": (
        put("settings", "tokens", 65),
        r"tokens must be <= max_tokens \(64",
    ),
    "merges text": (put("tokenizer", "merges", "ab"), "merges must be a list"),
    "one token less": (
        lambda data: data["tokenizer"]["merges"].pop(),
        "weights.tokens must be 39 x 32 .*got 40 x 32",
    ),
    "no rows": (put("weights", "up", []), "weights.up must be 128 x 32 .*got 0 x 0"),
    "row short": (drop("weights", "up", 5, 0), "weights.up must be .*got 128 x 31"),
    "row empty": (put("weights", "up", 5, []), "weights.up must be .*got 128 x 0"),
    "row number": (put("weights", "up", 5, 1), "weights.up must be a list of rows"),
    "not a matrix": (put("weights", "up", "no"), "weights.up must be a list of rows"),
    "number null": (put("weights", "up", 5, 5, None), "finite numbers, got None"),
    "number text": (put("weights", "up", 5, 5, "1"), "finite numbers, got 1"),
    "number bool": (put("weights", "up", 5, 5, True), "finite numbers, got True"),
    "number list": (put("weights", "up", 5, 5, [1]), r"finite numbers, got \[1\]"),
    "number nan": (put("weights", "up", 5, 5, math.nan), "finite, got NaN"),
    "number inf": (put("weights", "up", 5, 5, -math.inf), "finite, got -Infinity"),
    "number huge": (put("weights", "up", 5, 5, 10**400), "finite numbers, got 1000"),
}


@pytest.mark.parametrize("change, message", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, data, change, message):
    change(data)
    file = tmp_path / "model.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message) as caught:
        xslm.load(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"settings": {', "is not valid JSON"),
        ('{"a": 1, "a": 2}', "key 'a' must not come twice"),
        ("[]", "the file must be an object, got list"),
        ("1" * 5000, "is not valid JSON"),
    ],
)
def test_text_that_is_no_checkpoint_is_refused(tmp_path, text, message):
    file = tmp_path / "model.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        xslm.load(file)


def test_half_a_file_a_number_beyond_floats_and_bytes_are_refused(tmp_path, path):
    file, text = tmp_path / "model.json", path.read_text(encoding="utf-8")
    for damaged in (
        text[: len(text) // 2],
        re.sub(r"-0\.\d+", "1e999", text, count=1),
    ):
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(
            CheckpointError, match=r"valid JSON|finite numbers, got inf"
        ):
            xslm.load(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckpointError, match="is not valid JSON"):
        xslm.load(file)


def test_what_is_not_a_file_and_what_is_too_large_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="it is not a file"):
        xslm.load(tmp_path)
    file = tmp_path / "model.json"
    with file.open("wb") as sparse:
        sparse.truncate((16 << 20) + 1)
    with pytest.raises(CheckpointError, match="has 16777217 bytes, more than 16777216"):
        xslm.load(file)


def test_saving_and_loading_gives_the_same_bytes_and_logits(tmp_path, model, path):
    copy = tmp_path / "copy.json"
    model.save(copy)
    assert copy.read_bytes() == path.read_bytes()
    assert torch.equal(load(copy).logits([1, 2]), model.logits([1, 2]))


def test_only_its_own_dtype_and_no_options(path):
    assert load(path, dtype="float64", device="cpu").card.device == "cpu"
    with pytest.raises(ParameterError, match="dtype must be 'auto' or 'float64'"):
        load(path, dtype="float32")
    with pytest.raises(ParameterError, match="XSLM takes no options, got tokenizer"):
        load(path, tokenizer="gpt2")
    with pytest.raises(ParameterError, match="device must be"):
        load(path, device="abacus")


# Training


def test_training_begins_at_the_logarithm_of_the_vocabulary_and_falls():
    losses = {}
    xslm.train(steps=21, on_step=losses.__setitem__)
    assert list(losses) == list(range(21))
    assert losses[0] == pytest.approx(math.log(40), abs=0.1)
    assert losses[20] < 2.5


def test_training_makes_the_shipped_weights_again(path):
    shipped = load(path.with_name("model-20-steps.json")).checkpoint
    again = xslm.train(steps=20, learning_rate=0.01).checkpoint
    assert again.settings == shipped.settings
    assert again.tokenizer.tokens == shipped.tokenizer.tokens
    for name, weight in shipped.weights.items():
        assert torch.allclose(again.weights[name], weight, rtol=0, atol=1e-6), name


def test_training_in_chunks_equals_training_in_one_go(tmp_path):
    whole, half, both = (tmp_path / name for name in ("whole", "half", "both"))
    xslm.train(steps=30, seed=5).save(whole)
    xslm.train(steps=10, seed=5).save(half)
    xslm.train(steps=20, checkpoint=half).save(both)
    assert both.read_bytes() == whole.read_bytes()
    xslm.train(steps=20, checkpoint=load(half, format="xslm")).save(both)
    assert both.read_bytes() == whole.read_bytes()


def test_the_command_trains_in_chunks(tmp_path, capsys, path):
    first, both = tmp_path / "model-2-steps.json", tmp_path / "model-5-steps.json"
    rate = ["train", "xslm", "--learning-rate", "0.1", "--steps"]
    assert main([*rate, "2", "--out", str(first)]) == 0
    assert main([*rate, "3", "--resume", str(first)]) == 0
    assert "5 steps, loss 3." in capsys.readouterr().out
    xslm.train(steps=5, learning_rate=0.1).save(tmp_path / "whole")
    assert both.read_bytes() == (tmp_path / "whole").read_bytes()
    assert main([*rate, "3", "--resume", str(first)]) == 2  # it is there already


OWN_TOKENIZERS = {
    "lists": lambda c, m, v: {"alphabet": list(c), "rules": m},
    "vocabulary and texts": lambda c, m, v: {
        "vocabulary": v,
        "merges": [" ".join(pair) for pair in m],
    },
    "objects": lambda c, m, v: {
        "token_to_id": {token: n for n, token in enumerate(v)},
        "ranks": {" ".join(pair): n for n, pair in enumerate(m)},
        "kind": "bpe",
    },
    "ids to tokens": lambda c, m, v: {
        "chars": c,
        "id_to_token": {str(n): token for n, token in enumerate(v)},
        "pairs": m,
    },
}


@pytest.mark.filterwarnings("ignore:.*not used")
@pytest.mark.parametrize("own", OWN_TOKENIZERS.values(), ids=OWN_TOKENIZERS)
def test_a_learners_tokenizer_loads_by_any_names(tmp_path, data, model, own):
    given = data["tokenizer"]
    tokens = model.tokenizer.tokens
    data["tokenizer"] = own(given["characters"], given["merges"], tokens)
    file = tmp_path / "model.json"
    file.write_text(json.dumps(data), encoding="utf-8-sig")
    assert load(file).tokenizer.tokens == tokens
    assert answer(load(file), "is the sun warm?") == "the sun is warm."


def test_other_settings_are_reported_and_what_is_missing_is_in_the_weights(
    tmp_path, data
):
    data["settings"] = {"temperature": 0.5, "top_k": 3, "seed": -5, "author": "me"}
    file = tmp_path / "model.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.warns(UserWarning, match="not used: author; missing .*width, context"):
        card = load(file).card
    own = {"temperature": 0.5, "top_k": 3, "seed": -5, "max_new_tokens": 24}
    assert (card.defaults, card.context_length) == (own, 12)
    assert "author" in card.details["notes"]


@pytest.mark.parametrize("seed", [-5, 2**64, 10**30])
def test_any_integer_is_a_seed(model, seed):
    params = SamplingParams(temperature=3, seed=seed)
    text = answer(model, "hi", params)
    assert text == answer(model, "hi", params)
    with pytest.raises(ParameterError, match="seed must be an integer in"):
        answer(model, "hi", params.replace(dialect="transformers"))


def test_other_pairs_make_another_vocabulary_and_are_learned():
    pairs = [("one", "two"), ("two", "three")]
    model = xslm.train(pairs, steps=80)
    assert model.card.vocab_size < 40
    assert [answer(model, question) for question, _ in pairs] == ["two", "three"]


@pytest.fixture
def three_threads():
    """Set an unusual number of threads, so that a lost one is seen."""
    with threads(3):
        yield


def test_training_leaves_global_state_alone(three_threads):
    random.seed(1)
    torch.manual_seed(1)
    states = random.getstate(), torch.get_rng_state()
    xslm.train([("hi", "hello.")], steps=2)
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert torch.get_num_threads() == 3


def test_training_works_where_gradients_are_off(path):
    with torch.inference_mode():
        assert xslm.train(steps=1, checkpoint=path).checkpoint.settings.steps == 1001


def test_continuing_does_not_change_the_model_it_started_from(model):
    before = {name: w.clone() for name, w in model.checkpoint.weights.items()}
    xslm.train(steps=1, checkpoint=model)
    assert all(torch.equal(before[n], w) for n, w in model.checkpoint.weights.items())
    assert model.checkpoint.settings.steps == 1000


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"steps": 0}, "steps must be an integer >= 1, got 0"),
        ({"steps": True}, "steps must be an integer"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"seed": 2**64}, "seed must be an integer in"),
        ({"learning_rate": 0}, "learning_rate must be a number > 0, got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a number > 0, got nan"),
        ({"pairs": []}, "pairs must hold at least one"),
        ({"pairs": ["hi"]}, "pairs must be .*got 'hi'"),
        ({"pairs": [("a\n", "b")]}, "strings of one line"),
        ({"pairs": [("a", 1)]}, "strings of one line"),
        ({"checkpoint": 7}, "checkpoint must be an XSLM model or a file, got 7"),
    ],
)
def test_training_refuses_arguments_outside_their_rule(arguments, message):
    with pytest.raises(ParameterError, match=message):
        xslm.train(**{"steps": 1, **arguments})


def test_a_continued_seed_is_refused_and_a_lost_loss_is_told(model, three_threads):
    with pytest.raises(ParameterError, match="seed must be None when a checkpoint"):
        xslm.train(steps=1, seed=1, checkpoint=model)
    with pytest.raises(SamplingLabError, match="the loss must stay finite, got nan"):
        xslm.train(steps=9, learning_rate=1e200)
    assert torch.get_num_threads() == 3


def test_windows_begin_everywhere_and_end_with_what_follows():
    tokenizer = BPE("\n�QA: hi", [])
    inputs, targets = xslm_training.windows([("hi", "h")], tokenizer, 4)
    text = tokenizer.encode("Q: hi\nA: h\n")
    assert inputs.shape == targets.shape == (len(text) - 1, 4)
    assert inputs[0].tolist() == text[:4]
    assert targets[0].tolist() == text[1:5]
    assert targets[-1].tolist() == [text[-1], -100, -100, -100]


def test_no_warning_in_ordinary_use(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(model, "is the sun warm?") == "the sun is warm."

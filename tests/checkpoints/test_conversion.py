"""Conversions lose nothing, and what we write opens in transformers and in T5X."""

import dataclasses
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
import seqio
from etils import epath
from golden import make_checkpoints

from spec_cascades import checkpoints, decoding
from spec_cascades.checkpoints import arrays, formats, huggingface_vocabulary, t5x_files
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.text import vocabularies

GOLDEN = pathlib.Path(make_checkpoints.__file__).parent
SMALL = T5Config(
    vocab_size=384,
    emb_dim=16,
    num_heads=2,
    head_dim=6,
    mlp_dim=24,
    num_encoder_layers=3,  # transformers has no cache for a decoder that is deeper
    num_decoder_layers=2,
)
STYLES = {
    "t5_1_1": {},
    "t5_1_0": dict(mlp_activations=("relu",), logits_via_embedding=True),
    "umt5": dict(shared_relative_bias=False),
}
TEXTS = ["the old captain gives a green apple", "seven  children sleep", "5 + 7"]


def installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # Of a submodule, when there is not even the package.
        return False


def needs(*packages):
    missing = [name for name in packages if not installed(name)]
    reason = f"needs {' and '.join(missing)}, to be read by the real one"
    return pytest.mark.skipif(bool(missing), reason=reason)


def random_params(model, seed=0):
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32) * 0.3, shapes)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "v.model"
    lines = [f"{text} and {i} more of it" for text in TEXTS for i in range(40)]
    vocabularies.train_sentencepiece(lines, path, 40)
    return vocabularies.load(path, extra_ids=100)


@pytest.fixture(scope="module", params=STYLES)
def folder(request, tmp_path_factory, vocabulary):
    """A model folder of ours."""
    path = tmp_path_factory.mktemp(request.param) / "model"
    model = T5(dataclasses.replace(SMALL, **STYLES[request.param]))
    checkpoints.save(path, model, random_params(model), vocabulary)
    return path


def assert_equal(a, b):
    assert a.model == b.model
    assert {x.dtype for x in jax.tree.leaves(a.params)} == {
        x.dtype for x in jax.tree.leaves(b.params)
    }
    jax.tree.map(np.testing.assert_array_equal, a.params, b.params)
    assert vocabularies.pieces(a.vocabulary) == vocabularies.pieces(b.vocabulary)


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_ours_to_hugging_face_and_back_is_exact(folder, tmp_path, dtype):
    checkpoints.convert(folder, tmp_path / "hf", to="huggingface", dtype=dtype)
    checkpoints.convert(tmp_path / "hf", tmp_path / "back", to="model")
    assert_equal(checkpoints.load(tmp_path / "back"), checkpoints.load(folder, dtype=dtype))


@pytest.mark.parametrize("to", ["orbax", "t5x"])
def test_other_formats_and_back_are_exact(folder, tmp_path, vocabulary, to):
    own_biases = not checkpoints.open_checkpoint(folder).model.config.shared_relative_bias
    if to == "t5x" and own_biases:
        with pytest.raises(ValueError, match="relative biases in every layer"):
            checkpoints.convert(folder, tmp_path / "x", to=to)
        return
    written = checkpoints.convert(folder, tmp_path / "checkpoint_3", to=to)
    again = checkpoints.load(written, vocabulary=vocabulary)
    assert_equal(again, checkpoints.load(folder))


def test_a_large_model_is_written_in_shards(folder, tmp_path, monkeypatch):
    from spec_cascades.checkpoints import huggingface

    monkeypatch.setattr(huggingface, "_SHARD_BYTES", 20_000)
    checkpoints.convert(folder, tmp_path / "hf", to="huggingface")
    assert len(list((tmp_path / "hf").glob("model-*-of-*.safetensors"))) > 2
    assert_equal(checkpoints.load(tmp_path / "hf"), checkpoints.load(folder))


def test_bytes_go_to_hugging_face_and_back(tmp_path):
    model = T5(SMALL)
    vocabulary = vocabularies.load("byte", extra_ids=125)
    checkpoints.save(tmp_path / "m", model, random_params(model), vocabulary)
    checkpoints.convert(tmp_path / "m", tmp_path / "hf", to="huggingface")
    assert_equal(checkpoints.load(tmp_path / "hf"), checkpoints.load(tmp_path / "m"))


def test_nothing_is_overwritten_and_settings_are_checked_first(folder, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("x")
    with pytest.raises(FileExistsError, match="there exists; give a new folder"):
        checkpoints.convert(folder, tmp_path / "there", to="model")
    with pytest.raises(ValueError, match="to='hf': one of model, huggingface, orbax, t5x"):
        checkpoints.convert(folder, tmp_path / "x", to="hf")
    with pytest.raises(ValueError, match="a drafter goes with to='t5x' alone"):
        checkpoints.convert(folder, tmp_path / "x", to="model", drafter=folder)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("to", ["model", "huggingface", "orbax", "t5x"])
def test_an_empty_folder_is_written_into(folder, tmp_path, to):
    if to == "t5x" and not checkpoints.open_checkpoint(folder).model.config.shared_relative_bias:
        pytest.skip("T5X's t5 network shares relative biases")
    (tmp_path / "x").mkdir()
    assert checkpoints.convert(folder, tmp_path / "x", to=to) == tmp_path / "x"
    assert checkpoints.resolve(tmp_path / "x") == tmp_path / "x"


@pytest.mark.parametrize("to", ["model", "huggingface"])
def test_a_bucket_is_refused_before_anything_is_read(to):
    with pytest.raises(ValueError, match=f"gs://bucket/x: to='{to}' writes on local disks alone"):
        checkpoints.convert("nothing", "gs://bucket/x", to=to)


@pytest.mark.parametrize("kind", [formats.MODEL, formats.HUGGINGFACE])
def test_folders_in_a_bucket_are_refused_and_others_keep_their_name(monkeypatch, kind):
    monkeypatch.setattr(formats, "_search", lambda path: (kind, path))
    with pytest.raises(ValueError, match=f"gs://bucket/x: a {kind} is read on local disks alone"):
        checkpoints.open_checkpoint("gs://bucket/x")
    monkeypatch.setattr(formats, "_search", lambda path: (formats.T5X, path))
    assert str(checkpoints.resolve("gs://bucket/x")) == "gs://bucket/x"


def test_a_bucket_stays_in_the_path_of_what_is_loaded(folder, vocabulary, monkeypatch):
    found = checkpoints.open_checkpoint(folder)
    there = dataclasses.replace(found, path=epath.Path("gs://bucket/checkpoint_1"))
    monkeypatch.setattr(formats, "open_checkpoint", lambda *_, **__: there)
    assert str(checkpoints.load("gs://bucket").path) == "gs://bucket/checkpoint_1"


def test_a_vocabulary_is_rebuilt_from_tokenizer_json(vocabulary, tmp_path):
    """As `tokenizers` stores a unigram model: pieces with scores, sentinels last."""
    import base64

    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabularies.model_bytes(vocabulary))
    sentinels = [[f"<extra_id_{i}>", 0.0] for i in reversed(range(100))]
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    special = ["<pad>", "</s>", "<unk>", *(name for name, _ in sentinels)]
    content = {
        "added_tokens": [{"id": i, "content": x, "special": True} for i, x in enumerate(special)],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "model": {
            "type": "Unigram",
            "unk_id": 2,
            "vocab": [[x.piece, x.score] for x in proto.pieces] + sentinels,
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    rebuilt = huggingface_vocabulary.read(tmp_path)
    assert vocabularies.pieces(rebuilt) == vocabularies.pieces(vocabulary)
    for text in [*TEXTS, "ﬁne  ① captains, Ünicode", ""]:
        assert rebuilt.encode(text) == vocabulary.encode(text)
        assert rebuilt.decode(rebuilt.encode(text)) == vocabulary.decode(vocabulary.encode(text))
    content["model"] = {"type": "BPE", "vocab": {"a": 0}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="tokenizer.json has a tokenizer of the kind BPE"):
        huggingface_vocabulary.read(tmp_path)


def change(name, edit):
    """A change of one of a folder's JSON files."""

    def apply(folder):
        content = json.loads((folder / name).read_text())
        edit(content)
        (folder / name).write_text(json.dumps(content))

    return apply


def normalizer(*steps):
    sequence = {"type": "Sequence", "normalizers": list(steps)}
    return change("tokenizer.json", lambda x: x.update(normalizer=sequence))


def added(token, number):
    token = {"content": token, "id": number}
    return change("tokenizer.json", lambda x: x["added_tokens"].append(token))


def added_file(token, number):
    return lambda folder: (folder / "added_tokens.json").write_text(json.dumps({token: number}))


def added_decoder(token, number):
    decoder = {str(number): {"content": token}}
    return change("tokenizer_config.json", lambda x: x.update(added_tokens_decoder=decoder))


@pytest.fixture(scope="module")
def tokenizer(vocabulary, tmp_path_factory):
    """A folder's tokenizer, as we write it: 40 pieces, 100 sentinels."""
    path = tmp_path_factory.mktemp("tokenizer")
    huggingface_vocabulary.write(vocabulary, path)
    return path


@pytest.mark.parametrize("keep", [True, False], ids=["spiece.model", "tokenizer.json"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (added("<sep>", 140), "tokenizer.json adds the token '<sep>' .id 140. to the 40 pieces"),
        (added("<sep>", 40), "adds the token '<sep>' .id 40."),
        (added_file("<sep>", 140), "added_tokens.json adds the token '<sep>'"),
        (added_decoder("<sep>", 140), "tokenizer_config.json adds the token '<sep>'"),
        (normalizer({"type": "Lowercase"}), "the normalizer Lowercase, which SentencePiece lacks"),
        (
            normalizer({"type": "Replace", "pattern": {"String": "a"}, "content": " "}),
            "the normalizer Replace",
        ),
        (added(None, 140), "the tokenizer in .* is damaged"),
    ],
)
def test_what_sentencepiece_lacks_is_refused(tokenizer, tmp_path, keep, damage, message):
    shutil.copytree(tokenizer, tmp_path / "m")
    damage(tmp_path / "m")
    if not keep:
        (tmp_path / "m" / "spiece.model").unlink()
    with pytest.raises(ValueError, match=message):
        huggingface_vocabulary.read(tmp_path / "m")


@pytest.mark.parametrize(
    "harmless",
    [
        added("<unk>", 2),
        added_file("<extra_id_99>", 40),
        normalizer(
            {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
        ),
        change("tokenizer_config.json", lambda x: x.update(extra_ids=100)),
    ],
)
def test_what_sentencepiece_does_is_no_reason(tokenizer, vocabulary, tmp_path, harmless):
    shutil.copytree(tokenizer, tmp_path / "m")
    harmless(tmp_path / "m")
    found = huggingface_vocabulary.read(tmp_path / "m")
    assert vocabularies.pieces(found) == vocabularies.pieces(vocabulary)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change("tokenizer.json", lambda x: x["model"].pop("unk_id")), "unk_id is None; the id of"),
        (change("tokenizer.json", lambda x: x["model"]["vocab"].append(3)), "is damaged: "),
        (change("tokenizer.json", lambda x: x.update(model=3)), "is damaged: "),
    ],
)
def test_a_damaged_tokenizer_is_named(tokenizer, tmp_path, damage, message):
    shutil.copytree(tokenizer, tmp_path / "m")
    (tmp_path / "m" / "spiece.model").unlink()
    damage(tmp_path / "m")
    with pytest.raises(ValueError, match=message):
        huggingface_vocabulary.read(tmp_path / "m")


@pytest.mark.parametrize("extra_ids", [None, "many", -1])
def test_the_number_of_sentinels_is_checked(tokenizer, tmp_path, extra_ids):
    shutil.copytree(tokenizer, tmp_path / "m")
    change("tokenizer_config.json", lambda x: x.update(extra_ids=extra_ids))(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"vocab_size": 384}')
    if extra_ids is None:  # As if it were not there.
        assert huggingface_vocabulary.read(tmp_path / "m").vocab_size == 140
    else:
        with pytest.raises(ValueError, match=f"extra_ids of the tokenizer is {extra_ids!r}"):
            huggingface_vocabulary.read(tmp_path / "m")


def test_one_t5x_file_holds_target_and_drafter(folder, tmp_path):
    if not checkpoints.open_checkpoint(folder).model.config.shared_relative_bias:
        pytest.skip("T5X's t5 network shares relative biases")
    written = checkpoints.convert(folder, tmp_path / "pair", to="t5x", drafter=folder)
    found = t5x_files.read(written)
    one = arrays.flatten(checkpoints.load(folder).params)
    assert found.keys() == {f"{part}/{name}" for part in ("target", "draft") for name in one}
    with pytest.raises(ValueError, match=r"pair holds several models \(draft, target\)"):
        checkpoints.open_checkpoint(written)


# --- read by the real ones ---


@needs("torch", "transformers")
def test_transformers_generates_the_same_text(folder, tmp_path):
    loaded = checkpoints.load(folder)
    checkpoints.convert(folder, tmp_path / "hf", to="huggingface")
    theirs = transformers_answers(tmp_path / "hf")
    for text, answer in zip(TEXTS, theirs, strict=True):
        assert answer["inputs"] == [*loaded.vocabulary.encode(text), 1]
        ours = greedy(loaded, answer["inputs"])
        assert answer["output"][1 : 1 + len(ours)] == ours
        assert len(ours) == 12 or ours[-1] == 1
        shown = [i for i in ours if 2 < i < loaded.vocabulary.vocab_size - 100]  # nothing special
        assert answer["text"].strip() == loaded.vocabulary.decode(shown).strip()


@needs("torch", "transformers")
def test_transformers_answers_as_the_demo_does(tmp_path):
    """A trained model, with a BPE vocabulary."""
    checkpoints.convert("demo/drafter", tmp_path / "hf", to="huggingface", dtype="float32")
    loaded = checkpoints.load("demo/drafter", dtype="float32")
    texts = ["German: The old captain gives the child a green apple.", "German:  ﬁve ① Ünx ☃ 12345"]
    for text, answer in zip(texts, transformers_answers(tmp_path / "hf", texts), strict=True):
        assert answer["inputs"] == [*loaded.vocabulary.encode(text), 1]
        ours = greedy(loaded, answer["inputs"])
        assert answer["output"][1 : 1 + len(ours)] == ours
        shown = [i for i in ours if i > 2]
        assert answer["text"].strip() == loaded.vocabulary.decode(shown).strip()


@needs("torch", "transformers")
def test_transformers_speaks_our_bytes(tmp_path):
    model, vocabulary = T5(SMALL), vocabularies.load("byte", extra_ids=125)
    checkpoints.save(tmp_path / "m", model, random_params(model), vocabulary)
    checkpoints.convert(tmp_path / "m", tmp_path / "hf", to="huggingface")
    loaded = checkpoints.load(tmp_path / "hf")
    for text, answer in zip(TEXTS, transformers_answers(tmp_path / "hf"), strict=True):
        assert answer["inputs"] == [*vocabulary.encode(text), 1]
        ours = greedy(loaded, answer["inputs"])
        assert answer["output"][1 : 1 + len(ours)] == ours


def transformers_answers(folder, texts=TEXTS):
    command = [sys.executable, GOLDEN / "transformers_generate.py", folder, "12", *texts]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def greedy(loaded, inputs):
    config = decoding.DecodeConfig(max_decode_length=12, vocab_size=loaded.model.vocab_size)
    decoder = decoding.AutoregressiveDecoder(loaded.model, config)
    result = jax.jit(decoding.decode, static_argnums=0)(
        decoder,
        decoding.PairParams(loaded.params),
        decoding.Prompt.of([inputs]),
        decoding.row_keys(0, [0]),
    )
    return result.tokens[0, : result.lengths[0]].tolist()


@needs("t5x.checkpoints")
def test_t5x_reads_what_we_write(tmp_path, vocabulary):
    model = T5(SMALL)
    checkpoints.save(tmp_path / "m", model, random_params(model), vocabulary)
    for drafter, prefixes in ((None, [""]), (tmp_path / "m", ["target/", "draft/"])):
        name = f"checkpoint_{len(prefixes)}"
        checkpoints.convert(tmp_path / "m", tmp_path / name, to="t5x", drafter=drafter)
        command = [sys.executable, GOLDEN / "t5x_load.py", tmp_path / name, tmp_path / "x.npz"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = np.load(tmp_path / "x.npz")
        expected = arrays.flatten(checkpoints.load(tmp_path / "m").params)
        assert set(found) == {prefix + name for prefix in prefixes for name in expected}
        for prefix in prefixes:
            for name, array in expected.items():
                np.testing.assert_array_equal(found[prefix + name], array)


@needs("t5x.checkpoints")
def test_the_checkpoint_that_t5x_ships(tmp_path):
    spec = importlib.util.find_spec("t5x")
    file = pathlib.Path(spec.submodule_search_locations[0]) / "testdata/test_t5_tiny.checkpoint_0"
    if not file.exists():
        pytest.skip("this installation of t5x has no testdata")
    loaded = checkpoints.load(file, vocabulary=seqio.PassThroughVocabulary(32128, eos_id=1))
    assert (loaded.model.config.emb_dim, loaded.model.config.head_dim) == (8, 3)
    assert loaded.model.vocab_size == 32128

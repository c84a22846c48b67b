import pytest
import sentencepiece
import seqio
from sentencepiece import sentencepiece_model_pb2

from spec_cascades.tasks import translation
from spec_cascades.text import vocabularies

TEXT = [text for pair in translation.examples("train", 0, 400) for text in pair]
TEXT += [f"{n} apples" for n in range(100)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "small.model"
    return vocabularies.train_sentencepiece(TEXT, path, 200)


def test_special_ids_follow_t5(trained):
    assert (trained.pad_id, trained.eos_id, trained.unk_id) == (0, 1, 2)
    assert trained.tokenizer.bos_id() == -1
    assert trained.vocab_size == 200
    text = "The old dog is eating 37 apples."
    assert trained.decode(trained.encode(text)) == text


def test_digits_are_single_pieces(trained):
    pieces = [trained.tokenizer.IdToPiece(i) for i in trained.encode("37 apples")]
    assert "3" in pieces and "7" in pieces


def test_training_is_deterministic(trained, tmp_path):
    again = vocabularies.train_sentencepiece(TEXT, tmp_path / "again.model", 200)
    assert vocabularies.model_bytes(again) == vocabularies.model_bytes(trained)


def test_byte_fallback_spells_unknown_characters(tmp_path):
    v = vocabularies.train_sentencepiece(TEXT, tmp_path / "b.model", 450, byte_fallback=True)
    assert v.decode(v.encode("naïve")) == "naïve"


@pytest.mark.parametrize("lines, size", [([], 50), (["abc"], 5000)])
def test_too_little_text_is_refused(lines, size, tmp_path):
    with pytest.raises(ValueError, match=f"cannot train a vocabulary of {size} pieces"):
        vocabularies.train_sentencepiece(lines, tmp_path / "x.model", size)


def test_description_round_trip(trained, tmp_path):
    (tmp_path / "vocabulary.model").write_bytes(vocabularies.model_bytes(trained))
    description = vocabularies.describe(trained)
    assert description["kind"] == "sentencepiece" and description["extra_ids"] == 0
    again = vocabularies.from_description(description, tmp_path)
    assert vocabularies.difference(trained, again) is None
    assert vocabularies.difference(vocabularies.load(tmp_path), trained) is None

    changed = {**description, "sha256": "0" * 64}
    with pytest.raises(ValueError, match="is not the model's vocabulary"):
        vocabularies.from_description(changed, tmp_path)
    with pytest.raises(ValueError, match="unknown kind of vocabulary 'wordpiece'"):
        vocabularies.from_description({"kind": "wordpiece"}, tmp_path)


def test_byte_vocabulary():
    v = vocabularies.load("byte", extra_ids=10)
    assert isinstance(v, seqio.ByteVocabulary)
    description = vocabularies.describe(v)
    assert description == {"kind": "byte", "extra_ids": 10}
    assert vocabularies.difference(vocabularies.from_description(description, "."), v) is None


def test_comparison_looks_at_pieces_not_sizes(trained, tmp_path):
    other = vocabularies.train_sentencepiece(
        [line.replace("n", "m") for line in TEXT], tmp_path / "other.model", 200
    )
    assert other.vocab_size == trained.vocab_size
    assert vocabularies.difference(trained, other) is not None
    assert "in one and" in vocabularies.difference(trained, other)
    assert "ByteVocabulary" in vocabularies.difference(trained, vocabularies.load("byte"))


def test_more_sentinels_are_no_difference(trained):
    path = trained.sentencepiece_model_file
    few, many = (seqio.SentencePieceVocabulary(path, extra_ids=n) for n in (0, 100))
    assert vocabularies.difference(few, many) is None
    # T5 numbers sentinels from the end, so two different counts disagree on every one of them.
    some = seqio.SentencePieceVocabulary(path, extra_ids=50)
    assert vocabularies.difference(some, many) is not None


@pytest.mark.parametrize("rows, count", [(0, 0), (200, 0), (299, 0), (300, 100), (428, 100)])
def test_the_table_tells_the_usual_sentinels(trained, rows, count):
    found = vocabularies.load_for_table(trained.sentencepiece_model_file, rows)
    assert (found.vocab_size, found.extra_ids) == (200 + count, count)


def test_t5s_file_of_32000_pieces_makes_32100_in_its_table(trained, tmp_path):
    content = vocabularies.model_bytes(trained)
    proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    for i in range(32000 - len(proto.pieces)):
        proto.pieces.add(piece=f"piece{i}", score=-100.0)
    (tmp_path / "cc_all.model").write_bytes(proto.SerializeToString())
    found = vocabularies.load_for_table(tmp_path / "cc_all.model", 32128)
    assert found.vocab_size == 32100
    assert all(map(vocabularies.is_sentinel, vocabularies.pieces(found)[32000:]))


def test_usual_sentinels_of_bytes_and_of_pieces_that_have_them(trained, tmp_path):
    assert vocabularies.load_for_table("byte", 384).vocab_size == 384
    assert vocabularies.load_for_table("byte", 320).vocab_size == 259
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=str(tmp_path / "mt5"),
        vocab_size=200,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        user_defined_symbols=["▁<extra_id_0>"],
        minloglevel=2,
    )
    assert vocabularies.load_for_table(tmp_path / "mt5.model", 400).vocab_size == 200


def test_missing_and_malformed_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no vocabulary 'dmeo': did you mean 'demo'"):
        vocabularies.load("dmeo")
    bad = tmp_path / "bad.model"
    bad.write_bytes(b"not a model")
    with pytest.raises(ValueError, match="bad.model is not a SentencePiece model"):
        vocabularies.load(bad)

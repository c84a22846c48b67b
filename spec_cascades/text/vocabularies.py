"""Vocabularies: train, load, describe and compare them.

A vocabulary is a `seqio.Vocabulary`: SentencePiece (`seqio.SentencePieceVocabulary`) or UTF-8 bytes
(`seqio.ByteVocabulary`, ByT5's). Ids follow T5: 0 is padding, 1 EOS, 2 unknown, and there is no BOS
piece. A model folder names its vocabulary by the small dictionary that `describe` makes and
`from_description` reads back.
"""

import difflib
import hashlib
import io
import os
import re
from collections.abc import Iterable
from typing import Any

import seqio

from spec_cascades import checks
from spec_cascades.checkpoints.arrays import first_line

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2

USUAL_SENTINELS = 100
USUAL_BYTE_SENTINELS = 125

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
_NAMED = {"demo": os.path.join(_DATA, "demo.model")}
_MODEL_FILE = "vocabulary.model"
_SENTINEL = re.compile(r"▁?<extra_id_\d+>")


def train_sentencepiece(
    lines: Iterable[str],
    path: str | os.PathLike,
    size: int,
    *,
    model_type: str = "unigram",
    byte_fallback: bool = False,
) -> seqio.SentencePieceVocabulary:
    """Trains a SentencePiece model and writes it to `path`.

    Digits are pieces of their own, which makes arithmetic learnable and keeps numbers out of the
    vocabulary.

    Args:
      lines: training text; a line break inside a line ends a sentence.
      path: the file to write, by custom `*.model`.
      size: number of pieces, the three special ones (and 256 bytes, with `byte_fallback`) included.
      model_type: 'unigram' (as T5) or 'bpe', which keeps more words whole in a small vocabulary.
      byte_fallback: spell characters that the vocabulary lacks as UTF-8 bytes rather than as
        unknown. Costs 256 pieces.

    Returns:
      The vocabulary, loaded from `path`.

    Raises:
      ValueError: there is no text, or too little of it for `size` pieces.
    """
    import sentencepiece

    if model_type not in ("unigram", "bpe"):
        raise ValueError(f"model_type '{model_type}': 'unigram' or 'bpe' is expected")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=model_type,
            vocab_size=size,
            pad_id=PAD_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            bos_id=-1,
            split_digits=True,
            byte_fallback=byte_fallback,
            character_coverage=1.0,
            normalization_rule_name="nmt_nfkc",
            num_threads=1,  # several threads give slightly different scores from run to run
            minloglevel=2,
        )
    except (RuntimeError, StopIteration) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else "there is no text"
        raise ValueError(f"cannot train a vocabulary of {size} pieces: {reason}") from error
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "wb") as file:
        file.write(model.getvalue())
    return seqio.SentencePieceVocabulary(os.fspath(path))


def load(name: str | os.PathLike, extra_ids: int = 0) -> seqio.Vocabulary:
    """Loads a vocabulary.

    Args:
      name: 'byte', 'demo' (the shipped one), a SentencePiece file, or a model folder's path.
      extra_ids: number of sentinels after the pieces (T5: 100).

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: the file is not a SentencePiece model.
    """
    name = os.fspath(name)
    if name == "byte":
        return seqio.ByteVocabulary(extra_ids=extra_ids)
    path = _NAMED.get(name, name)
    if os.path.isdir(path):
        path = os.path.join(path, _MODEL_FILE)
    if not os.path.exists(path):
        known = [*_NAMED, "byte"]
        near = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean '{near[0]}'?" if near else f"give a SentencePiece file or one of {known}"
        )
        raise FileNotFoundError(f"no vocabulary '{name}': {hint}")
    vocabulary = seqio.SentencePieceVocabulary(path, extra_ids=extra_ids)
    try:
        vocabulary.load_model()
    except Exception as error:  # protobuf and SentencePiece each raise their own types
        raise ValueError(f"{path} is not a SentencePiece model: {first_line(error)}") from error
    return vocabulary


def load_for_table(name: str | os.PathLike, rows: int) -> seqio.Vocabulary:
    """Loads a vocabulary for a model that does not say how many sentinels its own has.

    Args:
      name: see `load`.
      rows: of the model's embedding; see `usual_sentinels`.
    """
    return load(name, usual_sentinels(load(name), rows))


def usual_sentinels(vocabulary: seqio.Vocabulary, rows: int) -> int:
    """How many sentinels follow the pieces of a vocabulary, by T5's and ByT5's custom.

    T5 has `USUAL_SENTINELS` behind its 32000 pieces, in a table of 32128 rows; ByT5 has
    `USUAL_BYTE_SENTINELS` behind its bytes.
    There are none where the table has no room for them, or where they are pieces already (mT5).

    Args:
      vocabulary: one without sentinels of its own.
      rows: of the model's embedding.
    """
    if any(is_sentinel(piece) for piece in pieces(vocabulary)):
        return 0
    is_bytes = isinstance(vocabulary, seqio.ByteVocabulary)
    usual = USUAL_BYTE_SENTINELS if is_bytes else USUAL_SENTINELS
    return usual if rows - vocabulary.vocab_size >= usual else 0


def is_sentinel(piece: str) -> bool:
    """Whether a piece is one of T5's placeholders (`<extra_id_7>`)."""
    return _SENTINEL.fullmatch(piece) is not None


def describe(vocabulary: seqio.Vocabulary, file: str = _MODEL_FILE) -> dict[str, Any]:
    """Describes a vocabulary for a model folder's `model.json`.

    Args:
      vocabulary: a SentencePiece or byte vocabulary.
      file: name that the SentencePiece file has within the model folder.

    Returns:
      `{'kind': 'sentencepiece', 'file', 'extra_ids', 'sha256'}` or `{'kind': 'byte', 'extra_ids'}`.
    """
    if isinstance(vocabulary, seqio.ByteVocabulary):
        return {"kind": "byte", "extra_ids": vocabulary.extra_ids}
    if isinstance(vocabulary, seqio.SentencePieceVocabulary):
        return {
            "kind": "sentencepiece",
            "file": file,
            "extra_ids": vocabulary.extra_ids,
            "sha256": hashlib.sha256(model_bytes(vocabulary)).hexdigest(),
        }
    raise ValueError(
        f"cannot describe a {type(vocabulary).__name__}: SentencePiece or byte is expected"
    )


def model_bytes(vocabulary: seqio.SentencePieceVocabulary) -> bytes:
    """Returns the bytes of the SentencePiece file, to be copied into a model folder."""
    with open(vocabulary.sentencepiece_model_file, "rb") as file:
        return file.read()


def from_description(description: dict[str, Any], folder: str | os.PathLike) -> seqio.Vocabulary:
    """Loads the vocabulary that `describe` described, from a model folder.

    Raises:
      FileNotFoundError: the folder lacks the file.
      ValueError: unknown kind, no number of sentinels, or a file whose checksum differs.
    """
    kind = description.get("kind")
    extra_ids = description.get("extra_ids", 0)
    if not checks.is_whole(extra_ids, 0):
        raise ValueError(f"extra_ids of the vocabulary is {extra_ids!r}; a number is expected")
    if kind == "byte":
        return load("byte", extra_ids)
    if kind != "sentencepiece":
        raise ValueError(
            f"unknown kind of vocabulary {kind!r}: 'sentencepiece' or 'byte' is expected"
        )
    path = os.path.join(os.fspath(folder), str(description.get("file", _MODEL_FILE)))
    vocabulary = load(path, extra_ids)
    expected = description.get("sha256")
    found = hashlib.sha256(model_bytes(vocabulary)).hexdigest()
    if expected not in (None, found):
        raise ValueError(
            f"{path} is not the model's vocabulary: its sha256 is {found}, expected {expected}"
        )
    return vocabulary


def pieces(vocabulary: seqio.Vocabulary) -> list[str]:
    """Lists a vocabulary's pieces by id, sentinels included."""
    if isinstance(vocabulary, seqio.SentencePieceVocabulary):
        tokenizer = vocabulary.tokenizer
        return [tokenizer.IdToPiece(i) for i in range(tokenizer.GetPieceSize())]
    if isinstance(vocabulary, seqio.ByteVocabulary):
        sentinels = [f"<extra_id_{i}>" for i in range(vocabulary.extra_ids)]
        return ["<pad>", "</s>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)] + sentinels
    raise ValueError(f"cannot list the pieces of a {type(vocabulary).__name__}")


def difference(a: seqio.Vocabulary, b: seqio.Vocabulary) -> str | None:
    """Says in one line where two vocabularies differ, or None where their ids mean the same.

    One may have more sentinels (`<extra_id_…>`) than the other; every id that both have must be the
    same piece.
    """
    kinds = [type(v).__name__ for v in (a, b)]
    if kinds[0] != kinds[1]:
        return f"one is a {kinds[0]}, the other a {kinds[1]}"
    first, second = pieces(a), pieces(b)
    for i, (x, y) in enumerate(zip(first, second, strict=False)):
        if x != y:
            return f"id {i} is {x!r} in one and {y!r} in the other"
    longer = max(first, second, key=len)
    shared = min(len(first), len(second))
    if not all(map(is_sentinel, longer[shared:])):
        return f"one has {len(first)} pieces, the other {len(second)}"
    return None

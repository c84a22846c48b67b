"""The vocabulary of a Hugging Face folder, as a seqio vocabulary, and back."""

from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import json
import pathlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from spec_cascades import checks

SENTENCEPIECE = "spiece.model"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
ADDED_TOKENS = "added_tokens.json"
_BYTE_CLASS = "ByT5Tokenizer"
# What a sentencepiece model says of a piece (ModelProto.SentencePiece.Type).
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def read(path: pathlib.Path):
    """The vocabulary of a folder; None if it has none.

    Raises:
        ValueError: a tokenizer of another kind than SentencePiece's unigram model or bytes, or one
            with tokens or normalization that these do not have; or damaged files.
    """
    try:
        return _read(path)
    except (AttributeError, IndexError, KeyError, TypeError) as error:  # Of JSON of another form.
        raise ValueError(f"the tokenizer in {path} is damaged: {error!r}") from error


def _read(path: pathlib.Path):
    from spec_cascades.text import vocabularies

    settings = _settings(path)
    if settings.get("tokenizer_class") == _BYTE_CLASS:
        file, extra_ids = "byte", _number(settings, "extra_ids", vocabularies.USUAL_BYTE_SENTINELS)
    elif (path / SENTENCEPIECE).is_file():
        file = path / SENTENCEPIECE
        extra_ids = _num_sentinels(settings, vocabularies.load(file))
    elif (path / TOKENIZER).is_file():
        model, extra_ids = sentencepiece_model(path / TOKENIZER)
        file = _keep(model)
    else:
        return None
    _check_faithful(path, num_pieces=vocabularies.load(file).vocab_size)
    return vocabularies.load(file, extra_ids)


def _settings(path: pathlib.Path) -> dict[str, Any]:
    return _content(path / "config.json") | _content(path / TOKENIZER_CONFIG)


def _content(file: pathlib.Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is no file."""
    from spec_cascades.checkpoints import huggingface

    return huggingface.read_json(file) if file.is_file() else {}


def _num_sentinels(settings: dict[str, Any], vocabulary) -> int:
    """Sentinels behind the pieces of the file: T5's, unless something else is said."""
    from spec_cascades.text import vocabularies

    if any(map(vocabularies.is_sentinel, vocabularies.pieces(vocabulary))):
        return 0  # mT5's are pieces of the file.
    usual = vocabularies.usual_sentinels(vocabulary, _number(settings, "vocab_size", 0))
    return _number(settings, "extra_ids", usual)


def _number(settings: dict[str, Any], key: str, default: int) -> int:
    """A setting that counts something; `default` where it is absent or null."""
    value = default if settings.get(key) is None else settings[key]
    if not checks.is_whole(value, 0):
        raise ValueError(f"{key} of the tokenizer is {value!r}; a number is expected")
    return value


def sentencepiece_model(file: pathlib.Path) -> tuple[bytes, int]:
    """The SentencePiece model that a `tokenizer.json` was made from, and its number of sentinels.

    Raises:
        ValueError: not a unigram model.
    """
    from sentencepiece import sentencepiece_model_pb2

    from spec_cascades.text.vocabularies import is_sentinel

    content = _content(file)
    model = content.get("model") or {}
    if not isinstance(model.get("vocab"), list) or model.get("type", "Unigram") != "Unigram":
        kind = model.get("type", "unknown")
        raise ValueError(
            f"{file} has a tokenizer of the kind {kind}; SentencePiece unigram is wanted"
        )
    special = {x["content"] for x in content.get("added_tokens", []) if x.get("special")}
    proto = sentencepiece_model_pb2.ModelProto()
    # Sentinels are the last pieces, or tokens added behind them.
    names = [entry[0] for entry in model["vocab"]]
    count = sum(not is_sentinel(piece) for piece in names)
    unk_id = model.get("unk_id")
    if not checks.is_whole(unk_id, 0) or unk_id >= count:
        raise ValueError(f"{file}: unk_id is {unk_id!r}; the id of a piece is expected")
    if any(map(is_sentinel, names[:count])):
        raise ValueError(f"{file} has sentinels in the midst of its pieces")
    sentinels = set(names[count:]) | set(filter(is_sentinel, special))
    for i, (piece, score) in enumerate(model["vocab"][:count]):
        kind = _UNKNOWN if i == unk_id else _CONTROL if piece in special else _NORMAL
        if (
            kind == _NORMAL
            and model.get("byte_fallback")
            and re.fullmatch("<0x[0-9A-F]{2}>", piece)
        ):
            kind = _BYTE
        proto.pieces.add(piece=piece, score=score, type=kind)
    trainer = proto.trainer_spec
    trainer.model_type, trainer.vocab_size = 1, len(proto.pieces)
    trainer.pad_id, trainer.eos_id, trainer.unk_id, trainer.bos_id = 0, 1, unk_id, -1
    trainer.pad_piece, trainer.eos_piece = proto.pieces[0].piece, proto.pieces[1].piece
    trainer.unk_piece = proto.pieces[unk_id].piece
    trainer.byte_fallback = bool(model.get("byte_fallback"))
    normalizer = proto.normalizer_spec
    normalizer.add_dummy_prefix = normalizer.escape_whitespaces = True
    normalizer.remove_extra_whitespaces = True
    normalizer.precompiled_charsmap = _charsmap(content.get("normalizer"))
    return proto.SerializeToString(), len(sentinels)


def _charsmap(normalizer: dict[str, Any] | None) -> bytes:
    for step in _steps(normalizer):
        if step.get("type") == "Precompiled":
            return base64.b64decode(step["precompiled_charsmap"])
    return b""


def _steps(normalizer: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The single steps of a normalizer of the `tokenizers` library, sequences unrolled."""
    if normalizer is not None and normalizer.get("type") == "Sequence":
        for step in normalizer["normalizers"]:
            yield from _steps(step)
    elif normalizer is not None:
        yield normalizer


# --- what a SentencePiece model cannot say ---


def _check_faithful(path: pathlib.Path, num_pieces: int) -> None:
    """Raises ValueError if the folder's tokenizer does more than SentencePiece's or bytes do.

    Args:
        path: the folder.
        num_pieces: pieces of the vocabulary, without sentinels behind them.
    """
    from spec_cascades.text.vocabularies import is_sentinel

    for file, token, number in _added_tokens(path):
        if number >= num_pieces and not is_sentinel(token):
            raise ValueError(
                f"{file} adds the token {token!r} (id {number}) to the {num_pieces} pieces; only "
                "sentinels (<extra_id_0>, …) may be added"
            )
    for step in _steps(_content(path / TOKENIZER).get("normalizer")):
        if step.get("type") != "Precompiled" and not _is_about_spaces(step):
            raise ValueError(
                f"{path / TOKENIZER} has the normalizer {step.get('type')}, which SentencePiece "
                "lacks; Precompiled and those of whitespace are supported"
            )


def _added_tokens(path: pathlib.Path) -> Iterator[tuple[pathlib.Path, str, int]]:
    """(file, token, id) from each of the files in which transformers keeps added tokens."""
    for token in _content(path / TOKENIZER).get("added_tokens") or []:
        yield path / TOKENIZER, token["content"], int(token["id"])
    decoder = _content(path / TOKENIZER_CONFIG).get("added_tokens_decoder") or {}
    for number, token in decoder.items():
        yield path / TOKENIZER_CONFIG, token["content"], int(number)
    for token, number in _content(path / ADDED_TOKENS).items():
        yield path / ADDED_TOKENS, token, int(number)


def _is_about_spaces(step: dict[str, Any]) -> bool:
    """Whether a step does what SentencePiece does with spaces: trim, merge, mark by `▁`."""
    if step.get("type") == "Replace":
        (pattern,) = step["pattern"].values()
        return step["content"] in (" ", "▁") and pattern in (" ", " {2,}", " +", r"\s+", "▁")
    if step.get("type") == "Prepend":
        return step["prepend"] == "▁"
    return step.get("type") == "Strip"


@functools.cache
def _scratch() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="spec_cascades_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _keep(model: bytes) -> pathlib.Path:
    """Writes a SentencePiece model where it stays as long as the process: seqio wants a file."""
    file = _scratch() / f"{hashlib.sha256(model).hexdigest()[:16]}.model"
    file.write_bytes(model)
    return file


# --- writing ---


def write(vocabulary, path: pathlib.Path) -> None:
    """Writes the files from which transformers makes its tokenizer.

    `tokenizer.json` describes both kinds of SentencePiece model, unigram and BPE; `spiece.model` is
    the exact original, from which `read` takes the vocabulary back.
    """
    import seqio

    from spec_cascades.text import vocabularies

    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    settings = {"extra_ids": vocabulary.extra_ids, **special}
    if isinstance(vocabulary, seqio.ByteVocabulary):
        settings["tokenizer_class"] = _BYTE_CLASS
    else:
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        (path / SENTENCEPIECE).write_bytes(vocabularies.model_bytes(vocabulary))
        _write_json(path / TOKENIZER, tokenizer_json(vocabulary))
    _write_json(path / TOKENIZER_CONFIG, settings)


def _write_json(file: pathlib.Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def tokenizer_json(vocabulary) -> dict[str, Any]:
    """What the `tokenizers` library reads, for a SentencePiece vocabulary."""
    from sentencepiece import sentencepiece_model_pb2

    from spec_cascades.text import vocabularies

    content = vocabularies.model_bytes(vocabulary)
    proto = sentencepiece_model_pb2.ModelProto.FromString(content)
    sentinels = [f"<extra_id_{i}>" for i in reversed(range(vocabulary.extra_ids))]
    size = len(proto.pieces)
    special = [(i, x.piece) for i, x in enumerate(proto.pieces) if x.type in (_UNKNOWN, _CONTROL)]
    special += [(size + i, name) for i, name in enumerate(sentinels)]
    eos = proto.pieces[vocabulary.eos_id].piece
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    end = {"SpecialToken": {"id": eos, "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": x, **plain, "special": True} for i, x in special],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap}
        if charsmap
        else None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, spaces],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, end],
            "pair": [first, end, second, end],
            "special_tokens": {eos: {"id": eos, "ids": [vocabulary.eos_id], "tokens": [eos]}},
        },
        "decoder": spaces,
        "model": _bpe(proto) if proto.trainer_spec.model_type == 2 else _unigram(proto, sentinels),
    }


def _unigram(proto, sentinels: list[str]) -> dict[str, Any]:
    pieces = [[x.piece, x.score] for x in proto.pieces] + [[name, 0.0] for name in sentinels]
    return {
        "type": "Unigram",
        "unk_id": proto.trainer_spec.unk_id,
        "vocab": pieces,
        "byte_fallback": proto.trainer_spec.byte_fallback,
    }


def _bpe(proto) -> dict[str, Any]:
    """Each way to split a piece in two pieces is a merge; SentencePiece ranks it as the piece."""
    ids = {x.piece: i for i, x in enumerate(proto.pieces)}
    merges = []
    for x in sorted(proto.pieces, key=lambda x: -x.score):
        halves = ((x.piece[:i], x.piece[i:]) for i in range(1, len(x.piece)))
        if x.type == _NORMAL:
            merges += sorted(
                ([a, b] for a, b in halves if a in ids and b in ids),
                key=lambda pair: (ids[pair[0]], ids[pair[1]]),
            )
    return {
        "type": "BPE",
        "vocab": ids,
        "merges": merges,
        "unk_token": proto.trainer_spec.unk_piece,
        "fuse_unk": True,
        "byte_fallback": proto.trainer_spec.byte_fallback,
    }

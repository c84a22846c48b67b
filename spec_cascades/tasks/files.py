"""Tasks over the user's own files: JSON lines, or parallel text files; plain or gzipped.

Everything is a plain keyword argument, so a task is declared in a gin file or on the command line,
without Python. Files are read and checked when the task is registered: a malformed line fails at
once, with its place.
"""

import gzip
import json
import os
import string
from collections.abc import Iterator, Mapping, Sequence

import seqio

from spec_cascades.tasks import registry
from spec_cascades.text import vocabularies

Paths = str | os.PathLike | Sequence[str | os.PathLike]
Pair = tuple[str, str]

_REGISTERED: set[str] = set()


def register_file_task(
    name: str,
    *,
    folder: str | os.PathLike = "",
    train: Paths | None = None,
    validation: Paths | None = None,
    test: Paths | None = None,
    vocabulary: seqio.Vocabulary | str | os.PathLike | None = None,
    extra_ids: int = 0,
    input_field: str = "inputs",
    target_field: str = "targets",
    input_prefix: str = "",
    input_template: str | None = None,
    metrics: Sequence[str] = ("bleu",),
) -> seqio.Task:
    """Registers a task over files, under `name`.

    Args:
      name: task name: letters, digits, `_`, `:`, `/`, `.`. A file task of this name is replaced.
      folder: where the relative paths of the splits start; the working folder by default.
      train: the split's file, one JSON object a line; or a pair of files (inputs, targets) of
        parallel lines. Files whose name ends in `.gz` are unpacked.
      validation: as `train`.
      test: as `train`.
      vocabulary: a SeqIO vocabulary, or what `vocabularies.load` takes: 'demo', 'byte', a
        SentencePiece file, a model folder. It may be left out only for the command line to fill
        in that of the target.
      extra_ids: number of sentinels, where `vocabulary` is a name.
      input_field: field of a JSON object that holds the input.
      target_field: field of a JSON object that holds the reference.
      input_prefix: text put before every input.
      input_template: text with `{field}` places, filled from the JSON object, instead of
        `input_field`; `{{` is a brace. With parallel files the only field is `{inputs}`.
      metrics: names of `quality.METRICS`, the one to judge by first.

    Raises:
      FileNotFoundError: a file is missing.
      ValueError: a malformed line ('file:line: reason'), parallel files of different lengths, no
        split, no example.
    """
    named = {"train": train, "validation": validation, "test": test}
    paths = {split: path for split, path in named.items() if path is not None}
    if not paths:
        raise ValueError(f"task '{name}' has no file: give train, validation or test")
    if isinstance(metrics, str):
        metrics = (metrics,)
    splits = {
        split: read_pairs(
            _inside(folder, path),
            input_field=input_field,
            target_field=target_field,
            input_prefix=input_prefix,
            input_template=input_template,
        )
        for split, path in paths.items()
    }
    if vocabulary is None:
        raise ValueError(
            f"task '{name}' needs a vocabulary: 'demo', 'byte', a SentencePiece file or a model "
            "folder (or a target, whose vocabulary is taken)"
        )
    if not isinstance(vocabulary, seqio.Vocabulary):
        vocabulary = vocabularies.load(vocabulary, extra_ids)
    task = registry.add_task(
        name,
        load=splits.__getitem__,
        sizes={split: len(pairs) for split, pairs in splits.items()},
        vocabulary=vocabulary,
        metrics=metrics,
        replace=name in _REGISTERED,
    )
    _REGISTERED.add(name)
    return task


def _inside(folder: str | os.PathLike, path: Paths) -> Paths:
    if isinstance(path, str | os.PathLike):
        return os.path.join(folder, path)
    return [os.path.join(folder, p) for p in path]


def read_pairs(
    path: Paths,
    *,
    input_field: str = "inputs",
    target_field: str = "targets",
    input_prefix: str = "",
    input_template: str | None = None,
) -> list[Pair]:
    """Reads and checks the (input, target) texts of one split.

    Arguments and errors are those of `register_file_task`.
    """
    fields = [input_field] if input_template is None else _template_fields(input_template)
    if isinstance(path, str | os.PathLike):
        pairs = _read_json_lines(os.fspath(path), fields, input_field, target_field, input_template)
    else:
        pairs = _read_parallel([os.fspath(p) for p in path], fields, input_template)
    pairs = [(input_prefix + inputs, targets) for inputs, targets in pairs]
    if not pairs:
        raise ValueError(f"{path} holds no example")
    return pairs


def _read_json_lines(
    path: str, fields: list[str], input_field: str, target_field: str, template: str | None
) -> Iterator[Pair]:
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where}: not a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{where}: a JSON object is expected, found {type(record).__name__}")
        values = {field: _field(record, field, where) for field in [*fields, target_field]}
        inputs = values[input_field] if template is None else template.format_map(values)
        yield inputs, values[target_field]


def _field(record: Mapping[str, object], field: str, where: str) -> str:
    if field not in record:
        raise ValueError(f"{where}: no field '{field}', found {', '.join(map(repr, record))}")
    if not isinstance(record[field], str):
        raise ValueError(
            f"{where}: field '{field}' must be text, found {type(record[field]).__name__}"
        )
    try:
        record[field].encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where}: field '{field}' holds half a surrogate pair") from None
    return record[field]


def _read_parallel(paths: list[str], fields: list[str], template: str | None) -> Iterator[Pair]:
    if len(paths) != 2:
        raise ValueError(f"parallel text is a pair of files (inputs, targets), found {len(paths)}")
    if template is not None and set(fields) != {"inputs"}:
        raise ValueError(
            f"with parallel files a template has the field {{inputs}} only: {template}"
        )
    texts = [list(_lines(path)) for path in paths]
    counts = [len(lines) for lines in texts]
    if counts[0] != counts[1]:
        raise ValueError(
            f"{paths[0]} has {counts[0]} lines but {paths[1]} has {counts[1]}: "
            "line n of one must belong to line n of the other"
        )
    for inputs, targets in zip(*texts, strict=True):
        yield inputs if template is None else template.format(inputs=inputs), targets


def _lines(path: str) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, split on line feeds only; a final one starts no line."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"no file '{path}'")
    opener = gzip.open if path.endswith(".gz") else open
    number = 0
    try:
        with opener(path, "rb") as file:
            # Binary files split on b"\n" alone, unlike text files and str.splitlines.
            for number, line in enumerate(file, start=1):  # noqa: B007 (used below)
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}:{number}: not UTF-8: {error.reason}") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path}:{number + 1}: damaged gzip file: {error}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, a file is expected") from None


def _template_fields(template: str) -> list[str]:
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"input_template {template!r} is malformed: {error}") from None
    fields = []
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if not field.isidentifier() or form or conversion:
            raise ValueError(
                f"input_template {template!r}: a place is a plain field name, found {{{field}}}"
            )
        fields.append(field)
    if not fields:
        raise ValueError(f"input_template {template!r} names no field, such as {{inputs}}")
    return fields

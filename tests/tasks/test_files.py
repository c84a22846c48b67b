import gzip
import json
import os

import pytest

from spec_cascades import tasks
from spec_cascades.tasks import files

MULTI30K = os.path.join(os.path.dirname(__file__), "../../../shared/data/multi30k")


def write(path, text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def jsonl(path, *records):
    return write(path, "".join(json.dumps(r) + "\n" for r in records))


def texts(name, split):
    return [(e.inputs_text, e.targets_text) for e in tasks.examples(name, split)]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_json_lines(tmp_path, suffix):
    path = jsonl(
        tmp_path / f"data.jsonl{suffix}",
        {"question": "2+2?", "answer": "#### 4", "other": 1},
        {"question": "3+3?", "answer": "#### 6"},
    )
    tasks.register_file_task(
        "file_json",
        test=path,
        input_field="question",
        target_field="answer",
        input_prefix="Q: ",
        vocabulary="byte",
        metrics="accuracy",
    )
    assert texts("file_json", "test") == [("Q: 2+2?", "#### 4"), ("Q: 3+3?", "#### 6")]
    assert tasks.primary_metric("file_json") == "accuracy"


def test_parallel_text_splits_on_line_feeds_only(tmp_path):
    # Unicode has more line breaks than a corpus has lines.
    source = write(tmp_path / "a.en", "one\u2028still one\ntwo\x0bstill two\r\n\n")
    target = write(tmp_path / "a.de.gz", "eins\nzwei\ndrei")
    tasks.register_file_task("file_pairs", train=(source, target), vocabulary="byte")
    assert texts("file_pairs", "train") == [
        ("one\u2028still one", "eins"),
        ("two\x0bstill two", "zwei"),
        ("", "drei"),
    ]


def test_template(tmp_path):
    path = jsonl(tmp_path / "d.jsonl", {"text": "Add.", "tests": "f(1)", "code": "x"})
    template = "Do: {text} {{Tests}}: {tests}"
    pairs = files.read_pairs(path, target_field="code", input_template=template)
    assert pairs == [("Do: Add. {Tests}: f(1)", "x")]
    a, b = write(tmp_path / "a", "one\n"), write(tmp_path / "b", "eins\n")
    assert files.read_pairs((a, b), input_template="<{inputs}>") == [("<one>", "eins")]


@pytest.mark.parametrize(
    "template, message",
    [
        ("{a.b}", "plain field name, found {a.b}"),
        ("{a!r}", "plain field name"),
        ("{0}", "plain field name, found {0}"),
        ("{a", "malformed"),
        ("nothing", "names no field"),
    ],
)
def test_bad_templates(tmp_path, template, message):
    path = jsonl(tmp_path / "d.jsonl", {"a": "x", "targets": "y"})
    with pytest.raises(ValueError) as error:
        files.read_pairs(path, input_template=template)
    assert message in str(error.value)


GOOD = '{"inputs": "a", "targets": "b"}\n'


@pytest.mark.parametrize(
    "text, message",
    [
        (GOOD + '{"inputs": "a", "targets": \n', "d.jsonl:2: not a JSON object: "),
        (GOOD + "\n" + GOOD, "d.jsonl:2: not a JSON object: "),
        (GOOD + '["a", "b"]\n', "d.jsonl:2: a JSON object is expected, found list"),
        (GOOD + '{"inputs": "a"}\n', "d.jsonl:2: no field 'targets', found 'inputs'"),
        (
            GOOD + '{"inputs": 3, "targets": "b"}\n',
            "d.jsonl:2: field 'inputs' must be text, found int",
        ),
        (
            GOOD + '{"inputs": "\\ud800", "targets": "b"}\n',
            "d.jsonl:2: field 'inputs' holds half a surrogate pair",
        ),
        (GOOD.encode() + b'{"inputs": "\xff"}\n', "d.jsonl:2: not UTF-8: "),
        ("", "d.jsonl holds no example"),
    ],
)
def test_bad_lines_name_their_place(tmp_path, text, message):
    path = write(tmp_path / "d.jsonl", text)
    with pytest.raises(ValueError) as error:
        tasks.register_file_task("file_bad", test=path, vocabulary="byte")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_gzip(tmp_path):
    path = tmp_path / "d.jsonl.gz"
    whole = gzip.compress((GOOD * 5000).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"d.jsonl.gz:\d+: damaged gzip file"):
        files.read_pairs(path)
    path.write_bytes(b"plain text")
    with pytest.raises(ValueError, match="d.jsonl.gz:1: damaged gzip file"):
        files.read_pairs(path)


def test_unequal_lengths_and_missing_files(tmp_path):
    a, b = write(tmp_path / "a", "1\n2\n3\n"), write(tmp_path / "b", "1\n2\n")
    with pytest.raises(ValueError, match="a has 3 lines but .*b has 2: line n"):
        files.read_pairs((a, b))
    with pytest.raises(FileNotFoundError, match="no file '.*absent'"):
        files.read_pairs((a, str(tmp_path / "absent")))
    with pytest.raises(ValueError, match="pair of files .* found 3"):
        files.read_pairs((a, b, a))
    with pytest.raises(ValueError, match="is a folder"):
        files.read_pairs(str(tmp_path))


def test_bad_settings(tmp_path):
    path = write(tmp_path / "d.jsonl", GOOD)
    with pytest.raises(ValueError, match="'file_none' has no file"):
        tasks.register_file_task("file_none", vocabulary="byte")
    with pytest.raises(ValueError, match="unknown metric 'belu': did you mean 'bleu'"):
        tasks.register_file_task("file_none", test=path, vocabulary="byte", metrics=("belu",))
    with pytest.raises(ValueError, match="at least one metric"):
        tasks.register_file_task("file_none", test=path, vocabulary="byte", metrics=())
    with pytest.raises(ValueError, match="already a task or mixture 'demo'"):
        tasks.register_file_task("demo", test=path, vocabulary="byte")
    with pytest.raises(ValueError, match="already a task or mixture 'demo_reasoning'"):
        tasks.register_file_task("demo_reasoning", test=path, vocabulary="byte")


def test_registering_again_replaces(tmp_path):
    for letter in "ab":
        path = jsonl(tmp_path / f"{letter}.jsonl", {"inputs": letter, "targets": letter})
        tasks.register_file_task("file_again", test=path, vocabulary="byte")
    assert texts("file_again", "test") == [("b", "b")]


def test_folder_starts_relative_paths(tmp_path):
    write(tmp_path / "a", "one\n")
    b = write(tmp_path / "b", "eins\n")
    jsonl(tmp_path / "d.jsonl", {"inputs": "x", "targets": "y"})
    tasks.register_file_task(
        "file_folder", folder=tmp_path, train=("a", b), test="d.jsonl", vocabulary="byte"
    )
    assert texts("file_folder", "train") == [("one", "eins")]
    assert texts("file_folder", "test") == [("x", "y")]


@pytest.mark.skipif(not os.path.isdir(MULTI30K), reason="needs the Multi30k files")
def test_multi30k():
    def pair(split):
        return [os.path.join(MULTI30K, f"{split}.{language}.gz") for language in ("en", "de")]

    tasks.register_file_task(
        "file_multi30k", validation=pair("val"), test=pair("test_2016_flickr"), vocabulary="byte"
    )
    examples = tasks.examples("file_multi30k", "test", lengths={"inputs": 64})
    assert len(examples) == 1000
    assert examples[0].inputs_text.startswith("A man in an orange hat")
    assert examples[-1].targets_text.strip()
    assert max(len(e.inputs) for e in examples) == 64
    assert len(tasks.examples("file_multi30k", "validation")) == 1014

import json

import pytest

from spec_cascades import records
from spec_cascades.evaluation import store

SETTINGS = {"target": "a", "batch_size": 8}


def test_points_survive_and_a_torn_line_does_not(tmp_path):
    with store.open_folder(tmp_path, SETTINGS) as folder:
        folder.add("one", {"id": "one", "alpha": float("-inf")}, [{"prediction": "ä"}])
        folder.add("two", {"id": "two"}, [])
    content = (tmp_path / store.RESULTS).read_bytes()
    for end in range(len(content) + 1):
        (tmp_path / store.RESULTS).write_bytes(content[:end])
        with store.open_folder(tmp_path, SETTINGS) as folder:
            whole = content[:end].count(b"\n")
            assert list(folder.points) == ["one", "two"][:whole]
            folder.add("three", {"id": "three"}, [])
        with store.open_folder(tmp_path, SETTINGS) as folder:
            assert list(folder.points) == ["one", "two"][:whole] + ["three"]
    with store.open_folder(tmp_path, SETTINGS) as folder:
        assert folder.points["one"] == {"id": "one", "alpha": "-inf"}
        assert folder.predictions("one") == [{"prediction": "ä"}]


def test_another_experiment_is_refused_and_left_alone(tmp_path):
    with store.open_folder(tmp_path, SETTINGS) as folder:
        folder.add("one", {"id": "one"}, [])
    before = (tmp_path / store.RESULTS).read_bytes()
    other = SETTINGS | {"batch_size": 16}
    with pytest.raises(ValueError, match="batch_size is 16 now and was 8 there"):
        with store.open_folder(tmp_path, other):
            pass
    assert (tmp_path / store.RESULTS).read_bytes() == before
    assert json.loads((tmp_path / store.SETTINGS).read_text()) == SETTINGS


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / store.RESULTS).write_text("{}\n")
    with pytest.raises(ValueError, match="not one of ours"):
        with store.open_folder(tmp_path, SETTINGS):
            pass


def test_two_processes_cannot_share_a_folder(tmp_path):
    with store.open_folder(tmp_path, SETTINGS):
        with pytest.raises(ValueError, match="in use by another process"):
            with store.open_folder(tmp_path, SETTINGS):
                pass


def test_a_damaged_line_names_its_place(tmp_path):
    (tmp_path / store.RESULTS).write_text('{"id": "a"}\nrubbish\n')
    with pytest.raises(ValueError, match=r"results.jsonl:2: not a JSON object"):
        records.read_lines(tmp_path / store.RESULTS)


def test_equal_settings_share_an_id():
    assert records.point_id({"a": 1, "b": 2.0}) == records.point_id({"b": 2.0, "a": 1})
    assert records.point_id({"a": 1}) != records.point_id({"a": 2})


def test_nothing_half_written_is_left(tmp_path):
    records.write_atomically(tmp_path / "x" / "file", "new")
    records.write_atomically(tmp_path / "x" / "file", b"newer")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["file"]
    assert (tmp_path / "x" / "file").read_text() == "newer"

"""The output folder of a sweep: results that survive a kill at any moment.

    settings.json        what the points have in common (the fingerprint); refused if it differs
    results.jsonl        one line a finished point, appended and synced
    predictions/<id>.jsonl
    .lock                held by the running process

A point is finished when its line stands in results.jsonl whole, newline included. Its
predictions are written before, so a finished point has them. Whatever a kill cut short is
repaired on opening: a torn last line is dropped, and its point run again.
"""

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spec_cascades import records

RESULTS = "results.jsonl"
SETTINGS = "settings.json"


class Folder:
    """An output folder, opened by one process at a time.

    Attributes:
        path: the folder.
        points: finished points by id, in the order they finished.
    """

    def __init__(self, path: pathlib.Path, points: dict[str, dict[str, Any]]):
        """See `open_folder`."""
        self.path = path
        self.points = points

    def predictions_path(self, identity: str) -> pathlib.Path:
        """Where a point's predictions stand."""
        return self.path / "predictions" / f"{identity}.jsonl"

    def add(
        self, identity: str, point: Mapping[str, Any], predictions: Iterable[Mapping[str, Any]]
    ) -> None:
        """Records a finished point; once this returns, it survives a kill."""
        lines = "".join(records.dumps(prediction) + "\n" for prediction in predictions)
        records.write_atomically(self.predictions_path(identity), lines)
        with open(self.path / RESULTS, "a", encoding="utf-8") as file:
            file.write(records.dumps(point) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.points[identity] = json.loads(records.dumps(point))

    def predictions(self, identity: str) -> list[dict[str, Any]]:
        """A finished point's predictions, in input order."""
        return records.read_lines(self.predictions_path(identity))


@contextlib.contextmanager
def open_folder(path: str | os.PathLike, fingerprint: Mapping[str, Any]) -> Iterator[Folder]:
    """Opens a sweep's output folder, new or begun earlier with the same fingerprint.

    Args:
        path: the folder; made if missing.
        fingerprint: the settings that all points share.

    Yields:
        the folder with its finished points.

    Raises:
        ValueError: the folder holds another experiment, or foreign files, or is in use.
    """
    path = pathlib.Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"output folder {path} is a file")
    _refuse_other(path, records.to_json(fingerprint))
    path.mkdir(parents=True, exist_ok=True)
    with open(path / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"output folder {path} is in use by another process") from None
        # Whoever held the lock a moment ago may have begun another experiment.
        _refuse_other(path, records.to_json(fingerprint))
        settings = json.dumps(records.to_json(fingerprint), indent=2, ensure_ascii=False)
        records.write_atomically(path / SETTINGS, settings + "\n")
        points = records.read_lines(path / RESULTS, repair=True)
        for number, point in enumerate(points, start=1):
            if "id" not in point:
                raise ValueError(f"{path / RESULTS}:{number}: a point of ours has an 'id'")
        yield Folder(path, {point["id"]: point for point in points})


def _refuse_other(path: pathlib.Path, fingerprint: dict[str, Any]) -> None:
    if not (path / SETTINGS).exists():
        if (path / RESULTS).exists():
            raise ValueError(
                f"output folder {path} has {RESULTS} but no {SETTINGS}: it is not one of ours; "
                "choose another --output_dir"
            )
        return
    if not (path / RESULTS).exists():
        return  # A run that ended before its first point leaves nothing that could be mixed up.
    try:
        found = dict(json.loads((path / SETTINGS).read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path / SETTINGS} is damaged ({error}): choose another --output_dir, or remove it"
        ) from None
    changed = [
        f"{key} is {fingerprint.get(key)!r} now and was {found.get(key)!r} there"
        for key in sorted(fingerprint.keys() | found.keys())
        if fingerprint.get(key) != found.get(key)
    ]
    if changed:
        raise ValueError(
            f"output folder {path} holds another experiment: {'; '.join(changed)}; "
            "choose another --output_dir, or remove it"
        )

"""JSON lines and files that survive a kill: whole, or not there."""

import hashlib
import json
import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any


def to_json(value: Any) -> Any:
    """`value` in plain JSON: infinities become 'inf' and '-inf', NaN becomes None."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):  # numpy and jax scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def dumps(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(to_json(value), ensure_ascii=False, allow_nan=False)


def point_id(settings: Mapping[str, Any]) -> str:
    """A short name of a point: equal settings, and only they, share it."""
    return hashlib.sha256(json.dumps(to_json(settings), sort_keys=True).encode()).hexdigest()[:12]


def write_atomically(path: str | os.PathLike, content: str | bytes) -> None:
    """Writes a file that is either whole or not there, however the process ends."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(temporary, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_lines(path: str | os.PathLike, *, repair: bool = False) -> list[dict[str, Any]]:
    """Reads a JSONL file of points.

    Args:
        path: the file; one that is missing has no lines.
        repair: cut off a last line that a kill left incomplete.

    Returns:
        the whole lines' objects.

    Raises:
        ValueError: a whole line is no JSON object, which no kill of ours leaves behind.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    points = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            points.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a JSON object: {error}") from None
    if repair and whole != content:
        os.truncate(path, len(whole))
    return points

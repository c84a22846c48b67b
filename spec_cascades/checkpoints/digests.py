"""Short digests of checkpoints: a job that is resumed asks whether they are what they were."""

from __future__ import annotations

import hashlib

from spec_cascades.checkpoints import formats

# Of large files a digest reads so many blocks of so many bytes, evenly spread over the checkpoint.
_BLOCK = 1 << 16
_BLOCKS = 4096


def of_checkpoint(path: str) -> str:
    """A short digest of a checkpoint: names, sizes and content of its files.

    Up to `_BLOCK * _BLOCKS` bytes (256 MiB) all of it is read; of a larger one evenly spread
    blocks, and always the tail of each file: fine-tuned models differ from each other all over,
    and in nothing but these numbers. Of `gs://` paths the name has to do: thousands of small files
    stand for a model there.
    """
    place = formats.resolve(path)
    if "://" in str(place):
        return hashlib.sha256(str(place).encode()).hexdigest()[:16]
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    sizes = [file.stat().st_size for file in files]
    stride = max(_BLOCK, sum(sizes) // _BLOCKS)
    digest = hashlib.sha256()
    for file, size in zip(files, sizes, strict=True):
        digest.update(f"{file.relative_to(place)} {size} ".encode())
        with open(file, "rb") as content:
            for start in (*range(0, size, stride), max(0, size - _BLOCK)):
                content.seek(start)
                digest.update(content.read(_BLOCK))
    return digest.hexdigest()[:16]

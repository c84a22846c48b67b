"""Where the gin files stand: at the top of a checkout, inside the package after `pip install`."""

import pathlib

_PACKAGE = pathlib.Path(__file__).parent
_FOLDERS = ("gin", "configs")


def root() -> pathlib.Path:
    """The folder that holds `gin/` and `configs/`.

    Inside the package they are found first: beside an installed package there is a `gin` too,
    the gin-config library.
    """
    if (_PACKAGE / "gin").is_dir():
        return _PACKAGE
    return _PACKAGE.parent


def gin_search_paths() -> list[str]:
    """Folders in which gin looks for files: `gin/demo.gin` and `demo.gin` both name the demo."""
    return [str(root()), *(str(root() / folder) for folder in _FOLDERS)]


def gin_files() -> list[str]:
    """Shipped gin files, by the shortest name that finds them.

    Without those of `gin/t5x`, which T5X's scripts read.
    """
    found = (
        path.relative_to(root() / folder)
        for folder in _FOLDERS
        for path in (root() / folder).rglob("*.gin")
    )
    return sorted(str(path) for path in found if path.parts[0] != "t5x")


if __name__ == "__main__":  # for scripts that take gin files by path, such as T5X's
    print(root() / "gin")

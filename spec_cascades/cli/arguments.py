"""Command-line arguments: flags of our own, and gin's as T5X users write them."""

import argparse
import difflib
import importlib
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_GIN_HELP = """\
gin:
  --gin_file=FILE         read a gin file; may be repeated, later ones win. Found in the working
                          folder, in --gin_search_paths, and among the shipped ones (demo.gin).
  --gin.NAME=VALUE        bind a macro or an argument, after all files:
                          --gin.evaluate.gammas='(3, 5)' --gin.evaluate.task="'demo'"
  --gin_search_paths=DIR  more folders to look for gin files in, separated by commas
"""


def numbers(kind: Callable) -> Callable[[str], list]:
    """Parses comma-separated numbers of a kind."""

    def parse_numbers(text: str) -> list:
        return [kind(item) for item in text.split(",") if item]

    parse_numbers.__name__ = f"comma-separated {kind.__name__} list"
    return parse_numbers


def real(text: str) -> float:
    """Parses a number; `nan` is none."""
    number = float(text)
    if math.isnan(number):
        raise ValueError("not a number")
    return number


def words(text: str) -> list[str]:
    """Parses comma-separated words."""
    return [item for item in text.split(",") if item]


class _Parser(argparse.ArgumentParser):
    """Raises ValueError instead of printing the usage and leaving."""

    def error(self, message: str):
        raise ValueError(f"{message} (see `{self.prog} --help`)")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parses a command line; `run` of the result is the command's function.

    Raises:
        ValueError: an unknown command or flag (with the nearest known one), or a bad value.
    """
    from spec_cascades.cli import convert, evaluate, generate, inspect, rules, train

    parser = _Parser(
        prog="spec-cascades",
        description="Speculative cascades of two models: quality against cost.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for module in (evaluate, generate, rules, train, convert, inspect):
        module.add(commands)
    if argv and argv[0] not in commands.choices and not argv[0].startswith("-"):
        near = difflib.get_close_matches(argv[0], list(commands.choices), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(commands.choices)}"
        raise ValueError(f"unknown command {argv[0]!r}: {hint}")
    bindings, rest = _take_gin(argv)
    options, unknown = parser.parse_known_args(rest)
    if options.command is None and not unknown:
        parser.print_help()
        raise SystemExit(0)
    command = commands.choices.get(options.command, parser)
    takes_gin = hasattr(options, "gin_file")
    if bindings and not takes_gin:
        raise ValueError(f"`{options.command}` takes no gin bindings, got --gin.{bindings[0]}")
    if unknown:
        raise ValueError(_unknown_flag(unknown[0], command, takes_gin))
    options.bindings = bindings
    _import_modules(options.modules)
    return options


def _take_gin(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Takes `--gin.NAME=VALUE` out of a command line."""
    bindings, rest = [], []
    for argument in argv:
        if argument.startswith("--gin."):
            if "=" not in argument:
                raise ValueError(f"{argument}: expected --gin.NAME=VALUE")
            bindings.append(argument.removeprefix("--gin."))
        else:
            rest.append(argument)
    return bindings, rest


def _unknown_flag(flag: str, command: argparse.ArgumentParser, takes_gin: bool) -> str:
    name = flag.split("=")[0]
    if not name.startswith("-"):
        return f"unexpected argument {name!r} of {command.prog}"
    known = [option for action in command._actions for option in action.option_strings]
    near = difflib.get_close_matches(name, known + ["--gin.NAME=VALUE"] * takes_gin, n=1)
    hint = f"did you mean {near[0]}?" if near else f"see `{command.prog} --help`"
    return f"unknown flag {name}: {hint}"


def add_command(
    commands, name: str, run: Callable, *, summary: str, description: str, gin: bool
) -> argparse.ArgumentParser:
    """Adds a command with the flags that all commands share."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        usage=f"spec-cascades {name} [flags]" + gin * " [--gin_file=FILE …] [--gin.NAME=VALUE …]",
        epilog=_GIN_HELP if gin else None,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=28, width=100
        ),
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a Python module first, such as one that registers your own rules",
    )
    if gin:
        parser.add_argument(
            "--gin_file", action="append", default=[], metavar="FILE", help=argparse.SUPPRESS
        )
        parser.add_argument("--gin_search_paths", default="", help=argparse.SUPPRESS)
    return parser


class Flag(NamedTuple):
    """A flag `--name=METAVAR`; a choice among words is their tuple instead of a metavar."""

    name: str
    metavar: str | tuple[str, ...]
    type: Callable
    help: str
    default: Any = None


def add_flags(parser: argparse.ArgumentParser, flags: Sequence[Flag]) -> None:
    """Adds flags to a parser."""
    for flag in flags:
        words = isinstance(flag.metavar, tuple)
        values = {"choices": flag.metavar} if words else {"metavar": flag.metavar}
        parser.add_argument(
            f"--{flag.name}", type=flag.type, default=flag.default, help=flag.help, **values
        )


def _import_modules(modules: Sequence[str]) -> None:
    """Imports the user's modules, from the working folder too."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for module in modules:
        name = module.removesuffix(".py").replace(os.sep, ".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.split(".")[0] and error.name != name:
                raise
            raise ValueError(
                f"--import={module}: no module {name!r} in the working folder or installed"
            ) from None
        except Exception as error:  # Whatever the user's code raises.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = "" if isinstance(error, SyntaxError) else f" ({frame.filename}:{frame.lineno})"
            raise ValueError(
                f"--import={module}: {type(error).__name__}: {error}{where}"
            ) from error


# ---------------------------------------------------------------------------------------------
# Flags that stand for gin bindings
# ---------------------------------------------------------------------------------------------

_FILE_TASK = {
    "train_file": "train",
    "validation_file": "validation",
    "test_file": "test",
    "input_field": "input_field",
    "target_field": "target_field",
    "input_prefix": "input_prefix",
    "input_template": "input_template",
    "vocabulary": "vocabulary",
    "metrics": "metrics",
}


def add_file_task(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that make a task of the user's own files."""
    group = parser.add_argument_group(
        "your own data",
        "With any of these, --task names a task made of your files: JSON lines, or two files of "
        "parallel text as `FILE,FILE`; .gz is unpacked.",
    )
    for split in ("train", "validation", "test"):
        group.add_argument(
            f"--{split}_file", type=words, metavar="FILE[,FILE]", help=f"the {split} split"
        )
    group.add_argument(
        "--input_field", metavar="NAME", help="JSON field of the input (default: inputs)"
    )
    group.add_argument(
        "--target_field", metavar="NAME", help="JSON field of the reference (default: targets)"
    )
    group.add_argument("--input_prefix", metavar="TEXT", help="text to put before every input")
    group.add_argument("--input_template", metavar="TEXT", help="input text with {field} places")
    group.add_argument(
        "--vocabulary",
        metavar="NAME",
        help="of your files, and of checkpoints that carry none: 'demo', 'byte', a SentencePiece "
        "file or a model folder (default: the target's)",
    )
    group.add_argument(
        "--metrics",
        metavar="NAME,…",
        type=words,
        help="bleu, rouge, accuracy, exact_match, separated by commas (default: bleu)",
    )


def bindings(options: argparse.Namespace, job: str, flags: Sequence[Flag]) -> list[str]:
    """Flags that were given, as gin bindings; then the bindings that were given as such."""
    given = [(flag.name, getattr(options, flag.name)) for flag in flags]
    lines = [f"{job}.{name}={_literal(value)}" for name, value in given if value is not None]
    vocabulary = getattr(options, "vocabulary", None)
    if vocabulary is not None and hasattr(options, "target"):
        lines.append(f"{job}.vocabulary={vocabulary!r}")
    return [*lines, *_file_task_bindings(options), *options.bindings]


def _literal(value: Any) -> str:
    """A flag's value as gin reads it, which has no word for infinity."""
    numbers = value if isinstance(value, list) else [value]
    if all(isinstance(number, float) for number in numbers):
        return repr(value).replace("inf", "1e999")
    return repr(value)


def _file_task_bindings(options: argparse.Namespace) -> list[str]:
    given = {}
    for flag, argument in _FILE_TASK.items():
        value = getattr(options, flag, None)
        if value is None:
            continue
        if flag.endswith("_file"):
            if len(value) > 2:
                raise ValueError(f"--{flag}: one file, or two of parallel text, got {len(value)}")
            value = value[0] if len(value) == 1 else tuple(value)
        given[argument] = value
    if not given or (given.keys() == {"vocabulary"} and hasattr(options, "target")):
        return []  # A vocabulary alone is that of the models.
    if getattr(options, "task", None) is None:
        raise ValueError("name the task that your files make: --task=NAME")
    given["name"] = options.task
    return [f"register_file_task.{name}={value!r}" for name, value in given.items()]


def prepare(
    options: argparse.Namespace, files: Sequence[str], lines: Sequence[str], flags: Sequence[Flag]
) -> None:
    """Reads gin files and bindings, registers the file task that they describe, checks all.

    Whatever is given wrong is reported before anything that is missing. A file task that names
    no vocabulary has that of the job's target.
    """
    import gin

    from spec_cascades.cli import quiet

    quiet.import_tasks()
    from spec_cascades.cli import gin_utils

    gin_utils.register()
    for path in options.gin_search_paths.split(","):
        if path:
            gin.add_config_file_search_path(path)
    gin_utils.parse(files, lines)
    gin_utils.check(options.command, without=["task"])
    if gin_utils.bound("register_file_task"):
        _register_file_task(gin_utils.bound(options.command))
    gin_utils.check(options.command)
    gin_utils.check_bound(options.command, flags=[flag.name for flag in flags])


def _register_file_task(job: Mapping[str, Any]) -> None:
    """Registers the file task in its own vocabulary, or that of the job's target."""
    from spec_cascades import checkpoints
    from spec_cascades.checkpoints import formats
    from spec_cascades.cli import gin_utils

    task = gin_utils.bound("register_file_task")
    vocabulary, target = task.get("vocabulary"), job.get("target")
    if vocabulary is None and target is not None:
        vocabulary = checkpoints.read_vocabulary(target, job.get("vocabulary"))
    elif not task.get("extra_ids"):  # Sentinels are asked for of a name alone.
        vocabulary = formats.as_vocabulary(vocabulary)
    gin_utils.call("register_file_task", vocabulary=vocabulary)

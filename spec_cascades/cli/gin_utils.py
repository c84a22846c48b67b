"""gin at the edge of the program: what can be configured, and errors in one line.

Only the command line imports this module. The library's functions are plain; here they become
gin configurables:

    evaluate                     the sweep (`evaluation.evaluate`)
    train, distill               settings of the jobs that `training` and `distillation` run
    register_file_task           a task over the user's own files
    T5Config, t5_preset          model sizes
"""

import functools
import importlib.util  # noqa: F401 (gin uses it without importing it)
import inspect
import logging
import re
import tokenize
from collections.abc import Callable, Sequence
from typing import Any

import gin

from spec_cascades import resources, rules

_plain: dict[str, Callable] = {}
_functions: dict[str, Callable] = {}
_checks: dict[str, Callable] = {}


def register() -> dict[str, Callable]:
    """Makes the jobs configurable, and what their configuration may refer to; once.

    Returns:
        the configurable functions by name.
    """
    if _functions:
        return _functions
    from spec_cascades import evaluation, tasks, training
    from spec_cascades.models.t5 import T5Config
    from spec_cascades.training import distillation

    _plain.update(
        evaluate=evaluation.evaluate,
        train=training.TrainRun,
        distill=distillation.DistillRun,
        register_file_task=tasks.register_file_task,
        T5Config=T5Config,
        t5_preset=functools.partial(T5Config.preset),
    )
    _checks.update(
        evaluate=evaluation.check,
        train=training.TrainRun.check,
        distill=distillation.DistillRun.check,
    )
    for name, function in _plain.items():
        _functions[name] = gin.external_configurable(function, name, module="spec_cascades")
    for path in resources.gin_search_paths():
        gin.add_config_file_search_path(path)
    return _functions


def parse(files: Sequence[str] = (), bindings: Sequence[str] = ()) -> None:
    """Reads gin files, then bindings such as `evaluate.gammas=(3, 5)`, replacing all before.

    Raises:
        ValueError: with one line that says where and what; unknown names come with the nearest.
    """
    register()
    gin.clear_config()
    for file in files:
        logging.disable(logging.ERROR)  # gin logs every folder in which a file is not
        try:
            gin.parse_config_file(file)
        except Exception as error:
            raise ValueError(_explain(error, f"gin file {file}")) from error
        finally:
            logging.disable(logging.NOTSET)
    for binding in bindings:
        try:
            gin.parse_config(binding)
        except Exception as error:
            raise ValueError(_explain(error, f"--gin.{binding}")) from error
    _refuse_unused_macros(bindings)


def _refuse_unused_macros(bindings: Sequence[str]) -> None:
    """Raises ValueError for `NAME=VALUE` that no configuration refers to as `%NAME`."""
    for binding in bindings:
        name = binding.split("=")[0].strip()
        if name.isidentifier() and not re.search(rf"%{name}\b", gin.config_str()):
            owners = [job for job in _plain if name in inspect.signature(_plain[job]).parameters]
            meant = " or ".join(f"--gin.{job}.{name}" for job in owners)
            raise ValueError(
                f"--gin.{binding}: nothing refers to %{name}"
                + (f"; did you mean {meant}?" if meant else "")
            )


def call(name: str, **arguments: Any) -> Any:
    """Calls a job with its bindings.

    Args:
        name: of the job.
        **arguments: values of the caller, which come before bindings; None leaves the binding.

    Raises:
        ValueError: a job that misses bindings, or refers to a macro without a value, names them.
    """
    job = register()[name]
    arguments = {key: value for key, value in arguments.items() if value is not None}
    check_bound(name, given=arguments)
    try:
        return job(**arguments)
    except (ValueError, OSError) as error:
        # gin raises a copy that ends in the place of the call; the original is its context.
        copied = "\n  In call to configurable" in str(error)
        raise (error.__context__ if copied else error) from None


def check(name: str, *, without: Sequence[str] = ()) -> None:
    """Checks what is bound of a job, except some arguments; what is missing is no error here.

    Raises:
        ValueError: a setting is wrong.
        FileNotFoundError: a model is not there.
    """
    values = bound(name)
    given = {
        key: value
        for key, value in values.items()
        if value is not gin.REQUIRED and key not in without
    }
    _checks[name](**given)


def check_bound(name: str, *, flags: Sequence[str] = (), given: Sequence[str] = ()) -> None:
    """Raises ValueError if required arguments of a job have neither binding nor value.

    Args:
        name: of the job.
        flags: arguments that the command line has a flag for.
        given: arguments that the caller has a value for.
    """
    values = bound(name)
    required = [
        parameter.name
        for parameter in inspect.signature(_plain[name]).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]
    required += [key for key, value in values.items() if value is gin.REQUIRED]
    missing = [
        key
        for key in dict.fromkeys(required)
        if key not in given and values.get(key) in (None, gin.REQUIRED)
    ]
    if missing:
        have = "has" if len(missing) == 1 else "have"
        flag = {key: f"--{key}" if key in flags else f"--gin.{name}.{key}" for key in missing}
        raise ValueError(
            f"{', '.join(f'{name}.{key}' for key in missing)} {have} no value: "
            f"give {', '.join(f'{flag[key]}=…' for key in missing)}, or bind in a gin file"
        )


def bound(name: str) -> dict[str, Any]:
    """What is bound of a configurable's arguments, macros and references resolved."""
    try:
        return gin.get_bindings(name)
    except Exception as error:
        raise ValueError(_explain(error, name)) from error


def operative_config() -> str:
    """The operative gin configuration: bindings and defaults of everything called so far."""
    return gin.operative_config_str()


def _explain(error: Exception, where: str) -> str:
    """One line for what gin raises."""
    text = str(error)
    place = re.findall(r'In file "([^"]+)", line (\d+)', text)
    if place:
        where = ":".join(place[0])
    if found := re.search(r"Configurable '(\w+)' doesn't have a parameter named '(\w+)'", text):
        owner, name = found.groups()
        known = list(inspect.signature(_plain[owner]).parameters) if owner in _plain else []
        known = [parameter for parameter in known if parameter != "provenance"]
        return f"{where}: {rules.unknown(f'parameter of {owner}', name, known)}"
    if found := re.search(r"No configurable matching (?:reference )?'@?([\w./]+)", text):
        return f"{where}: {rules.unknown('gin configurable', found[1], list(_functions))}"
    if found := re.search(r"in scope '(\w+)'", text):
        return f"gin macro {found[1]} has no value: bind it by --gin.{found[1]}=…"
    if found := re.search(r"Unable to open file: (\S+?)\.? Searched", text):
        unknown = rules.unknown("gin file", found[1], resources.gin_files())
        return unknown if where == f"gin file {found[1]}" else f"{where}: {unknown}"
    if isinstance(error, tokenize.TokenError):
        return f"{where}: a bracket or a quote is not closed"
    text = re.sub(r"malformed node or string( on line \d+)?: <.*?>", "not a value", text)
    if isinstance(error, SyntaxError):
        return f"{where}: {text.splitlines()[0]} (quote text, as in --gin.evaluate.task=\"'demo'\")"
    return f"{where}: {text.splitlines()[0] if text else type(error).__name__}"

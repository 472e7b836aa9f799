"""Tests of text with lit, for this project and for extensions: substitutions, and a format that starts nothing anew.

A `lit.cfg.py` of two lines has all of it::

    from xdsl_relax.testing import configure

    configure(config, lit_config, __file__)

lit and filecheck come with `pip install xdsl-relax[testing]`.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias

from lowering.registry import dialect_factories, pass_factories
from tir_dialect.extensions import load_extension

# lit is not typed.
_Test: Any = import_module("lit.Test")
_TestRunner: Any = import_module("lit.TestRunner")
_ShTest: Any = import_module("lit.formats").ShTest
_ShUtil: Any = import_module("lit.ShUtil")

SUBSTITUTIONS: Sequence[tuple[str, str]] = (
    # Both forms print, parse and print again to the same text.
    ("RELAX_ROUNDTRIP", "relax-opt %s --split-input-file | relax-opt --split-input-file | filecheck %s"),
    (
        "RELAX_GENERIC_ROUNDTRIP",
        "relax-opt %s --print-op-generic --split-input-file | relax-opt --split-input-file | filecheck %s",
    ),
    # Every chunk is rejected; the message goes to stdout.
    (
        "RELAX_INVALID",
        "relax-opt %s --parsing-diagnostics --verify-diagnostics --split-input-file | filecheck %s",
    ),
)
"""What stands for commands in RUN lines."""

TOOLS = ("relax-opt", "relax-translate", "filecheck")

SECONDS = 60
"""How long a test may take, unless the command line of lit says it."""


def configure(config: Any, lit_config: Any, file: str, *, extensions: Sequence[str] = ()) -> None:
    """Fills the configuration of a suite of tests, whose `lit.cfg.py` is `file`.

    `extensions` are modules that are loaded first, as by `--load`, for tests that run in a fork; those that are
    installed need not be named.
    """
    for name in extensions:
        load_extension(name)
    config.test_format = ForkedTools(*TOOLS)
    config.suffixes = [".mlir", ".py.test"]
    config.test_source_root = os.path.dirname(file)
    config.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if (packages := os.environ.get("PYTHONPATH")) is not None:
        config.environment["PYTHONPATH"] = packages
    # Tests neither use nor fill the user's cache of compiled code.
    config.environment["RELAX_CACHE"] = "off"
    config.substitutions += SUBSTITUTIONS
    if lit_config.maxIndividualTestTime == 0 and lit_config.maxIndividualTestTimeIsSupported[0]:
        lit_config.maxIndividualTestTime = SECONDS


Pipe: TypeAlias = Sequence[Sequence[str]]
"""Commands, each of which reads what the one before writes."""


class ForkedTools(_ShTest):
    """RUN lines that are pipes of the named console scripts run in one fork for each test.

    Those of other tests go to the shell of lit, and so does a test that fails in the fork: what a test says is what
    the shell makes of it, and how it failed is reported as always.
    """

    def __init__(self, *tools: str):
        _ShTest.__init__(self)
        self._tools = tools
        # Loads all that the tools may import later, so that it is in every fork.
        for load in (*dialect_factories().values(), *pass_factories().values()):
            load()
        for tool in tools:
            _entry(tool)
        gc.collect()
        gc.freeze()

    def execute(self, test: Any, lit_config: Any) -> Any:
        pipes = _pipes(test)
        ours = pipes and all(command[0] in self._tools for pipe in pipes for command in pipe)
        if ours and not lit_config.noExecute and _pass_in_a_fork(pipes, test):
            return _Test.Result(_Test.PASS)
        return _ShTest.execute(self, test, lit_config)


@cache
def _entry(tool: str) -> Callable[[], int | None]:
    """The function of a console script."""
    (script,) = entry_points(group="console_scripts", name=tool)
    return script.load()


def _pipes(test: Any) -> Sequence[Pipe]:
    """The RUN lines; none if one of them is more than a pipe of plain commands."""
    script = _TestRunner.parseIntegratedTestScript(test)
    if isinstance(script, _Test.Result):
        return ()
    substitutions = _TestRunner.getDefaultSubstitutions(test, *_TestRunner.getTempPaths(test))
    lines = _TestRunner.applySubstitutions(script, substitutions, recursion_limit=test.config.recursiveExpansionLimit)
    parsed = [_ShUtil.ShParser(re.fullmatch(_TestRunner.kPdbgRegex, line)[2], pipefail=True).parse() for line in lines]
    return [[command.args for command in line.commands] for line in parsed] if all(map(_is_plain, parsed)) else ()


def _is_plain(line: Any) -> bool:
    """Whether a line has no operators, redirections or patterns."""
    return isinstance(line, _ShUtil.Pipeline) and all(
        not command.redirects and all(isinstance(arg, str) for arg in command.args) for command in line.commands
    )


def _pass_in_a_fork(pipes: Sequence[Pipe], test: Any) -> bool:
    """Whether all of the pipes succeed within the time for a test, where and with the environment that lit says."""
    if (child := os.fork()) != 0:
        return os.waitpid(child, 0)[1] == 0
    failed = 1
    try:
        signal.alarm(test.config.maxIndividualTestTime)
        os.chdir(os.path.dirname(test.getExecPath()))
        os.environ.clear()
        os.environ.update(test.config.environment)
        with open(os.devnull, "w") as sys.stderr:
            os.dup2(sys.stderr.fileno(), 2)
            for pipe in pipes:
                reduce(_output, pipe, b"")
        failed = 0
    finally:
        os._exit(failed)


def _output(given: bytes, command: Sequence[str]) -> bytes:
    """What a command writes when it reads `given`; exits with its status if it fails."""
    with TemporaryFile() as stdin, TemporaryFile() as stdout:
        stdin.write(given)
        stdin.seek(0)
        os.dup2(stdin.fileno(), 0)
        os.dup2(stdout.fileno(), 1)
        with open(0, closefd=False) as sys.stdin, open(1, "w", closefd=False) as sys.stdout:
            _run(command)
        stdout.seek(0)
        return stdout.read()


def _run(command: Sequence[str]) -> None:
    """Does what the console script does, and exits only to say that it failed."""
    sys.argv = list(command)
    try:
        sys.exit(_entry(command[0])())
    except SystemExit as end:
        if end.code:
            raise

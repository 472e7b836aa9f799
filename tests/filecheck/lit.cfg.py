import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
sys.path.insert(0, ROOT)

from tests.support.forked_tools import ForkedTools

config.name = "xdsl-relax"
config.test_format = ForkedTools("relax-opt", "relax-translate", "filecheck")
config.suffixes = [".mlir", ".py.test"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# The tools are those of this checkout, in the shell too, wherever the installed ones come from.
config.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
# Tests neither use nor fill the user's cache of compiled code.
config.environment["RELAX_CACHE"] = "off"

config.substitutions += [
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
]

if lit_config.maxIndividualTestTime == 0 and lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 60

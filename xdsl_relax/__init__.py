"""xdsl-relax from Python: models to callables, modules to modules.

::

    import numpy as np
    import xdsl_relax as xr

    model = xr.compile("model.onnx")  # a path, a text, a model of ONNX or PyTorch, a module
    y = model(np.ones((3, 4), np.float32))

Names are loaded when they are used: importing the package loads none of its parts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from xdsl_relax.own_packages import find_own_packages

if TYPE_CHECKING:
    from lowering.compiler.build import build
    from relax_dialect import nn, patterns
    from relax_dialect.builder import BlockBuilder, op, tensor
    from relax_dialect.tvmscript import as_tvmscript
    from tir_dialect import te
    from tir_dialect.schedule import Schedule
    from tir_dialect.target import Target
    from vm_dialect import ExecBuilder, Executable, VirtualMachine, load_library
    from xdsl_relax import distributed, llm
    from xdsl_relax.display import show, view
    from xdsl_relax.errors import PassError, RelaxError
    from xdsl_relax.loading import load, parse
    from xdsl_relax.model import Model, compile, interpret
    from xdsl_relax.passes import PassContext, PassTiming, PrintIR, list_passes, run_passes
    from xdsl_relax.session import Session

find_own_packages()

# Not at the top: from here on our packages are found.
from vm_dialect.lazy_names import LazyNames  # noqa: E402

__all__ = [
    "BlockBuilder",
    "ExecBuilder",
    "Executable",
    "Model",
    "PassContext",
    "PassError",
    "PassTiming",
    "PrintIR",
    "RelaxError",
    "Schedule",
    "Session",
    "Target",
    "VirtualMachine",
    "__version__",
    "as_tvmscript",
    "build",
    "compile",
    "distributed",
    "interpret",
    "list_passes",
    "llm",
    "load",
    "load_library",
    "nn",
    "op",
    "parse",
    "patterns",
    "run_passes",
    "show",
    "te",
    "tensor",
    "view",
]

__version__: str

_NAMES = LazyNames(
    __name__,
    {
        "BlockBuilder": "relax_dialect.builder:BlockBuilder",
        "ExecBuilder": "vm_dialect.exec_builder:ExecBuilder",
        "Executable": "vm_dialect.executable:Executable",
        "Model": "xdsl_relax.model:Model",
        "PassContext": "xdsl_relax.passes:PassContext",
        "PassError": "xdsl_relax.errors:PassError",
        "PassTiming": "xdsl_relax.passes:PassTiming",
        "PrintIR": "xdsl_relax.passes:PrintIR",
        "RelaxError": "xdsl_relax.errors:RelaxError",
        "Schedule": "tir_dialect.schedule:Schedule",
        "Session": "xdsl_relax.session:Session",
        "Target": "tir_dialect.target:Target",
        "VirtualMachine": "vm_dialect.machine:VirtualMachine",
        "__version__": "xdsl_relax.version:VERSION",
        "as_tvmscript": "relax_dialect.tvmscript:as_tvmscript",
        "build": "lowering:build",
        "compile": "xdsl_relax.model:compile",
        "distributed": "xdsl_relax.distributed",
        "interpret": "xdsl_relax.model:interpret",
        "list_passes": "xdsl_relax.passes:list_passes",
        "llm": "xdsl_relax.llm",
        "load": "xdsl_relax.loading:load",
        "load_library": "vm_dialect.library:load_library",
        "nn": "relax_dialect.nn",
        "op": "relax_dialect.builder.op",
        "parse": "xdsl_relax.loading:parse",
        "patterns": "relax_dialect.patterns",
        "run_passes": "xdsl_relax.passes:run_passes",
        "show": "xdsl_relax.display:show",
        "te": "tir_dialect.te",
        "tensor": "relax_dialect.builder:tensor",
        "view": "xdsl_relax.display:view",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed


def load_ipython_extension(shell: object) -> None:
    """`%load_ext xdsl_relax` in a notebook: values are shown in colours. Importing the package there does it, too."""
    from xdsl_relax.display import register

    register(shell)


if "IPython" in sys.modules:
    from xdsl_relax.display import register as _register

    _register()

"""The ONNX importer: `import_model` makes a module of relax functions from an ONNX model.

The package `onnx` has to be installed (`pip install onnx`); it is loaded by the first import of a model.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from relax_dialect.frontend.onnx.values import OnnxImportError, UnsupportedNode
from tir_dialect.garbage import few_collections, importing

if TYPE_CHECKING:
    from onnx import ModelProto
    from xdsl.dialects.builtin import ModuleOp

    from relax_dialect.frontend.onnx.parameters import GivenShapes

__all__ = ["OnnxImportError", "UnsupportedNode", "import_model"]


def import_model(
    model: str | PathLike[str] | bytes | ModelProto,
    *,
    dynamic: bool = False,
    shapes: GivenShapes = (),
    seed: str | None = None,
    entry: str = "main",
) -> ModuleOp:
    """A module whose function `entry` computes the graph of an ONNX model.

    `model` is a file, the bytes of one, or the parsed model. Its inputs that have no initializer are the parameters,
    in order; several outputs are a tuple. Names of dimensions (`dim_param`) are symbols; with `dynamic`, every
    dimension of an input is a symbol, as far as the graph leaves it open. Initializers are constants; those in other
    files are memory-mapped and have to lie in the folder of the model.

    `shapes` says more of the inputs, by name or in their order: `{"x": ["batch", None, 224, 224]}`, with numbers, names
    of symbols, and `None` for what the model says. It is needed for inputs whose rank neither the model nor the
    operators say that use them.

    Random numbers are the same with every call, unless `seed` names a parameter for theirs, a scalar `i64` behind the
    others: then they are a function of it, but for those of nodes that say a seed of their own.

    Raises `OnnxImportError` for a model that is malformed, or that has nodes which are not supported: all of them, by
    name.
    """
    with importing():
        from relax_dialect.frontend.onnx.importer import Importer
        from relax_dialect.frontend.onnx.model import load_model

    with few_collections():  # converters are imported when they are needed
        return Importer(load_model(model), dynamic=dynamic, shapes=shapes, seed=seed).module(entry)

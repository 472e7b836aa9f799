"""The ops that each pass is about: a pipeline neither loads nor runs a pass for a module without any of them.

Importing the passes for convolutions, recurrent layers or attention, and searching a module for them, takes longer than
compiling many a module that has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from relax_dialect.ops.operator import Operator
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import PrimType, ShapeType

CONCERNS: Mapping[str, str] = {
    "adjust-matmul-order": "relax.matmul",
    "channels-last": "relax.nn.conv1d relax.nn.conv2d relax.nn.conv3d",
    "copy-constants": "relax.constant",
    "convert-layout": "relax.nn.conv2d",
    "expand-conv-transpose": "relax.nn.conv1d_transpose relax.nn.conv2d_transpose relax.nn.conv3d_transpose",
    "lines-as-pictures": "relax.nn.conv1d",
    "expand-recurrent-layers": "relax.nn.rnn relax.nn.gru relax.nn.lstm relax.nn.recurrence",
    "fold-batch-norm": "relax.nn.batch_norm relax.matmul relax.nn.conv1d relax.nn.conv2d relax.nn.conv3d",
    "fold-constants": "relax.guard",
    "fold-shape-computations": "relax.arange relax.broadcast_to relax.concat relax.dynamic_strided_slice "
    "relax.expand_dims relax.flatten relax.flip relax.full relax.full_like relax.gather_elements relax.gather_nd "
    "relax.guard relax.match_cast relax.max relax.min relax.ones relax.ones_like relax.permute_dims relax.prod "
    "relax.repeat relax.reshape relax.shape_get relax.shape_of relax.shape_to_tensor relax.size relax.split "
    "relax.squeeze relax.stack relax.strided_slice relax.sum relax.take relax.tensor_to_shape relax.tile "
    "relax.tuple_get relax.zeros relax.zeros_like",
    "hoist-branch-results": "relax.if",
    "pack-weights": "relax.constant",
    "remove-kills": "relax.kill",
    "rewrite-attention": "relax.nn.softmax relax.nn.attention relax.nn.attention_bias",
    "rewrite-normalization": "relax.mean relax.exp",
    "volumes-in-blocks": "relax.nn.conv3d",
    "simplify-permute-dims": "relax.permute_dims",
    "simplify-reshapes": "relax.reshape relax.flatten relax.expand_dims relax.squeeze",
}
"""By the name of the pass: it changes nothing in a module without any of these ops. Other passes are always run."""

FOLDS = frozenset(("fold-constants", "fold-shape-computations"))
"""Passes that are about any other operator too, if its operands are known."""


class Concerns:
    """Which passes have something to do in a module."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._names: frozenset[str] | None = None

    def has_any_for(self, name: str) -> bool:
        """Whether the module has an op that the pass is about."""
        if name not in CONCERNS:
            return True
        if self._names is None:
            self._names = frozenset(op.name for op in self._module.walk())
        has_any = not self._names.isdisjoint(CONCERNS[name].split())
        return has_any or (name in FOLDS and any(map(_computes_what_is_known, self._module.walk())))

    def forget(self) -> None:
        """The module has changed."""
        self._names = None


def _computes_what_is_known(op: Operation) -> bool:
    return isinstance(op, Operator) and all(map(_is_known, op.operands))


def _is_known(value: SSAValue) -> bool:
    """Whether a value is a constant, or its type may say what it is."""
    return isinstance(value.owner, ConstantOp) or isinstance(value.type, ShapeType | PrimType)

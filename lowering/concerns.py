"""What passes are about: a pipeline leaves one out, and does not load it, where a module has none of these ops.

Importing what rewrites convolutions, recurrent layers or attention, and looking through a module for them, takes longer
than many a module takes to compile that has nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

CONCERNS: Mapping[str, str] = {
    "adjust-matmul-order": "relax.matmul",
    "channels-last": "relax.nn.conv1d relax.nn.conv2d relax.nn.conv3d",
    "convert-layout": "relax.nn.conv2d",
    "expand-conv-transpose": "relax.nn.conv1d_transpose relax.nn.conv2d_transpose relax.nn.conv3d_transpose",
    "lines-as-pictures": "relax.nn.conv1d",
    "expand-recurrent-layers": "relax.nn.rnn relax.nn.gru relax.nn.lstm relax.nn.recurrence",
    "fold-batch-norm": "relax.nn.batch_norm relax.matmul relax.nn.conv1d relax.nn.conv2d relax.nn.conv3d",
    "hoist-branch-results": "relax.if",
    "pack-weights": "relax.constant",
    "remove-kills": "relax.kill",
    "rewrite-attention": "relax.nn.softmax relax.nn.attention relax.nn.attention_bias",
    "rewrite-normalization": "relax.mean relax.exp",
    "simplify-permute-dims": "relax.permute_dims",
    "simplify-reshapes": "relax.reshape relax.flatten relax.expand_dims relax.squeeze",
}
"""By the name of the pass: it changes nothing in a module without any of these ops. Other passes are always run."""


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
        return not self._names.isdisjoint(CONCERNS[name].split())

    def forget(self) -> None:
        """The module has changed."""
        self._names = None

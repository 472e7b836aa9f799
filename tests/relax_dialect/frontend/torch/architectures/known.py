"""The architectures that are not right, and why; `docs/reference/torch-architectures.md` lists them, too."""

from __future__ import annotations

from collections.abc import Mapping

_DATA = "`torch.export` stops at a branch on data of the model's code"
_MULTIPLES = "the model pads where its blocks do not divide the length, so that the program is of such lengths only"
NOT_RIGHT: Mapping[str, str] = {
    "transformers/autoformer": "`torch.export` computes another size for a view than PyTorch",
    "transformers/encodec": _DATA,
    "transformers/informer": "`torch.export` fails in the model's own check of the mask",
    "transformers/led": _DATA,
    "transformers/llava": "`torch.export` fixes the batch",
    "transformers/longformer": _DATA,
    "transformers/longt5": _MULTIPLES,
    "transformers/mimi": _DATA,
    "transformers/mra": "the model squeezes the batch, so that the program is of batches of 2 and more",
    "transformers/nllb-moe": "`torch.export` fails where the model changes the dtype of its weights",
    "transformers/nystromformer": "`torch.export` fails in the model's code",
    "transformers/pegasus_x": _MULTIPLES,
    "transformers/reformer": _DATA,
    "transformers/rt_detr": "`torch.export` fixes the batch",
    "transformers/switch_transformers": "`torch.export` fails where the model changes the dtype of its weights",
    "transformers/vilt": _DATA,
}
"""By name, the reason; PyTorch's own in all cases."""

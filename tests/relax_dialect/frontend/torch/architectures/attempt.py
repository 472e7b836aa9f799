"""Tries one architecture: export, import, build, and a comparison with PyTorch at several sizes."""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec

import torch

from lowering import build
from relax_dialect.frontend.torch import from_exported_program
from tests.relax_dialect.frontend.torch.architectures.model import Architecture, Tensors
from vm_dialect import VirtualMachine


def architectures() -> dict[str, Architecture]:
    """The architectures of the packages that are installed, by name."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    from tests.relax_dialect.frontend.torch.architectures import by_hand

    found = by_hand.architectures()
    if find_spec("timm") and find_spec("torchvision"):
        from tests.relax_dialect.frontend.torch.architectures import of_images

        found += of_images.of_timm() + of_images.of_torchvision()
    if find_spec("diffusers"):
        from tests.relax_dialect.frontend.torch.architectures import of_diffusers

        found += of_diffusers.architectures()
    if find_spec("transformers"):
        from tests.relax_dialect.frontend.torch.architectures import of_many_inputs, of_transformers

        found += of_transformers.architectures() + of_many_inputs.architectures()
    return {each.name: each for each in found}


def names() -> list[str]:
    """The names of all of them."""
    return list(architectures())


def find(name: str) -> Architecture:
    """An architecture by name."""
    return architectures()[name]


def attempt(architecture: Architecture) -> str:
    """`right`, or what went wrong, and at which step."""
    step = "making the model"
    try:
        torch.manual_seed(1)
        model = architecture.make().eval()
        model = model if isinstance(model, Tensors) else Tensors(model)
        inputs = [architecture.inputs(*size) for size in architecture.sizes]
        step = "eager"
        with torch.no_grad():
            expected = [torch.utils._pytree.tree_leaves(model(*each)) for each in inputs]
            step = "torch.export"
            program = torch.export.export(model, tuple(inputs[0]), dynamic_shapes=(architecture.dynamic,))
        step = "import"
        module = from_exported_program(program, seed=0)
        step = "build"
        main = VirtualMachine(build(module))["main"]
        for size, given, wanted in zip(architecture.sizes, inputs, expected, strict=True):
            step = f"size {size}"
            found = main(*given)
            results = [found] if len(wanted) == 1 else list(found)
            for at, (one, other) in enumerate(zip(results, wanted, strict=True)):
                torch.testing.assert_close(
                    torch.from_dlpack(one),
                    other.contiguous(),
                    rtol=1e-3,
                    atol=1e-4,
                    msg=lambda text, at=at: f"output {at}: {text}",
                )
    except Exception as error:
        return f"{step}: {type(error).__name__}: {' '.join(str(error).split())[:600]}"
    return "right"

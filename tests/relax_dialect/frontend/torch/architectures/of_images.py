"""Architectures of timm and torchvision."""

from __future__ import annotations

from typing import Any

import timm
import torch
import torchvision
from torch.export import Dim

from tests.relax_dialect.frontend.torch.architectures.model import Architecture

TIMM = """
    test_byobnet test_convnext test_convnext2 test_convnext3 test_efficientnet test_efficientnet_evos
    test_efficientnet_gn test_efficientnet_ln test_mambaout test_nfnet test_resnet test_vit test_vit2 test_vit3
    test_vit4
"""
"""The small models that timm is tested with, one for each family."""

SMALL_TIMM = """
    edgenext_xx_small ghostnet_050 lcnet_035 mixer_s32_224 mobilevit_xxs repghostnet_050 tinynet_e xcit_nano_12_p16_224
"""
"""Small ones of other families."""

CLASSIFIERS = [
    "alexnet",
    "densenet121",
    "efficientnet_b0",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
]
SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]


def _from_timm(name: str, size: int) -> Architecture:
    return Architecture(
        f"timm/{name}",
        lambda: timm.create_model(name, pretrained=False, num_classes=7),
        lambda batch: [torch.randn(batch, 3, size, size)],
        ({0: Dim.AUTO},),
        ((2,), (1,), (3,)),
    )


def _from_torchvision(name: str, **options: Any) -> Architecture:
    return Architecture(
        f"torchvision/{name}",
        lambda: torchvision.models.get_model(name, weights=None, **options),
        lambda batch: [torch.randn(batch, 3, 64, 64)],
        ({0: Dim.AUTO},),
        ((2,), (1,), (3,)),
    )


def _segmentation(name: str) -> Architecture:
    return Architecture(
        f"torchvision/{name}",
        lambda: torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=3),
        lambda batch: [torch.randn(batch, 3, 64, 64)],
        ({0: Dim.AUTO},),
        ((2,), (1,), (3,)),
    )


def of_timm() -> list[Architecture]:
    """Those of timm."""
    return [_from_timm(name, 160 if name == "test_vit3" else 64) for name in TIMM.split()] + [
        _from_timm(name, 224) for name in SMALL_TIMM.split()
    ]


def of_torchvision() -> list[Architecture]:
    """Those of torchvision."""
    return [_from_torchvision(name) for name in CLASSIFIERS] + [_segmentation(name) for name in SEGMENTATION]

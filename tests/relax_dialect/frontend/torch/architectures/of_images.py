"""Architectures of timm and torchvision."""

from __future__ import annotations

from collections.abc import Mapping

import timm
import torch
import torchvision
from torch.export import Dim

from tests.relax_dialect.frontend.torch.architectures.model import Architecture

TIMM: Mapping[int, str] = {
    64: """
        convmixer_768_32 dla46_c dpn48b efficientvit_b0 ese_vovnet19b_slim_dw fastvit_t8 ghostnetv3_050
        hgnetv2_b0 hrnet_w18_small mobilenetv4_conv_small mobileone_s0 res2net50_14w_8s resnest14d rexnet_100
        selecsls42 skresnet18 starnet_s050 test_byobnet test_convnext test_convnext2 test_convnext3
        test_efficientnet test_efficientnet_evos test_efficientnet_gn test_efficientnet_ln test_mambaout
        test_nfnet test_resnet test_vit test_vit2 test_vit4
    """,
    160: "test_vit3",
    224: """
        cait_xxs24_224 coat_lite_tiny convit_tiny davit_tiny edgenext_xx_small efficientformer_l1
        efficientvit_m0 eva02_tiny_patch14_224 focalnet_tiny_srf gcvit_xxtiny ghostnet_050 gmlp_ti16_224
        hiera_tiny_224 lcnet_035 levit_128s mixer_s32_224 mobilevit_xxs mvitv2_tiny nest_tiny pit_ti_224
        repghostnet_050 repvit_m0_9 resmlp_12_224 sequencer2d_s shvit_s1 swinv2_cr_tiny_224 tinynet_e
        tnt_s_patch16_224 twins_svt_small visformer_tiny volo_d1_224 xcit_nano_12_p16_224
    """,
    240: "crossvit_9_240",
    256: "botnet26t_256 halonet26t lambda_resnet26t",
    512: "csatv2",
}
"""By the size of their images: the models that timm is tested with, one for each family, and small ones of others."""

CLASSIFIERS: Mapping[str, int] = dict.fromkeys(
    [
        "alexnet",
        "convnext_tiny",
        "densenet121",
        "efficientnet_b0",
        "googlenet",
        "mnasnet0_5",
        "mobilenet_v2",
        "mobilenet_v3_small",
        "regnet_y_400mf",
        "resnet18",
        "shufflenet_v2_x0_5",
        "squeezenet1_1",
    ],
    64,
) | {"swin_t": 224}
"""Those of torchvision, and the size of their images."""

SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]


def _from_timm(name: str, size: int) -> Architecture:
    return Architecture(
        f"timm/{name}",
        lambda: timm.create_model(name, pretrained=False, num_classes=7),
        lambda batch: [torch.randn(batch, 3, size, size)],
        ({0: Dim.AUTO},),
        ((2,), (1,), (3,)),
    )


def _from_torchvision(name: str, size: int) -> Architecture:
    return Architecture(
        f"torchvision/{name}",
        lambda: torchvision.models.get_model(name, weights=None),
        lambda batch: [torch.randn(batch, 3, size, size)],
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
    return [_from_timm(name, size) for size, names in TIMM.items() for name in names.split()]


def of_torchvision() -> list[Architecture]:
    """Those of torchvision."""
    return [_from_torchvision(*each) for each in CLASSIFIERS.items()] + [_segmentation(name) for name in SEGMENTATION]

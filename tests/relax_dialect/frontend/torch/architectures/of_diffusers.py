"""Architectures of diffusers, in which a step of denoising, or a code of an image, is computed."""

from __future__ import annotations

import diffusers
import torch
from torch.export import Dim

from tests.relax_dialect.frontend.torch.architectures.model import Architecture, Tensors

AUTO = Dim.AUTO
BATCHES = ((2,), (1,), (3,))
UNET = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8, "sample_size": 16}


def _unet() -> torch.nn.Module:
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    return Tensors(diffusers.UNet2DModel(**UNET, **blocks), ["sample", "timestep"], ["sample"])


def _conditional() -> torch.nn.Module:
    blocks = {
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    }
    model = diffusers.UNet2DConditionModel(**UNET, **blocks, cross_attention_dim=32, attention_head_dim=4)
    return Tensors(model, ["sample", "timestep", "encoder_hidden_states"], ["sample"])


def _autoencoder() -> torch.nn.Module:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    model = diffusers.AutoencoderKL(block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, **blocks)
    return Tensors(model, ["sample"], ["sample"])


def _tiny() -> torch.nn.Module:
    channels = {"encoder_block_out_channels": (16, 16), "decoder_block_out_channels": (16, 16)}
    counts = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}
    return Tensors(diffusers.AutoencoderTiny(**channels, **counts), ["sample"], ["sample"])


def _vq() -> torch.nn.Module:
    model = diffusers.VQModel(block_out_channels=(16,), norm_num_groups=8, num_vq_embeddings=32, latent_channels=3)
    return Tensors(model, ["sample"], ["sample"])


def _dit() -> torch.nn.Module:
    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=8, norm_num_groups=4
    )
    return Tensors(model, ["hidden_states", "timestep", "class_labels"], ["sample"])


def _sd3() -> torch.nn.Module:
    model = diffusers.SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=32,
        caption_projection_dim=16,
        pooled_projection_dim=24,
        out_channels=4,
        pos_embed_max_size=8,
    )
    return Tensors(model, ["hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"], ["sample"])


def _flux() -> torch.nn.Module:
    model = diffusers.FluxTransformer2DModel(
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=24,
        axes_dims_rope=(4, 4, 8),
    )
    names = ["hidden_states", "encoder_hidden_states", "pooled_projections", "timestep", "img_ids", "txt_ids"]
    return Tensors(model, names, ["sample"])


def _pixart() -> torch.nn.Module:
    model = diffusers.PixArtTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        cross_attention_dim=16,
        sample_size=8,
        norm_num_groups=4,
        caption_channels=16,
        use_additional_conditions=False,
    )
    return Tensors(model, ["hidden_states", "encoder_hidden_states", "timestep"], ["sample"])


def _steps(batch: int) -> torch.Tensor:
    return torch.randint(0, 100, (batch,))


def architectures() -> list[Architecture]:
    """All of them."""
    rows = {0: AUTO}
    image = lambda b: torch.randn(b, 4, 8, 8)  # noqa: E731
    made = [
        ("unet", _unet, lambda b: [torch.randn(b, 3, 16, 16), _steps(b)], (rows, rows)),
        (
            "unet-conditional",
            _conditional,
            lambda b: [torch.randn(b, 4, 16, 16), _steps(b), torch.randn(b, 7, 32)],
            (rows, rows, rows),
        ),
        ("autoencoder-kl", _autoencoder, lambda b: [torch.randn(b, 3, 32, 32)], (rows,)),
        ("autoencoder-tiny", _tiny, lambda b: [torch.randn(b, 3, 32, 32)], (rows,)),
        ("vq", _vq, lambda b: [torch.randn(b, 3, 16, 16)], (rows,)),
        ("dit", _dit, lambda b: [image(b), _steps(b), torch.randint(0, 9, (b,))], (rows, rows, rows)),
        (
            "sd3",
            _sd3,
            lambda b: [image(b), torch.randn(b, 5, 32), torch.randn(b, 24), _steps(b)],
            (rows, rows, rows, rows),
        ),
        (
            "flux",
            _flux,
            lambda b: [
                torch.randn(b, 16, 4),
                torch.randn(b, 5, 32),
                torch.randn(b, 24),
                torch.rand(b),
                torch.randint(0, 4, (16, 3)).float(),
                torch.zeros(5, 3),
            ],
            (rows, rows, rows, rows, {}, {}),
        ),
        ("pixart", _pixart, lambda b: [image(b), torch.randn(b, 5, 16), _steps(b)], (rows, rows, rows)),
    ]
    return [Architecture(f"diffusers/{name}", make, inputs, dynamic, BATCHES) for name, make, inputs, dynamic in made]

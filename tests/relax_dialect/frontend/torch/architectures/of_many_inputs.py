"""Architectures of transformers with other inputs than tokens, an image or a wave: several at once, series, films."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import transformers
from torch.export import Dim

from tests.relax_dialect.frontend.torch.architectures.model import Architecture, Size, Tensors
from tests.relax_dialect.frontend.torch.architectures.of_transformers import SOUND, small_model

AUTO = Dim.AUTO
ROWS: Mapping[int, Any] = {0: AUTO}
BOTH: Mapping[int, Any] = {0: AUTO, 1: AUTO}
BATCHES: tuple[Size, ...] = ((2,), (1,), (3,))
LENGTHS: tuple[Size, ...] = ((2, 7), (1, 5), (3, 9))
MORE_LENGTHS: tuple[Size, ...] = ((2, 40), (1, 32), (3, 56))

VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
LANGUAGE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "eos_token_id": 2,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
TWO = {"text_config": LANGUAGE, "vision_config": VISION, "projection_dim": 16}


def _made(
    kind: str,
    extra: Mapping[str, Any],
    inputs: Callable[..., Mapping[str, torch.Tensor]],
    dynamic: Sequence[Mapping[int, Any]] = (),
    sizes: tuple[Size, ...] = BATCHES,
) -> Architecture:
    """An architecture whose inputs have names; of each the batch is dynamic, if nothing else is said."""
    names = list(inputs(*sizes[0]))
    return Architecture(
        f"transformers/{kind}",
        lambda: Tensors(small_model(kind, extra), names),
        lambda *size: list(inputs(*size).values()),
        tuple(dynamic) or (ROWS,) * len(names),
        sizes,
    )


def _tokens(batch: int, time: int) -> torch.Tensor:
    return torch.randint(4, 90, (batch, time))


def _images(batch: int, size: int = 32) -> torch.Tensor:
    return torch.randn(batch, 3, size, size)


def _film(batch: int) -> torch.Tensor:
    return torch.randn(batch, 4, 3, 32, 32)


def _text_and_image(batch: int, time: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": _tokens(batch, time),
        "attention_mask": torch.ones(batch, time, dtype=torch.long),
        "pixel_values": _images(batch),
    }


def _of_text_and_image() -> list[Architecture]:
    group = {"num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 0], "depths": [1, 1, 1]}
    groups = {**TWO, "vision_config": {**VISION, **group}, "projection_intermediate_dim": 16}
    dynamic = (BOTH, BOTH, ROWS)
    two = [
        _made(kind, TWO, _text_and_image, dynamic, LENGTHS)
        for kind in ("clip", "siglip", "chinese_clip", "metaclip_2", "altclip", "blip", "owlvit")
    ]
    llava = {
        "text_config": {"model_type": "llama", **LANGUAGE, "num_key_value_heads": 2},
        "vision_config": {"model_type": "clip_vision_model", **VISION},
        "image_token_index": 50,
        "image_token_id": 50,
        "vision_feature_layer": -1,
    }
    vilt = {"image_size": 32, "patch_size": 8, "max_image_length": -1}
    layout = {"input_size": 32, "patch_size": 8, "coordinate_size": 5, "shape_size": 6, "visual_embed": True}
    lxmert = {"visual_feat_dim": 16, "l_layers": 1, "x_layers": 1, "r_layers": 1}
    return [
        *two,
        _made("groupvit", groups, _text_and_image, dynamic, LENGTHS),
        _made("vilt", vilt, _text_and_image, dynamic, LENGTHS),
        _made(
            "llava",
            llava,
            lambda b: {"input_ids": torch.tensor([[1] + [50] * 16 + [5, 6, 7]] * b), "pixel_values": _images(b)},
        ),
        _made(
            "layoutlmv3",
            layout,
            lambda b, t: {
                "input_ids": _tokens(b, t),
                "bbox": torch.randint(0, 50, (b, t, 4)),
                "pixel_values": _images(b),
            },
            dynamic,
            LENGTHS,
        ),
        _made(
            "lxmert",
            lxmert,
            lambda b, t: {
                "input_ids": _tokens(b, t),
                "visual_feats": torch.randn(b, 4, 16),
                "visual_pos": torch.rand(b, 4, 4),
            },
            dynamic,
            LENGTHS,
        ),
        _made(
            "visual_bert",
            {"visual_embedding_dim": 16},
            lambda b, t: {
                "input_ids": _tokens(b, t),
                "visual_embeds": torch.randn(b, 4, 16),
                "visual_attention_mask": torch.ones(b, 4),
                "visual_token_type_ids": torch.ones(b, 4, dtype=torch.long),
            },
            (BOTH, ROWS, ROWS, ROWS),
            LENGTHS,
        ),
    ]


def _series(batch: int) -> dict[str, torch.Tensor]:
    return {
        "past_values": torch.randn(batch, 19),
        "past_time_features": torch.randn(batch, 19, 2),
        "past_observed_mask": torch.ones(batch, 19),
        "future_time_features": torch.randn(batch, 4, 2),
        "future_values": torch.randn(batch, 4),
    }


def _of_series() -> list[Architecture]:
    layers = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    series = {"prediction_length": 4, "context_length": 12, "num_time_features": 2, "lags_sequence": list(range(1, 8))}
    patches = {"num_input_channels": 3, "context_length": 16, "patch_length": 4, "patch_stride": 4, "d_model": 16}
    decisions = {"state_dim": 4, "act_dim": 3, "max_ep_len": 32}
    past = lambda b: {"past_values": torch.randn(b, 16, 3)}  # noqa: E731
    return [
        _made("time_series_transformer", {**series, **layers}, _series),
        _made("informer", {**series, **layers}, _series),
        _made("autoformer", {**series, **layers, "label_length": 4}, _series),
        _made("patchtst", {**patches, "ffn_dim": 16}, past),
        _made("patchtsmixer", patches, past),
        _made(
            "decision_transformer",
            decisions,
            lambda b, t: {
                "states": torch.randn(b, t, 4),
                "actions": torch.randn(b, t, 3),
                "rewards": torch.randn(b, t, 1),
                "returns_to_go": torch.randn(b, t, 1),
                "timesteps": torch.arange(t).expand(b, t).contiguous(),
                "attention_mask": torch.ones(b, t),
            },
            (BOTH,) * 6,
            LENGTHS,
        ),
    ]


VITS = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": 16,
    "flow_size": 16,
    "spectrogram_bins": 9,
    "upsample_initial_channel": 16,
    "upsample_rates": [2, 2],
    "upsample_kernel_sizes": [4, 4],
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 1]],
    "prior_encoder_num_flows": 1,
    "prior_encoder_num_wavenet_layers": 1,
    "posterior_encoder_num_wavenet_layers": 1,
    "duration_predictor_num_flows": 2,
    "depth_separable_num_layers": 1,
    "use_stochastic_duration_prediction": False,
    "noise_scale": 0.0,
}
CODEC = {"num_filters": 4, "hidden_size": 16, "upsampling_ratios": [4, 2], "codebook_size": 16, "sampling_rate": 800}


def _of_sound() -> list[Architecture]:
    wave = lambda b, t: {"input_values": torch.randn(b, 1, t * 8)}  # noqa: E731
    waves = ({0: AUTO, 2: AUTO},)
    mimi = {
        **CODEC,
        "codebook_dim": 8,
        "vector_quantization_hidden_dimension": 8,
        "num_residual_layers": 1,
        "frame_rate": 50,
        "num_quantizers": 2,
        "num_semantic_quantizers": 1,
        "upsample_groups": 16,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
    }
    dac = {
        "encoder_hidden_size": 8,
        "downsampling_ratios": [2, 4],
        "decoder_hidden_size": 16,
        "upsampling_ratios": [4, 2],
        "n_codebooks": 2,
        "codebook_size": 16,
        "codebook_dim": 4,
        "hop_length": 8,
    }
    univnet = {
        "model_in_channels": 8,
        "model_hidden_channels": 8,
        "num_mel_bins": 16,
        "resblock_kernel_sizes": [3],
        "resblock_stride_sizes": [4],
        "resblock_dilation_sizes": [[1, 3]],
        "kernel_predictor_num_blocks": 1,
        "kernel_predictor_hidden_channels": 8,
    }
    spectra = {"num_mel_bins": 16, "max_length": 24, "patch_size": 8, "frequency_stride": 8, "time_stride": 8}
    bert = {
        "output_hidden_size": 32,
        "feature_projection_input_dim": 160,
        "left_max_position_embeddings": 8,
        "right_max_position_embeddings": 4,
    }
    heads = {f"{side}_num_{what}": 4 for side in ("encoder", "decoder") for what in ("attention_heads",)}
    moonshine = {
        **heads,
        "encoder_num_key_value_heads": 4,
        "decoder_num_key_value_heads": 4,
        "encoder_num_hidden_layers": 1,
        "decoder_num_hidden_layers": 1,
    }
    features = lambda bins: lambda b, t: {"input_features": torch.randn(b, t, bins)}  # noqa: E731
    return [
        _made("vits", VITS, lambda b, t: {"input_ids": _tokens(b, t)}, (BOTH,), LENGTHS),
        _made("encodec", {**CODEC, "target_bandwidths": [1.5], "num_lstm_layers": 1}, wave, waves, MORE_LENGTHS),
        _made("mimi", mimi, wave, waves, MORE_LENGTHS),
        _made("dac", dac, wave, waves, MORE_LENGTHS),
        _made(
            "univnet",
            univnet,
            lambda b, t: {"input_features": torch.randn(b, t, 16), "noise_sequence": torch.randn(b, t, 8)},
            (BOTH, BOTH),
            MORE_LENGTHS,
        ),
        _made("audio-spectrogram-transformer", spectra, lambda b: {"input_values": torch.randn(b, 24, 16)}),
        _made(
            "speech_to_text",
            {"input_feat_per_channel": 8, "conv_channels": 16, "max_source_positions": 64},
            lambda b, t: {"input_features": torch.randn(b, t, 8), "decoder_input_ids": _tokens(b, 5)},
            (BOTH, ROWS),
            MORE_LENGTHS,
        ),
        _made(
            "wav2vec2-conformer",
            SOUND,
            lambda b, t: {"input_values": torch.randn(b, t * 10)},
            (BOTH,),
            MORE_LENGTHS,
        ),
        _made("wav2vec2-bert", bert, features(160), (BOTH,), MORE_LENGTHS),
        _made(
            "parakeet_encoder",
            {"num_mel_bins": 80, "subsampling_conv_channels": 8},
            features(80),
            (BOTH,),
            MORE_LENGTHS,
        ),
        _made(
            "moonshine",
            moonshine,
            lambda b, t: {"input_values": torch.randn(b, t * 50), "decoder_input_ids": _tokens(b, 5)},
            (BOTH, ROWS),
            MORE_LENGTHS,
        ),
        _made(
            "sew-d",
            {**SOUND, "squeeze_factor": 2, "position_buckets": 16},
            lambda b, t: {"input_values": torch.randn(b, t * 10)},
            (BOTH,),
            MORE_LENGTHS,
        ),
    ]


def _of_images() -> list[Architecture]:
    small = {"image_size": 32, "patch_size": 8}
    dpt = {"backbone_out_indices": [0, 1, 1, 1], "neck_hidden_sizes": [16] * 4, "fusion_hidden_size": 16}
    windows = {
        "window_size": 2,
        "window_block_indices": [0],
        "residual_block_indices": [1],
        "use_relative_position_embeddings": True,
    }
    stages = {"hidden_sizes": [8, 16, 16, 32], "depths": [1] * 4, "num_attention_heads": [1, 2, 2, 4]}
    predictor = {"pred_hidden_size": 16, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1}
    no_backbone = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
    resnet = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage1", "stage2"]
    )
    real_time = transformers.models.rt_detr.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 32, 32],
        depths=[1] * 4,
        out_features=["stage2", "stage3", "stage4"],
        layer_type="basic",
    )
    rt_detr = {
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [16, 32, 32],
        "encoder_ffn_dim": 16,
        "encoder_attention_heads": 2,
        "decoder_in_channels": [16] * 3,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "decoder_n_points": 2,
        "decoder_ffn_dim": 16,
        "num_queries": 5,
        "anchor_image_size": None,
        "eval_size": None,
    }
    deformable = {"num_queries": 5, "num_feature_levels": 2, "disable_custom_kernels": True}
    image, film = lambda b: {"pixel_values": _images(b)}, lambda b: {"pixel_values": _film(b)}
    large = lambda b: {"pixel_values": _images(b, 64)}  # noqa: E731
    return [
        _made("dpt", {**small, **dpt}, image),
        _made(
            "vit_mae",
            {**small, "decoder_hidden_size": 32, "decoder_num_hidden_layers": 1},
            lambda b: {"pixel_values": _images(b), "noise": torch.rand(b, 16)},
        ),
        _made("vitdet", {**small, **windows}, image),
        _made("glpn", {**stages, "decoder_hidden_size": 16}, image),
        _made("dinov2_with_registers", small, image),
        _made("mgp-str", {"image_size": [32, 32], "patch_size": 8, "max_token_length": 5}, image),
        _made(
            "vjepa2",
            {"crop_size": 32, "patch_size": 8, "frames_per_clip": 4, **predictor},
            lambda b: {"pixel_values_videos": _film(b)},
        ),
        _made("videomae", {**small, "num_frames": 4}, film),
        _made("timesformer", {**small, "num_frames": 4}, film),
        _made("vivit", {"image_size": 32, "num_frames": 4, "tubelet_size": [2, 8, 8]}, film),
        _made("deformable_detr", {"backbone_config": resnet, **no_backbone, **deformable}, large),
        _made("rt_detr", {"backbone_config": real_time, **no_backbone, **rt_detr}, large),
    ]


def architectures() -> list[Architecture]:
    """All of them."""
    return [*_of_text_and_image(), *_of_series(), *_of_sound(), *_of_images()]

"""Architectures of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch.export import Dim

from tests.relax_dialect.frontend.torch.architectures.model import Architecture, Tensors

SMALL: Mapping[str, Any] = {
    "hidden_size": 32,
    "d_model": 32,
    "n_embd": 32,
    "dim": 32,
    "emb_dim": 32,
    "embedding_size": 16,
    "num_hidden_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "num_encoder_attention_heads": 4,
    "num_decoder_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "d_kv": 8,
    "d_ff": 64,
    "ffn_dim": 64,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 99,
    "max_position_embeddings": 128,
    "n_positions": 128,
    "max_source_positions": 128,
    "max_target_positions": 128,
    "num_local_experts": 4,
    "num_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
"""What is small in every configuration that has it."""

LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "qk_nope_head_dim": 4,
    "n_group": 2,
    "topk_group": 1,
    "num_key_value_heads": 4,
}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8}
TEXT: Mapping[str, Mapping[str, Any]] = {
    "albert": {},
    "bert": {},
    "big_bird": {"attention_type": "original_full"},
    "biogpt": {},
    "bloom": {},
    "camembert": {},
    "codegen": {"rotary_dim": 4},
    "cohere": {},
    "cohere2": {},
    "convbert": {"head_ratio": 2},
    "ctrl": {"dff": 64},
    "data2vec-text": {},
    "deberta": {"pos_att_type": ["c2p", "p2c"], "relative_attention": True},
    "deberta-v2": {"pos_att_type": ["c2p", "p2c"], "relative_attention": True},
    "distilbert": {"hidden_dim": 64},
    "electra": {},
    "ernie": {},
    "esm": {"mask_token_id": 3},
    "falcon": {},
    "falcon_mamba": {},
    "fnet": {},
    "gemma": {},
    "gemma2": {"query_pre_attn_scalar": 8},
    "gemma3_text": {"query_pre_attn_scalar": 8},
    "glm": {},
    "glm4": {},
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gpt_neox": {},
    "gpt_neox_japanese": {},
    "gpt_oss": {},
    "gptj": {"rotary_dim": 4},
    "granite": {},
    "granitemoe": {},
    "helium": {},
    "ibert": {},
    "layoutlm": {},
    "llama": {},
    "mamba": {"state_size": 4},
    "mamba2": {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8},
    "megatron-bert": {},
    "ministral": {},
    "mistral": {},
    "mixtral": {},
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32, "embedding_size": 32},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    "mpnet": {},
    "mpt": {},
    "nemotron": {},
    "nystromformer": {"num_landmarks": 4, "segment_means_seq_len": 128},
    "olmo": {},
    "olmo2": {},
    "olmoe": {},
    "openai-gpt": {},
    "opt": {"word_embed_proj_dim": 32},
    "persimmon": {},
    "phi": {},
    "phi3": {},
    "phimoe": {},
    "qwen2": {},
    "qwen2_moe": {},
    "qwen3": {},
    "qwen3_moe": {},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 32},
    "roberta": {},
    "roformer": {},
    "smollm3": {},
    "splinter": {},
    "squeezebert": {"embedding_size": 32, "q_groups": 2, "k_groups": 2, "v_groups": 2},
    "stablelm": {},
    "starcoder2": {},
    "xglm": {"attention_heads": 4},
    "xlm": {},
    "xlm-roberta": {},
    "xlnet": {"d_inner": 64, "d_head": 8},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "yoso": {"use_expectation": True},
    "zamba2": {
        "mamba_d_state": 8,
        "n_mamba_heads": 8,
        "chunk_size": 8,
        "layers_block_type": ["linear_attention", "hybrid"],
    },
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "canine": {},
    "deepseek_v2": LATENT,
    "deepseek_v3": {**LATENT, "first_k_dense_replace": 1, "head_dim": 4},
    "diffllama": {},
    "ernie4_5_moe": {},
    "flaubert": {},
    "glm4_moe": {"first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    "granitemoehybrid": {**MAMBA, "layer_types": ["mamba", "attention"]},
    "imagegpt": {},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4, "use_mamba_kernels": False},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "llama4_text": {"intermediate_size_mlp": 64},
    "longformer": {"attention_window": 4},
    "luke": {"entity_vocab_size": 50},
    "minimax": {},
    "modernbert-decoder": {"global_attn_every_n_layers": 2, "local_attention": 8},
    "mra": {},
    "qwen3_next": {
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "layer_types": ["linear_attention", "full_attention"],
    },
    "recurrent_gemma": {"lru_width": 32},
    "reformer": {
        "axial_pos_shape": (8, 16),
        "axial_pos_embds_dim": (16, 16),
        "attn_layers": ["local", "lsh"],
        "local_attn_chunk_length": 4,
        "lsh_attn_chunk_length": 4,
        "num_buckets": 4,
        "attention_head_size": 8,
        "feed_forward_size": 64,
    },
    "rwkv": {"attention_hidden_size": 32},
    "tapas": {},
    "xlstm": {},
}
"""Models of tokens, with what else their configuration needs to be small."""

BOTH: Mapping[str, Mapping[str, Any]] = {
    "bart": {},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "blenderbot": {},
    "blenderbot-small": {},
    "m2m_100": {},
    "marian": {"decoder_start_token_id": 0},
    "mbart": {},
    "mt5": {},
    "mvp": {},
    "pegasus": {},
    "plbart": {},
    "prophetnet": {"num_encoder_layers": 2},
    "switch_transformers": {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    "t5": {},
    "umt5": {},
    "led": {"attention_window": 4},
    "longt5": {"local_radius": 3},
    "nllb-moe": {"num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2, "expert_capacity": 4},
    "pegasus_x": {"block_size": 4, "num_global_tokens": 2},
}
"""Models with an encoder and a decoder."""

STAGES = {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}
IMAGES: Mapping[str, Mapping[str, Any]] = {
    "beit": {"image_size": 32, "patch_size": 8},
    "bit": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "num_groups": 4},
    "convnext": {**STAGES},
    "convnextv2": {**STAGES},
    "data2vec-vision": {"image_size": 32, "patch_size": 8},
    "deit": {"image_size": 32, "patch_size": 8},
    "dinov2": {"image_size": 32, "patch_size": 8},
    "dinov3_vit": {"image_size": 32, "patch_size": 8},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320},
    "focalnet": {
        "image_size": 32,
        "embed_dim": 16,
        "depths": [1, 1],
        "hidden_sizes": [16, 32],
        "focal_levels": [2, 2],
        "focal_windows": [3, 3],
    },
    "hiera": {
        "embed_dim": 16,
        "depths": [1, 1],
        "num_heads": [1, 2],
        "image_size": [32, 32],
        "patch_stride": [4, 4],
        "mask_unit_size": [4, 4],
        "num_query_pool": 1,
        "query_stride": [2, 2],
        "patch_size": [7, 7],
        "patch_padding": [3, 3],
    },
    "ijepa": {"image_size": 32, "patch_size": 8},
    "levit": {"image_size": 32, "hidden_sizes": [16, 32, 48], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1]},
    "mobilenet_v1": {"depth_multiplier": 0.25},
    "mobilenet_v2": {"depth_multiplier": 0.25},
    "mobilevit": {"image_size": 32, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 32]},
    "mobilevitv2": {"image_size": 64, "width_multiplier": 0.25},
    "poolformer": {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1]},
    "pvt": {
        "image_size": 32,
        "hidden_sizes": [8, 16, 16, 32],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
    },
    "pvt_v2": {
        "image_size": 32,
        "hidden_sizes": [8, 16, 16, 32],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
    },
    "regnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8},
    "resnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "segformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
    "swiftformer": {"image_size": 32, "depths": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32]},
    "swin": {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "swinv2": {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "swin2sr": {
        "image_size": 32,
        "patch_size": 1,
        "embed_dim": 16,
        "depths": [1, 1],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    "vit": {"image_size": 32, "patch_size": 8},
    "vit_msn": {"image_size": 32, "patch_size": 8},
    "yolos": {"image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 5},
    "siglip_vision_model": {"image_size": 32, "patch_size": 8},
    "clip_vision_model": {"image_size": 32, "patch_size": 8},
    "conditional_detr": {},
    "detr": {},
    "table-transformer": {},
}
"""Models of images."""

SOUND = {
    "feat_extract_norm": "group",
    "conv_dim": [16, 16],
    "conv_kernel": [8, 4],
    "conv_stride": [4, 2],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
WAVES: Mapping[str, Mapping[str, Any]] = {
    "wav2vec2": SOUND,
    "hubert": SOUND,
    "wavlm": SOUND,
    "unispeech": SOUND,
    "unispeech-sat": SOUND,
    "data2vec-audio": {**SOUND, "num_conv_pos_embeddings": 2},
    "sew": {**SOUND, "squeeze_factor": 2},
}
"""Models of sampled sound."""


def small_model(kind: str, extra: Mapping[str, Any], **more: Any) -> torch.nn.Module:
    """A model of random weights."""
    torch.manual_seed(0)
    settings = {"attn_implementation": "sdpa"}
    plain = transformers.AutoConfig.for_model(kind)
    small = {
        name: value
        for name, value in SMALL.items()
        if isinstance(getattr(plain, name, None), int | None)
        and hasattr(plain, name)
        and not isinstance(getattr(type(plain), name, None), property)
    }
    config = transformers.AutoConfig.for_model(kind, **(small | dict(extra) | more))
    config._attn_implementation = "sdpa"
    try:
        model = transformers.AutoModel.from_config(config, **settings)
    except ValueError:  # not every model has it
        config._attn_implementation = "eager"
        model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    for parameter in model.parameters():  # weights that begin as 0 or 1 would hide mistakes
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5, 1.0)
    return model.eval()


MASKED = {"longt5", "switch_transformers"}
"""`torch.export` traces these only where they need not make their masks."""
UNROLLED = {"falcon_mamba", "jamba", "mamba", "recurrent_gemma", "rwkv", "xlstm"}
"""PyTorch unrolls the loop over time of these, which fixes their length."""
CHUNKED = {"bamba", "granitemoehybrid", "mamba2", "zamba2"}
"""These make chunks of 8 of the time; `torch.export` takes a single one for another program."""


def _sizes(kind: str) -> tuple[tuple[int, int], ...]:
    """Batches and lengths."""
    if kind in UNROLLED:
        return (2, 7), (1, 7), (3, 7)
    if kind == "canine":  # whose local attention and shortened sequence fix the length
        return (2, 16), (1, 16), (3, 16)
    if kind == "nystromformer":  # one length, which its configuration says
        return (2, 128), (1, 128), (3, 128)
    return ((2, 20), (1, 17), (3, 33)) if kind in CHUNKED else ((2, 7), (1, 5), (3, 16))


def _text(kind: str, extra: Mapping[str, Any]) -> Architecture:
    dynamic = {0: Dim.AUTO} if kind in UNROLLED | {"canine", "nystromformer"} else {0: Dim.AUTO, 1: Dim.AUTO}
    return Architecture(
        f"transformers/{kind}",
        lambda: Tensors(small_model(kind, extra), ["input_ids", "attention_mask"], ["last_hidden_state"]),
        lambda batch, time: [torch.randint(4, 90, (batch, time)), torch.ones(batch, time, dtype=torch.long)],
        (dynamic, dynamic),
        _sizes(kind),
    )


def _both(kind: str, extra: Mapping[str, Any]) -> Architecture:
    masks = ["attention_mask", "decoder_attention_mask"] if kind in MASKED else []
    names = ["input_ids", "decoder_input_ids", *masks]

    def inputs(batch: int, time: int) -> list[torch.Tensor]:
        tokens = [torch.randint(4, 90, (batch, each)) for each in (time, time + 2)]
        return [*tokens, *(torch.ones_like(each) for each in tokens if masks)]

    return Architecture(
        f"transformers/{kind}",
        lambda: Tensors(small_model(kind, extra), names, ["last_hidden_state"], use_cache=False),
        inputs,
        ({0: Dim.AUTO, 1: Dim.AUTO},) * len(names),
        ((2, 7), (1, 5), (3, 16)),
    )


def _images(kind: str, extra: Mapping[str, Any]) -> Architecture:
    size = 64 if kind == "mobilevitv2" else 32
    detr = (
        {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
        if "detr" in kind or "table" in kind
        else {}
    )
    if detr:
        detr["backbone_config"] = transformers.ResNetConfig(
            embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
        )
        detr["num_queries"] = 5
    return Architecture(
        f"transformers/{kind}",
        lambda: Tensors(small_model(kind, extra, **detr), ["pixel_values"]),
        lambda batch: [torch.randn(batch, 3, size, size)],
        ({0: Dim.AUTO},),
        ((2,), (1,), (3,)),
    )


def _waves(kind: str, extra: Mapping[str, Any]) -> Architecture:
    return Architecture(
        f"transformers/{kind}",
        lambda: Tensors(small_model(kind, extra), ["input_values"], ["last_hidden_state"]),
        lambda batch, time: [torch.randn(batch, time)],
        ({0: Dim.AUTO, 1: Dim.AUTO},),
        ((2, 400), (1, 333), (3, 512)),
    )


def _whisper() -> torch.nn.Module:
    model = small_model("whisper", {"num_mel_bins": 8, "max_source_positions": 16, "decoder_start_token_id": 1})
    return Tensors(model, ["input_features", "decoder_input_ids"], ["last_hidden_state"], use_cache=False)


def _sam() -> torch.nn.Module:
    vision = transformers.SamVisionConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
        output_channels=16,
        mlp_dim=64,
        window_size=2,
        global_attn_indexes=[1],
        num_pos_feats=8,
    )
    prompts = transformers.SamPromptEncoderConfig(hidden_size=16, image_size=32, patch_size=8, mask_input_channels=4)
    masks = transformers.SamMaskDecoderConfig(
        hidden_size=16, mlp_dim=32, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=16
    )
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks)
    return Tensors(transformers.SamModel(config), ["pixel_values", "input_points"], ["iou_scores", "pred_masks"])


def _mask2former() -> torch.nn.Module:
    backbone = transformers.SwinConfig(
        image_size=32,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=2,
        patch_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = transformers.Mask2FormerConfig(
        backbone_config=backbone,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=32,
        dim_feedforward=32,
        num_attention_heads=2,
        encoder_layers=1,
        decoder_layers=2,
        num_queries=5,
        num_labels=3,
    )
    model = transformers.Mask2FormerForUniversalSegmentation(config)
    return Tensors(model, ["pixel_values"], ["class_queries_logits", "masks_queries_logits"])


def _special() -> list[Architecture]:
    rows, sizes = {0: Dim.AUTO}, ((2,), (1,), (3,))
    return [
        Architecture(
            "transformers/whisper",
            _whisper,
            lambda batch, time: [torch.randn(batch, 8, 32), torch.randint(4, 90, (batch, time))],
            (rows, {0: Dim.AUTO, 1: Dim.AUTO}),
            ((2, 7), (1, 3), (3, 1)),
        ),
        Architecture(
            "transformers/sam",
            _sam,
            lambda b: [torch.randn(b, 3, 32, 32), torch.rand(b, 1, 2, 2) * 32],
            (rows, rows),
            sizes,
        ),
        Architecture("transformers/mask2former", _mask2former, lambda b: [torch.randn(b, 3, 64, 64)], (rows,), sizes),
    ]


def architectures() -> list[Architecture]:
    """All of them."""
    found = [_text(*each) for each in TEXT.items()] + [_both(*each) for each in BOTH.items()]
    return _special() + found + [_images(*each) for each in IMAGES.items()] + [_waves(*each) for each in WAVES.items()]

"""What onnx_sizes.py exports of transformers and timm that nobody had asked by 2026-11-28: decoders with experts, scans and rounded activations, texts, pictures with texts,
convolutions of mobile networks, LSTMs over rows and columns. Small shapes of the library's own classes, random weights."""

import numpy as np
from onnx_sizes_base import CASES, Drawn
from onnx_sizes_library import SIZES, TEXT, VISION, WORDS, library, ones, picture, text
from onnx_sizes_more import network

KV = {**TEXT, "num_key_value_heads": 2}
HEAD = {**KV, "head_dim": 8}
LOGITS = {"results": ("logits",), "use_cache": False}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
BATCH = {0: "batch"}


def batched(config):
    """Experts as products of gathered weights: neither exporter takes the library's grouped products."""
    config._experts_implementation = "batched_mm"
    return config


# Decoders.
text("qwen3_moe", "Qwen3MoeForCausalLM", lambda t: batched(t.Qwen3MoeConfig(**HEAD, **EXPERTS)), **LOGITS)
text("jamba", "JambaForCausalLM", lambda t: batched(t.JambaConfig(**KV, num_experts=4, num_experts_per_tok=2, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=4, mamba_expand=2, mamba_dt_rank=4, use_mamba_kernels=False)), sizes=((2, 12), (1, 7), (3, 20)), **LOGITS)
text("granite_hybrid", "GraniteMoeHybridForCausalLM", lambda t: t.GraniteMoeHybridConfig(**KV, layer_types=["mamba", "attention"], num_local_experts=0, shared_intermediate_size=24, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_chunk_size=16), **LOGITS)
text("bitnet", "BitNetForCausalLM", lambda t: t.BitNetConfig(**KV), **LOGITS)
# Texts, their boxes and pages.
text("mra", "MraModel", lambda t: t.MraConfig(**TEXT, block_per_row=2, approx_mode="full"), sizes=((2, 64), (1, 64), (3, 64)))
text("deberta_first", "DebertaModel", lambda t: t.DebertaConfig(**TEXT, relative_attention=True, max_relative_positions=16, pos_att_type=["p2c", "c2p"]))
# Pictures.
picture("efficientnet", "EfficientNetModel", lambda t: t.EfficientNetConfig(width_coefficient=0.25, depth_coefficient=0.3, hidden_dim=320), SIZES, ("last_hidden_state",))
picture("vitdet", "VitDetModel", lambda t: t.VitDetConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_block_indices=[0], window_size=3, use_relative_position_embeddings=True), ((2, 64, 64), (1, 64, 64), (3, 64, 64)), ("last_hidden_state",), axes=BATCH)
# Pictures with texts.
SEEN = {"input_ids": (lambda draw, b, n: draw.ints(60, b, n), WORDS), "pixel_values": (lambda draw, b, n: draw.floats(b, 3, 32, 32), BATCH), "attention_mask": (lambda draw, b, n: ones(draw, b, n), WORDS)}
CALLS = ((2, 12), (1, 7), (3, 20), (1, 33))
library("bridgetower", "BridgeTowerModel", lambda t: t.BridgeTowerConfig(hidden_size=32, num_attention_heads=4, num_hidden_layers=2, text_config={**TEXT, "pad_token_id": 1}, vision_config={"hidden_size": 64, "num_hidden_layers": 2, "image_size": 32, "patch_size": 8}), SEEN, ("text_features", "image_features"), CALLS)
library("kosmos2", "Kosmos2Model", lambda t: t.Kosmos2Config(text_config={"vocab_size": 60, "embed_dim": 32, "layers": 2, "ffn_dim": 48, "attention_heads": 4, "max_position_embeddings": 128}, vision_config=VISION, latent_query_num=4), {"pixel_values": SEEN["pixel_values"], "input_ids": SEEN["input_ids"], "image_embeds_position_mask": (lambda draw, b, n: np.tile((np.arange(n) // 4 == 0).astype(np.int64), (b, 1)), WORDS)}, ("last_hidden_state",), CALLS, use_cache=False)
# Pictures, by timm.
OPEN = ((2, 64, 96), (1, 64, 64), (1, 96, 128), (2, 128, 64))


def backbone(name, kind, sizes=OPEN, **shape):
    """A case: the classes of pictures of any size."""

    def make():
        import timm

        draw = Drawn()
        example, *calls = [[draw.floats(batch, 3, height, width)] for batch, height, width in sizes]
        axes = {0: "batch", 2: "height", 3: "width"}
        model, *rest = network(timm.create_model(kind, pretrained=False, num_classes=10, **shape), example, [("x", axes)], ["scores"], calls)
        return (model, *rest)

    CASES[name] = make


backbone("mobilenet_v4", "mobilenetv4_conv_small_035")
backbone("mobilenet_v4_hybrid", "mobilenetv4_hybrid_medium_075")
backbone("ghostnet", "ghostnet_050")
backbone("repvit", "repvit_m0_9", embed_dim=(16, 24, 32, 48), depth=(1, 1, 1, 1))
backbone("sequencer", "sequencer2d_s", embed_dims=(24, 32, 32, 32), hidden_sizes=(8, 8, 8, 8), layers=(1, 1, 1, 1))

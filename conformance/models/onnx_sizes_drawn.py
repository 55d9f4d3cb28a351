"""What onnx_sizes.py exports that was drawn last: decoders with windows, latent caches and experts, decoders with places for their caches, detectors with
queries, picture and text in one line of embeddings, codecs that give codes. Small shapes of the library's own classes, random weights."""

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_decoders import causal, decoder
from onnx_sizes_library import PIXELS, RESNET, TEXT, VISION, WORDS, ids, library, ones, picture, pixels, wave
from onnx_sizes_more import network

KV = dict(kv=2, intermediate_size=48, num_key_value_heads=2)


@case
def mpt():
    """Biases of places (ALiBi) that are made for the longest text."""
    from transformers import MptConfig, MptForCausalLM

    config = MptConfig(vocab_size=60, d_model=32, n_heads=4, n_layers=2, expansion_ratio=2, max_seq_len=256)
    return decoder(config, MptForCausalLM, 2, 4, 8)


@case
def gpt_neo():
    """One layer sees all keys, one a window."""
    from transformers import GPTNeoConfig, GPTNeoForCausalLM

    config = GPTNeoConfig(vocab_size=60, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48, window_size=8, attention_types=[[["global", "local"], 1]], max_position_embeddings=256)
    return decoder(config, GPTNeoForCausalLM, 2, 4, 8)


@case
def phi3_window():
    return causal("Phi3", **KV, sliding_window=6, pad_token_id=0)


@case
def cohere2():
    return causal("Cohere2", **KV, head_dim=8, sliding_window=6, layer_types=["sliding_attention", "full_attention"])


@case
def gemma3_window():
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=8,
                              max_position_embeddings=256, sliding_window=6, layer_types=["sliding_attention", "full_attention"])
    return decoder(config, Gemma3ForCausalLM, 2, 1, 8)


@case
def bitnet():
    return causal("BitNet", **KV)


@case
def apertus():
    return causal("Apertus", **KV)


@case
def diffllama():
    return causal("DiffLlama", **KV)


@case
def mbart():
    from transformers import MBartConfig
    from transformers.models.mbart.modeling_mbart import MBartDecoder

    config = MBartConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=256, pad_token_id=1)
    return decoder(config, MBartDecoder, 2, 4, 8, seq2seq=True)


@case
def mt5():
    """Gated products and a bias of relative places."""
    from transformers import MT5Config
    from transformers.models.mt5.modeling_mt5 import MT5Stack

    config = MT5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu")
    config.is_decoder, config.use_cache = True, True
    config.model_type = "t5"
    return decoder(config, MT5Stack, 2, 4, 8, seq2seq=True)


def drawn(module, seed=1):
    import torch

    torch.manual_seed(seed)
    for weight in module.parameters():
        torch.nn.init.normal_(weight, std=0.15) if weight.dim() > 1 else None
    return module.eval()


@case
def latent():
    """Keys and values of two widths (DeepSeek's)."""
    import torch
    import transformers
    from transformers.cache_utils import DynamicCache

    config = transformers.DeepseekV3Config(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=16,
                                           kv_lora_rank=12, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=6, first_k_dense_replace=2, max_position_embeddings=256)
    config._attn_implementation = "eager"
    inner = drawn(transformers.DeepseekV3ForCausalLM(config))

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, input_ids, mask, k0, v0, k1, v1):
            cache = DynamicCache()
            cache.update(k0, v0, 0)
            cache.update(k1, v1, 1)
            logits = self.inner(input_ids=input_ids, attention_mask=mask, past_key_values=cache, use_cache=True).logits
            return (logits, *(part for layer in cache.layers for part in (layer.keys, layer.values)))

    draw = Drawn()

    def call(batch, length, past):
        widths = (12, 6, 12, 6)
        return [draw.ints(60, batch, length), np.ones((batch, past + length), np.int64), *(draw.floats(batch, 4, past, width) for width in widths)]

    names = ("past.0.key", "past.0.value", "past.1.key", "past.1.value")
    inputs = [("input_ids", WORDS), ("mask", {0: "batch", 1: "total"}), *((name, {0: "batch", 2: "past"}) for name in names)]
    sizes = [(1, 4, 3), (1, 1, 7), (1, 1, 8), (3, 2, 16), (1, 1, 33), (1, 6, 0)]
    return Module().eval(), call(2, 3, 5), inputs, ["logits", *(name.replace("past", "present") for name in names)], [call(*one) for one in sizes]


@case
def places():
    """A cache of as many places as the longest text has, written at the places that an input names, with heads and keys as PyTorch writes them itself."""
    import torch

    width, heads = 32, 4

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.of_all, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

        def forward(self, x, keys, values, at):
            batch, length, _ = x.shape
            q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2) for part in self.of_all(x).chunk(3, -1))
            keys, values = keys.index_copy(2, at, k), values.index_copy(2, at, v)
            mask = torch.arange(keys.shape[2])[None, :] <= at[:, None]
            y = torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            return x + self.out(y.transpose(1, 2).reshape(batch, length, width)), keys, values

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layer, self.head = torch.nn.Embedding(60, width), Layer(), torch.nn.Linear(width, 60)

        def forward(self, input_ids, at, keys, values):
            x, keys, values = self.layer(self.words(input_ids), keys, values, at)
            return self.head(x), keys, values

    draw = Drawn()

    def call(batch, length, start, room):
        return [draw.ints(60, batch, length), np.arange(start, start + length), draw.floats(batch, heads, room, 8), draw.floats(batch, heads, room, 8)]

    cache = {0: "batch", 2: "room"}
    inputs = [("input_ids", WORDS), ("at", {0: "length"}), ("past.key", cache), ("past.value", cache)]
    sizes = [(1, 4, 0, 16), (1, 1, 4, 16), (1, 1, 15, 16), (2, 3, 2, 40), (1, 1, 90, 100), (1, 100, 0, 100)]
    return network(Module(), call(2, 3, 2, 12), inputs, ["logits", "present.key", "present.value"], [call(*one) for one in sizes])


@case
def short_convolutions():
    """A decoder of gated short convolutions and attention in turn (LFM2's), with a cache of frames and one of keys."""
    import torch

    width, taps = 32, 3

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.into, self.out = torch.nn.Embedding(60, width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.conv = torch.nn.Conv1d(width, width, taps, groups=width)
            self.of_all, self.head = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, 60)

        def forward(self, input_ids, frames, keys, values):
            x = self.words(input_ids)
            b, c, y = self.into(x).transpose(1, 2).chunk(3, 1)
            line = torch.cat([frames, b * y], -1)
            x = x + self.out((c * self.conv(line)).transpose(1, 2))
            batch, length, _ = x.shape
            q, k, v = (part.view(batch, length, 4, -1).transpose(1, 2) for part in self.of_all(x).chunk(3, -1))
            past = keys.shape[2]
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            mask = torch.arange(past + length)[None, :] <= (past + torch.arange(length))[:, None]
            y = torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            return self.head(x + y.transpose(1, 2).reshape(batch, length, width)), line[..., 1 - taps :], keys, values

    draw = Drawn()

    def call(batch, length, past):
        return [draw.ints(60, batch, length), draw.floats(batch, width, taps - 1), draw.floats(batch, 4, past, 8), draw.floats(batch, 4, past, 8)]

    cache = {0: "batch", 2: "past"}
    inputs = [("input_ids", WORDS), ("past.conv", {0: "batch"}), ("past.key", cache), ("past.value", cache)]
    sizes = [(1, 8, 3), (1, 1, 9), (1, 1, 10), (1, 1, 33), (3, 2, 16), (2, 1, 100)]
    return network(Module(), call(2, 3, 5), inputs, ["logits", "present.conv", "present.key", "present.value"], [call(*one) for one in sizes])


@case
def pictures_in_text():
    """Embeddings of pictures take the places of one word in a text (LLaVA, SmolVLM and others): `masked_scatter`."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.patches, self.head = torch.nn.Embedding(60, 32), torch.nn.Conv2d(3, 32, 8, 8), torch.nn.Linear(32, 60)

        def forward(self, input_ids, pixel_values):
            x = self.words(input_ids)
            seen = self.patches(pixel_values).flatten(2).transpose(1, 2).reshape(-1, 32)
            mask = (input_ids == 5).unsqueeze(-1).expand_as(x)
            return self.head(x.masked_scatter(mask, seen).cumsum(1))

    draw = Drawn()

    def call(batch, before, after, height, width):
        count = (height // 8) * (width // 8)
        own = 6 + draw.ints(50, batch, before + count + after)
        own[:, before : before + count] = 5
        return [own, draw.floats(batch, 3, height, width)]

    inputs = [("input_ids", WORDS), ("pixel_values", PIXELS)]
    sizes = [(1, 3, 4, 32, 32), (1, 1, 9, 16, 40), (3, 2, 2, 24, 24), (1, 20, 1, 64, 48)]
    return network(Module(), call(2, 3, 5, 16, 24), inputs, ["logits"], [call(*one) for one in sizes])


@case
def residual_codes():
    """Codes of a codec: the nearest of each book in turn (EnCodec, DAC), as numbers, and what they mean."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.Sequential(torch.nn.Conv1d(1, 16, 7, padding=3), torch.nn.ELU(), torch.nn.Conv1d(16, 16, 8, 4, padding=2), torch.nn.ELU(), torch.nn.Conv1d(16, 16, 10, 5, padding=3))
            self.books = torch.nn.Parameter(torch.randn(3, 24, 16))

        def forward(self, samples):
            rest = self.encoder(samples).transpose(1, 2)
            codes, whole = [], torch.zeros_like(rest)
            for book in self.books:
                code = (-(torch.cdist(rest, book.unsqueeze(0).expand(rest.shape[0], -1, -1)))).argmax(-1)
                meant = torch.nn.functional.embedding(code, book)
                rest, whole = rest - meant, whole + meant
                codes.append(code)
            return torch.stack(codes, 1), whole

    draw = Drawn()
    call = lambda batch, length: [draw.floats(batch, 1, length)]  # noqa: E731
    sizes = [(1, 400), (1, 640), (1, 641), (3, 1000), (1, 3205)]
    return network(Module(), call(2, 480), [("samples", {0: "batch", 2: "length"})], ["codes", "meant"], [call(*one) for one in sizes])


# Detectors with queries and pictures with texts.
QUERIES = dict(d_model=32, encoder_hidden_dim=32, encoder_in_channels=[16, 24, 32], encoder_ffn_dim=48, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48, decoder_layers=2, encoder_attention_heads=4,
               decoder_attention_heads=4, num_queries=12, anchor_image_size=None, num_denoising=0, num_labels=5)
SIZES = ((2, 64, 96), (1, 64, 64), (1, 96, 64), (2, 96, 128))
picture("rtdetr2", "RTDetrV2ForObjectDetection", lambda t: t.RTDetrV2Config(**QUERIES, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("dfine", "DFineForObjectDetection", lambda t: t.DFineConfig(**QUERIES, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("upernet", "UperNetForSemanticSegmentation", lambda t: t.UperNetConfig(backbone_config=t.SwinConfig(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"]), hidden_size=16, use_auxiliary_head=False, num_labels=4), SIZES, ("logits",))
picture("vitpose", "VitPoseForPoseEstimation", lambda t: t.VitPoseConfig(backbone_config=t.VitPoseBackboneConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=[64, 48], patch_size=[8, 8]), num_labels=5), ((2, 64, 48), (1, 64, 48), (3, 64, 48)), ("heatmaps",), axes={0: "batch"})
library("detr", "DetrForObjectDetection", lambda t: t.DetrConfig(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=12, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t)),
        {"pixel_values": (pixels, PIXELS), "pixel_mask": (lambda draw, b, h, w: np.pad(np.ones((b, h - 8, w - 16), np.int64), ((0, 0), (0, 8), (0, 16))), {0: "batch", 1: "h", 2: "w"})}, ("logits", "pred_boxes"), SIZES)
library("owl2", "Owlv2ForObjectDetection", lambda t: t.Owlv2Config(text_config=TEXT, vision_config=VISION, projection_dim=32), {"input_ids": (lambda draw, b, n, h, w: draw.ints(60, b, n), WORDS), "pixel_values": (lambda draw, b, n, h, w: draw.floats(b, 3, h, w), {0: "batch"}), "attention_mask": (ones, WORDS)}, ("logits", "objectness_logits", "pred_boxes"), ((2, 12, 32, 32), (1, 12, 32, 32), (3, 12, 32, 32)))
# Sounds.
wave("wav2vec2_frames", "Wav2Vec2ForAudioFrameClassification", lambda t: t.Wav2Vec2Config(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=[16, 16, 16], conv_stride=[5, 4, 2], conv_kernel=[10, 8, 4], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, do_stable_layer_norm=True, feat_extract_norm="layer", use_weighted_layer_sum=True), ((2, 1600), (1, 1200), (1, 3000), (3, 1999)), ("logits",))
library("bark", "BarkCausalModel", lambda t: t.BarkSemanticConfig(block_size=128, input_vocab_size=60, output_vocab_size=60, num_layers=2, num_heads=4, hidden_size=32), {"input_ids": (ids(), WORDS)}, ("logits",), ((2, 12), (1, 7), (1, 16), (3, 33), (1, 100)), use_cache=False)
library("umt5", "UMT5EncoderModel", lambda t: t.UMT5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4), {"input_ids": (ids(), WORDS), "attention_mask": (ones, WORDS)}, ("last_hidden_state",), ((2, 12), (1, 7), (1, 16), (3, 33), (1, 100)))

"""What onnx_sizes.py exports beyond its first sets: decoders of one file for both kinds of steps (`use_cache_branch`), streams with caches, transducers that
decode inside of the model, codecs, segmentation with queries, backbones of timm, random operators."""

import numpy as np
from onnx_sizes_base import Drawn, case
from onnx_sizes_decoders import causal, decoder
from onnx_sizes_graphs import graph, inner
from onnx_sizes_merge import branches


def network(module, example, inputs, results, calls, spread=None):
    """A module of torch with its own initial weights, drawn with a seed."""
    import torch

    torch.manual_seed(4)
    for name, weight in module.named_parameters() if spread else []:
        torch.nn.init.normal_(weight, std=spread) if weight.dim() > 1 else None
    return module.eval(), example, inputs, results, calls


@case
def persimmon():
    return causal("Persimmon", intermediate_size=48, max_position_embeddings=256)


@case
def xglm():
    from transformers import XGLMConfig, XGLMForCausalLM

    config = XGLMConfig(vocab_size=60, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, max_position_embeddings=256)
    return decoder(config, XGLMForCausalLM, 2, 4, 8)


@case
def hunyuan():
    return causal("HunYuanDenseV1", kv=2, intermediate_size=48, num_key_value_heads=2, head_dim=8, pad_token_id=0)


@case
def gemma2():
    return causal("Gemma2", kv=2, intermediate_size=48, num_key_value_heads=2, head_dim=8, sliding_window=12)


@case
def granite_moe():
    return causal("GraniteMoe", kv=2, intermediate_size=48, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)


@case
def blenderbot():
    from transformers import BlenderbotSmallConfig
    from transformers.models.blenderbot_small.modeling_blenderbot_small import BlenderbotSmallDecoder

    config = BlenderbotSmallConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=256, pad_token_id=1)
    return decoder(config, BlenderbotSmallDecoder, 2, 4, 8, seq2seq=True)


@case
def merged():
    """A decoder as Optimum merges it: `use_cache_branch` says which of two graphs runs, the one without a past and the one with it, over the same weights."""
    import io

    import onnx
    import torch
    from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

    config = GPTBigCodeConfig(vocab_size=60, n_embd=32, n_inner=48, n_layer=2, n_head=4, n_positions=256, multi_query=False)
    module, example, inputs, results, _ = decoder(config, GPTBigCodeForCausalLM, 2, 4, 8)

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, ids, mask):
            empty = torch.zeros(ids.shape[0], 4, 0, 8)
            return self.inner(ids, mask, empty, empty, empty, empty)

    parts = []
    for one, names, given in [(First(), inputs[:2], example[:2]), (module, inputs, example)]:
        made = io.BytesIO()
        given = tuple(torch.from_numpy(value) for value in ([example[0], example[1][:, : example[0].shape[1]]] if len(given) == 2 else given))
        with torch.no_grad():
            torch.onnx.export(one, given, made, dynamo=False, opset_version=17, input_names=[name for name, _ in names], output_names=results, dynamic_axes=dict(names))
        parts.append(onnx.load_from_string(made.getvalue()))
    model = branches(parts, results)
    draw, calls = Drawn(), []
    for batch, length, past in [(1, 4, 0), (1, 1, 4), (1, 1, 5), (1, 1, 6), (2, 3, 0), (2, 1, 3), (2, 1, 17), (1, 9, 0), (1, 1, 33)]:
        call = [draw.ints(60, batch, length), np.ones((batch, past + length), np.int64)]
        # Where there is no past, Optimum hands in one row that nobody reads.
        call += [draw.floats(batch, 4, past or 1, 8) for _ in range(4)]
        calls.append([*call, np.array([past > 0])])
    return model, calls


@case
def conformer_stream():
    """A block of a streaming Conformer: attention over this chunk and cached frames, a causal convolution whose beginning is cached, and both caches handed on."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Conv1d(20, 16, 3, 2)
            self.qkv, self.out, self.norms = nn.Linear(16, 48), nn.Linear(16, 16), nn.ModuleList(nn.LayerNorm(16) for _ in range(4))
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
            self.gate, self.depth, self.point = nn.Linear(16, 32), nn.Conv1d(16, 16, 7, groups=16), nn.Linear(16, 16)

        def forward(self, chunk, keys, frames):
            x = f.silu(self.sub(chunk.transpose(1, 2))).transpose(1, 2)
            x = x + 0.5 * self.down(f.silu(self.up(self.norms[0](x))))
            q, k, v = self.qkv(self.norms[1](x)).chunk(3, -1)
            kept = torch.cat([keys, torch.cat([k, v], -1)], 1)
            k, v = kept.chunk(2, -1)
            heads = lambda t: t.reshape(t.shape[0], t.shape[1], 2, 8).transpose(1, 2)  # noqa: E731
            distance = torch.arange(k.shape[1])[None] - torch.arange(q.shape[1])[:, None] - keys.shape[1]
            seen = (distance <= 0) & (distance > -24)
            y = f.scaled_dot_product_attention(heads(q), heads(k), heads(v), attn_mask=seen)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            y = torch.cat([frames, f.glu(self.gate(self.norms[2](x)), -1).transpose(1, 2)], 2)
            x = x + self.point(f.silu(self.depth(y)).transpose(1, 2))
            return self.norms[3](x), kept[:, -23:], y[:, :, -6:]

    draw, calls = Drawn(), []
    for batch, length, past in [(1, 33, 5), (1, 33, 21), (1, 33, 23), (1, 17, 23), (2, 21, 2), (1, 5, 23), (1, 80, 9), (3, 33, 23)]:
        calls.append([draw.floats(batch, length, 20), draw.floats(batch, past, 32), draw.floats(batch, 16, 6)])
    inputs = [("chunk", {0: "batch", 1: "samples"}), ("keys", {0: "batch", 1: "past"}), ("frames", {0: "batch"})]
    return network(Module(), [draw.floats(2, 19, 20), draw.floats(2, 7, 32), draw.floats(2, 16, 6)], inputs, ["features", "new_keys", "new_frames"], calls)


@case
def transducer():
    """An RNN-T that decodes inside of the model: for each frame a loop that ends at a blank, an LSTM whose state moves on with each letter, a line of letters that grows."""
    from onnx import helper

    n, draw = helper.make_node, Drawn()
    words, width = 12, 8
    # Predictor (a tanh cell), joiner, and the choice of one step of one frame.
    step = [n("Gather", ["table", "word"], ["e"], axis=0), n("MatMul", ["hidden", "wh"], ["h1"]), n("Add", ["e", "h1"], ["h2"]), n("Tanh", ["h2"], ["h"]),
            n("Add", ["h", "frame"], ["j"]), n("Tanh", ["j"], ["jt"]), n("MatMul", ["jt", "wo"], ["scores"]), n("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
            n("Equal", ["best", "zero1"], ["blank1"]), n("Squeeze", ["blank1", "zero1"], ["blank"]), n("Not", ["blank"], ["is_word"]),
            n("Where", ["is_word", "best", "word"], ["word_out"]), n("Where", ["is_word", "h", "hidden"], ["hidden_out"]),
            n("Cast", ["is_word"], ["some"], to=7), n("Reshape", ["some", "one1"], ["count"]), n("Slice", ["best", "zero1", "count", "zero1"], ["new"]),
            n("Concat", ["line", "new"], ["line_out"], axis=0), n("Identity", ["is_word"], ["again"])]
    inner_body = inner(step, [("k", "i", []), ("go", "b", []), ("word", "i", [1]), ("hidden", "f", [1, width]), ("line", "i", ["u"])],
                       [("again", "b", []), ("word_out", "i", [1]), ("hidden_out", "f", [1, width]), ("line_out", "i", ["u2"])])
    outer = inner([n("Gather", ["frames", "t"], ["frame0"], axis=0), n("Reshape", ["frame0", "row"], ["frame"]),
                   n("Loop", ["most", "yes", "word0", "hidden0", "line0"], ["word1", "hidden1", "line1"], body=inner_body), n("Identity", ["go0"], ["more"])],
                  [("t", "i", []), ("go0", "b", []), ("word0", "i", [1]), ("hidden0", "f", [1, width]), ("line0", "i", ["v"])],
                  [("more", "b", []), ("word1", "i", [1]), ("hidden1", "f", [1, width]), ("line1", "i", ["v2"])])
    nodes = [n("MatMul", ["sound", "we"], ["encoded"]), n("Tanh", ["encoded"], ["frames"]), n("Shape", ["sound"], ["shape"]), n("Gather", ["shape", "zero"], ["count_frames"], axis=0),
             n("Loop", ["count_frames", "yes", "start", "rest", "empty"], ["last", "state", "letters"], body=outer), n("Size", ["letters"], ["length"])]
    blank_less = draw.floats(width, words)
    blank_less[:, 0] += 0.4
    constants = [("we", draw.floats(6, width)), ("wh", draw.floats(width, width) * 0.7), ("wo", blank_less), ("table", draw.floats(words, width)), ("most", np.array(3)), ("yes", np.array(True)),
                 ("zero", np.array(0)), ("zero1", np.array([0])), ("one1", np.array([1])), ("row", np.array([1, width])), ("start", np.array([0])), ("rest", np.zeros((1, width), np.float32)),
                 ("empty", np.zeros(0, np.int64))]
    model = graph(nodes, [("sound", "f", ["frames", 6])], [("letters", "i", ["letters"]), ("state", "f", [1, width]), ("length", "i", [])], constants)
    return model, [[draw.floats(length, 6)] for length in (4, 7, 12, 5, 30, 2)]


@case
def mimi():
    """The encoder and decoder of a codec that quantizes (Mimi's): transposed and causal convolutions around a transformer."""
    import torch
    from transformers import MimiConfig, MimiModel

    config = MimiConfig(hidden_size=32, num_filters=8, upsampling_ratios=[4, 3], num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4, head_dim=8, intermediate_size=48, codebook_size=32,
                        codebook_dim=16, vector_quantization_hidden_dimension=16, num_quantizers=4, num_semantic_quantizers=1, upsample_groups=32, sliding_window=40, frame_rate=1000.0, sampling_rate=24000)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = MimiModel(config)

        def forward(self, codes):
            return self.inner.decode(codes).audio_values

    draw = Drawn()
    calls = [[draw.ints(32, 1, 4, length)] for length in (5, 8, 21, 33, 34)]
    return network(Module(), [draw.ints(32, 1, 4, 13)], [("codes", {2: "frames"})], ["wave"], calls)


@case
def unispeech():
    """Speech features with gated relative positions (UniSpeech-SAT's encoder), then a vote for each frame."""
    from transformers import UniSpeechSatConfig, UniSpeechSatForCTC

    return speech(UniSpeechSatForCTC, UniSpeechSatConfig)


@case
def data2vec():
    from transformers import Data2VecAudioConfig, Data2VecAudioForCTC

    return speech(Data2VecAudioForCTC, Data2VecAudioConfig)


def speech(kind, config):
    import torch

    config = config(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                    num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, conv_pos_kernel_size=5, num_codevectors_per_group=8)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = kind(config)

        def forward(self, sound):
            return self.inner(sound).logits

    draw = Drawn()
    calls = [[draw.floats(1, length)] for length in (800, 1000, 1601, 2407, 1234)]
    return network(Module(), [draw.floats(1, 1500)], [("sound", {1: "samples"})], ["logits"], calls)


@case
def parakeet():
    """FastConformer: subsampling by 8 in two dimensions, relative positions, a mask of lengths."""
    import torch
    from transformers import ParakeetEncoder, ParakeetEncoderConfig

    config = ParakeetEncoderConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_mel_bins=40, subsampling_conv_channels=8, conv_kernel_size=5)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = ParakeetEncoder(config)

        def forward(self, mel):
            return self.inner(mel).last_hidden_state

    draw = Drawn()
    calls = [[draw.floats(b, length, 40)] for b, length in [(1, 64), (1, 99), (2, 71), (1, 160), (1, 35)]]
    return network(Module(), [draw.floats(2, 81, 40)], [("mel", {0: "batch", 1: "frames"})], ["features"], calls)


def timm_case(name, sizes, features=False, **more):
    import timm
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = timm.create_model(name, pretrained=False, features_only=features, **({} if features else {"num_classes": 7}), **more)

        def forward(self, image):
            found = self.inner(image)
            return tuple(found) if features else found

    draw = Drawn()
    module = Module()
    results = [f"level{i}" for i in range(len(module.inner.feature_info))] if features else ["classes"]
    calls = [[draw.floats(b, 3, *size)] for b, *size in sizes]
    return network(module, [draw.floats(2, 3, 96, 128)], [("image", {0: "batch", 2: "height", 3: "width"})], results, calls)


SIDES = [(1, 64, 64), (1, 96, 64), (2, 64, 128), (1, 160, 96), (1, 128, 224)]


@case
def convnext_v2():
    return timm_case("convnextv2_atto", SIDES)


@case
def hrnet():
    return timm_case("hrnet_w18_small", SIDES[:4], features=True)


@case
def edgenext():
    return timm_case("edgenext_xx_small", SIDES)


@case
def deeplab():
    """Pools at several rates, resized to the size of the picture."""
    import torch
    from torchvision.models import segmentation

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=6)

        def forward(self, image):
            return self.inner(image)["out"]

    draw = Drawn()
    calls = [[draw.floats(b, 3, *size)] for b, *size in [(1, 64, 64), (1, 65, 97), (2, 80, 112), (1, 120, 88), (1, 99, 130)]]
    return network(Module(), [draw.floats(2, 3, 72, 104)], [("image", {0: "batch", 2: "height", 3: "width"})], ["out"], calls)


@case
def mask2former():
    """Segmentation by queries: attention that reads features where it decides, and masks that limit attention (Mask2Former, Swin)."""
    import torch
    from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig

    swin = SwinConfig(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 2], window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"])
    config = Mask2FormerConfig(backbone_config=swin, feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=48, dim_feedforward=48, encoder_layers=1, decoder_layers=3,
                               num_attention_heads=4, num_queries=10, num_labels=4)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mask2FormerForUniversalSegmentation(config)

        def forward(self, image):
            found = self.inner(image)
            return found.class_queries_logits, found.masks_queries_logits

    draw = Drawn()
    calls = [[draw.floats(1, 3, *size)] for size in [(64, 64), (96, 64), (64, 128), (80, 100)]]
    return network(Module(), [draw.floats(1, 3, 96, 128)], [("image", {2: "height", 3: "width"})], ["classes", "masks"], calls)


@case
def noise():
    """Random operators over sizes that data decide, whose results do not depend on what is drawn: noise of almost no spread, drawn classes of which one alone is possible.
    `Bernoulli` is not among them: ONNX Runtime 1.32 draws 1 where the probability is 0."""
    from onnx import helper

    n, draw = helper.make_node, Drawn()
    nodes = [n("NonZero", ["x"], ["places"]), n("Transpose", ["places"], ["rows"], perm=[1, 0]), n("GatherND", ["x", "rows"], ["found"]),
             n("RandomNormalLike", ["found"], ["normal"], mean=1.0, scale=1e-30), n("Add", ["found", "normal"], ["moved"]),
             n("RandomUniformLike", ["found"], ["uniform"], low=0.25, high=0.5), n("Floor", ["uniform"], ["none"]), n("Add", ["moved", "none"], ["sums"]),
             n("Mul", ["x", "zero"], ["flat"]), n("Add", ["flat", "sure"], ["logits"]), n("Multinomial", ["logits"], ["classes"], sample_size=3, dtype=7)]
    constants = [("zero", np.float32(0)), ("sure", np.array([-1e4, -1e4, 0, -1e4], np.float32))]
    model = graph(nodes, [("x", "f", ["n", 4])], [("sums", "f", ["k"]), ("classes", "i", ["n", 3])], constants)
    calls = []
    for rows in (3, 8, 5, 17, 2):
        x = draw.floats(rows, 4)
        calls.append([np.where(x > 0.8, np.float32(0), x)])
    return model, calls

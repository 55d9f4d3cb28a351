"""What onnx_sizes.py exports of transformers and torchvision that came last: pictures with texts, documents, detectors with queries, depth, speech,
sparse attention, series, video. Small shapes of the library's own classes, random weights."""

import numpy as np
from onnx_sizes_base import CASES, Drawn
from onnx_sizes_more import network

TEXT = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 256}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
WORDS = {0: "batch", 1: "length"}
PIXELS = {0: "batch", 2: "h", 3: "w"}


def library(name, kind, config, inputs, results, sizes, **fixed):
    """A case: `inputs` has for each name what is drawn of sizes, and which dimensions are open; `results` names fields."""

    def make():
        import torch
        import transformers

        made = config(transformers)

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = getattr(transformers, kind)(made)

            def forward(self, *values):
                out = self.inner(**dict(zip(inputs, values)), **fixed)
                picked = [part for field in results for part in flat(out[field] if isinstance(field, str) else field(out))]
                return tuple(picked)

        def flat(value):
            return [value] if isinstance(value, torch.Tensor) else [part for one in value for part in flat(one)]

        draw = Drawn()
        call = lambda *size: [fill(draw, *size) for fill, _ in inputs.values()]  # noqa: E731
        example, calls = call(*sizes[0]), [call(*size) for size in sizes[1:]]
        module, *rest = network(Module(), example, [(name, axes) for name, (_, axes) in inputs.items()], None, calls)
        with torch.no_grad():
            count = len(module(*map(torch.from_numpy, example)))
        # The exporter counts names of arguments.
        scope = {}
        exec(f"def forward(self, {', '.join(inputs)}): return self.whole({', '.join(inputs)})", scope)
        Module.whole, Module.forward = Module.forward, scope["forward"]
        rest[2] = [f"out{i}" for i in range(count)]
        return (module, *rest)

    make.__name__, make.__module__ = name, __name__
    CASES[name] = make


def ids(most=60):
    return lambda draw, batch, length, *_: draw.ints(most, batch, length)


def ones(draw, batch, length, *_):
    mask = np.ones((batch, length), np.int64)
    mask[-1, max(1, length - 2) :] = 0 if batch > 1 else 1
    return mask


def pixels(draw, batch, height, width, *_):
    return draw.floats(batch, 3, height, width)


def text(name, kind, config, sizes=((2, 12), (1, 7), (1, 16), (3, 33), (1, 100)), results=("last_hidden_state",), most=60, **fixed):
    library(name, kind, config, {"input_ids": (ids(most), WORDS), "attention_mask": (ones, WORDS)}, results, sizes, **fixed)


def picture(name, kind, config, sizes, results, axes=PIXELS, **fixed):
    library(name, kind, config, {"pixel_values": (pixels, axes)}, results, sizes, **fixed)


def wave(name, kind, config, sizes, results=("last_hidden_state",), **fixed):
    library(name, kind, config, {"input_values": (lambda draw, batch, samples: draw.floats(batch, samples), {0: "batch", 1: "samples"})}, results, sizes, **fixed)


# Texts.
text("deberta", "DebertaV2Model", lambda t: t.DebertaV2Config(**TEXT, relative_attention=True, position_buckets=16, pos_att_type=["p2c", "c2p"], conv_kernel_size=3, norm_rel_ebd="layer_norm", share_att_key=True))
text("longformer", "LongformerModel", lambda t: t.LongformerConfig(**TEXT, attention_window=8))
text("bigbird", "BigBirdModel", lambda t: t.BigBirdConfig(**TEXT, attention_type="original_full"))
text("xlnet", "XLNetModel", lambda t: t.XLNetConfig(vocab_size=60, d_model=32, n_layer=2, n_head=4, d_inner=48))
text("funnel", "FunnelModel", lambda t: t.FunnelConfig(vocab_size=60, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48))
text("fnet", "FNetModel", lambda t: t.FNetConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, intermediate_size=48, max_position_embeddings=256))
text("canine", "CanineModel", lambda t: t.CanineConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_hash_buckets=64, local_transformer_stride=16, downsampling_rate=4, max_position_embeddings=512), sizes=((2, 64), (1, 32), (1, 48), (3, 128)), most=9000)
text("nystrom", "NystromformerModel", lambda t: t.NystromformerConfig(**TEXT, num_landmarks=8, segment_means_seq_len=64, conv_kernel_size=5), sizes=((2, 64), (1, 64), (3, 64)))
text("modernbert", "ModernBertModel", lambda t: t.ModernBertConfig(**TEXT, pad_token_id=0, global_attn_every_n_layers=2, local_attention=16))
text("perceiver", "PerceiverForMaskedLM", lambda t: t.PerceiverConfig(num_latents=8, d_latents=32, d_model=24, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4, vocab_size=60, max_position_embeddings=64), sizes=((2, 64), (1, 64), (3, 64)), results=("logits",))
text("luke", "MobileBertModel", lambda t: t.MobileBertConfig(**{**TEXT, "hidden_size": 64}, embedding_size=16, intra_bottleneck_size=32))
text("switch", "SwitchTransformersEncoderModel", lambda t: t.SwitchTransformersConfig(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, num_experts=4, num_sparse_encoder_layers=1, expert_capacity=64, num_sparse_decoder_layers=1))
text("mixtral", "MixtralForCausalLM", lambda t: t.MixtralConfig(**TEXT, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2), results=("logits",), use_cache=False)
text("mamba2", "Mamba2Model", lambda t: t.Mamba2Config(vocab_size=60, hidden_size=32, state_size=8, num_hidden_layers=1, num_heads=8, head_dim=8, n_groups=2, chunk_size=16, conv_kernel=4), use_cache=False)
text("recurrent_gemma", "RecurrentGemmaModel", lambda t: t.RecurrentGemmaConfig(**TEXT, num_key_value_heads=1, lru_width=32, attention_window_size=16), use_cache=False)
# Sequences to sequences, whole.
PAIR = {"input_ids": (ids(), WORDS), "attention_mask": (ones, WORDS), "decoder_input_ids": (lambda draw, b, length, other: draw.ints(60, b, other), {0: "batch", 1: "other"})}
PAIRS = ((2, 12, 5), (1, 7, 3), (1, 32, 9), (3, 33, 16))
library("led", "LEDModel", lambda t: t.LEDConfig(vocab_size=60, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, attention_window=8, max_encoder_position_embeddings=128, max_decoder_position_embeddings=64), PAIR, ("last_hidden_state",), ((2, 16, 5), (1, 8, 3), (1, 32, 9), (3, 40, 16)), use_cache=False)
library("prophetnet", "ProphetNetModel", lambda t: t.ProphetNetConfig(vocab_size=60, hidden_size=32, encoder_ffn_dim=48, num_encoder_layers=1, num_encoder_attention_heads=4, decoder_ffn_dim=48, num_decoder_layers=1, num_decoder_attention_heads=4, max_position_embeddings=128), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
library("m2m100", "M2M100Model", lambda t: t.M2M100Config(vocab_size=60, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=128), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
# Pictures with texts.
BOTH = {"input_ids": (lambda draw, b, length, h, w: draw.ints(60, b, length), WORDS), "pixel_values": (lambda draw, b, length, h, w: draw.floats(b, 3, h, w), {0: "batch"}), "attention_mask": (ones, WORDS)}
CALLS = ((2, 12, 32, 32), (1, 7, 32, 32), (3, 20, 32, 32), (1, 33, 32, 32))
library("clip", "CLIPModel", lambda t: t.CLIPConfig(text_config={**TEXT, "eos_token_id": 2}, vision_config=VISION, projection_dim=16), {"input_ids": (lambda draw, b, n, *_: draw.ints(60, b, n), {0: "texts", 1: "length"}), "pixel_values": (lambda draw, b, n, h, w: draw.floats(b + 1, 3, h, w), {0: "pictures"}), "attention_mask": (ones, {0: "texts", 1: "length"})}, ("logits_per_image", "text_embeds", "image_embeds"), CALLS)
library("siglip", "SiglipModel", lambda t: t.SiglipConfig(text_config={**TEXT}, vision_config=VISION), {"input_ids": BOTH["input_ids"], "pixel_values": BOTH["pixel_values"]}, ("logits_per_image", "text_embeds", "image_embeds"), CALLS)
library("blip", "BlipForConditionalGeneration", lambda t: t.BlipConfig(text_config={**TEXT, "encoder_hidden_size": 32, "bos_token_id": 1, "sep_token_id": 2, "eos_token_id": 2}, vision_config=VISION), {"pixel_values": BOTH["pixel_values"], "input_ids": BOTH["input_ids"], "attention_mask": BOTH["attention_mask"]}, ("logits", "last_hidden_state"), CALLS)
library("vilt", "LayoutLMModel", lambda t: t.LayoutLMConfig(**TEXT, max_2d_position_embeddings=64), {"input_ids": (ids(), WORDS), "bbox": (lambda draw, b, n: np.sort(draw.ints(60, b, n, 4), -1), WORDS), "attention_mask": (ones, WORDS)}, ("last_hidden_state",), ((2, 12), (1, 7), (3, 33)))
library("owlvit", "OwlViTForObjectDetection", lambda t: t.OwlViTConfig(text_config=TEXT, vision_config=VISION, projection_dim=32), BOTH, ("logits", "pred_boxes"), ((2, 12, 32, 32), (1, 12, 32, 32), (3, 12, 32, 32)))
library("sam", "SamModel", lambda t: t.SamConfig(vision_config={"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64, "patch_size": 8, "mlp_dim": 48, "output_channels": 16, "window_size": 3, "global_attn_indexes": [1]}, prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4}, mask_decoder_config={"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "iou_head_hidden_dim": 16}), {"pixel_values": (lambda draw, b, *_: draw.floats(b, 3, 64, 64), {0: "batch"}), "input_points": (lambda draw, b, p, n: np.abs(20 * draw.floats(b, p, n, 2)), {0: "batch", 1: "prompts", 2: "points"}), "input_labels": (lambda draw, b, p, n: draw.ints(3, b, p, n) - 1, {0: "batch", 1: "prompts", 2: "points"})}, ("iou_scores", "pred_masks"), ((2, 3, 4), (1, 1, 2), (1, 2, 3), (2, 5, 1)))
# Pictures.
DETR = dict(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=12)
RESNET = lambda t: t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage2", "stage3", "stage4"])  # noqa: E731
SIZES = ((2, 64, 96), (1, 64, 64), (1, 96, 72), (2, 80, 112))
picture("deformable", "DeformableDetrForObjectDetection", lambda t: t.DeformableDetrConfig(**DETR, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("deformable2", "DeformableDetrForObjectDetection", lambda t: t.DeformableDetrConfig(**DETR, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t), two_stage=True, with_box_refine=True), SIZES, ("logits", "pred_boxes"))
picture("dab", "DabDetrForObjectDetection", lambda t: t.DabDetrConfig(**{**DETR, "hidden_size": 32, "num_queries": 12}, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("maskformer", "MaskFormerForInstanceSegmentation", lambda t: t.MaskFormerConfig(fpn_feature_size=32, mask_feature_size=32, backbone_config=t.SwinConfig(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"]), decoder_config=t.DetrConfig(**DETR, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t))), ((1, 64, 96), (1, 64, 64), (1, 96, 64), (2, 64, 128)), ("class_queries_logits", "masks_queries_logits"))
picture("dpt", "DPTForDepthEstimation", lambda t: t.DPTConfig(**{**VISION, "num_hidden_layers": 4}, backbone_out_indices=[0, 1, 2, 3], reassemble_factors=[4, 2, 1, 0.5], neck_hidden_sizes=[8, 16, 24, 32], fusion_hidden_size=16, is_hybrid=False, readout_type="project"), ((2, 32, 32), (1, 32, 32), (3, 32, 32)), ("predicted_depth",), axes={0: "batch"})
picture("glpn", "GLPNForDepthEstimation", lambda t: t.GLPNConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16), ((2, 64, 96), (1, 64, 64), (1, 96, 128)), ("predicted_depth",))
picture("swin2sr", "Swin2SRForImageSuperResolution", lambda t: t.Swin2SRConfig(image_size=32, embed_dim=24, depths=[2], num_heads=[4], window_size=4, upscale=2, upsampler="pixelshuffle"), ((2, 32, 40), (1, 32, 32), (1, 29, 35), (1, 48, 20)), ("reconstruction",))
picture("mobilevit", "MobileViTV2ForImageClassification", lambda t: t.MobileViTV2Config(width_multiplier=0.25, n_attn_blocks=[1, 1, 1]), ((2, 64, 96), (1, 64, 64), (1, 96, 128)), ("logits",))
picture("levit", "LevitModel", lambda t: t.LevitConfig(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8]), ((2, 64, 64), (1, 64, 64), (3, 64, 64)), ("last_hidden_state",), axes={0: "batch"})
picture("pvt", "PvtV2Model", lambda t: t.PvtV2Config(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]), ((2, 64, 96), (1, 64, 64), (1, 96, 128)), ("last_hidden_state",))
picture("cvt", "CvtModel", lambda t: t.CvtConfig(embed_dim=[8, 16, 32], num_heads=[1, 2, 4], depth=[1, 1, 1]), ((2, 64, 64), (1, 64, 64), (1, 96, 128)), ("last_hidden_state",))
picture("vitmatte", "PoolFormerModel", lambda t: t.PoolFormerConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), ((2, 64, 96), (1, 64, 64), (1, 96, 128)), ("last_hidden_state",))
library("videomae", "VideoMAEModel", lambda t: t.VideoMAEConfig(**VISION, num_frames=4), {"pixel_values": (lambda draw, b: draw.floats(b, 4, 3, 32, 32), {0: "batch"})}, ("last_hidden_state",), ((2,), (1,), (3,)))
library("timesformer", "TimesformerModel", lambda t: t.TimesformerConfig(**VISION, num_frames=4), {"pixel_values": (lambda draw, b: draw.floats(b, 4, 3, 32, 32), {0: "batch"})}, ("last_hidden_state",), ((2,), (1,), (3,)))
# Sounds.
wave("univnet", "WavLMForXVector", lambda t: t.WavLMConfig(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=[16, 16, 16], conv_stride=[5, 4, 2], conv_kernel=[10, 8, 4], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, tdnn_dim=[32, 32, 48], tdnn_kernel=[3, 3, 1], tdnn_dilation=[1, 2, 1], xvector_output_dim=16, num_buckets=32, max_bucket_distance=80), ((2, 1600), (1, 1200), (1, 3000), (3, 1999)), ("embeddings",))
library("speecht5", "SpeechT5HifiGan", lambda t: t.SpeechT5HifiGanConfig(model_in_dim=20, upsample_initial_channel=32, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3, 5], resblock_dilation_sizes=[[1, 3], [1, 3]]), {"spectrogram": (lambda draw, b, n: draw.floats(b, n, 20), WORDS)}, (lambda out: out,), ((2, 12), (1, 7), (3, 33), (1, 50)))
library("ast", "ASTModel", lambda t: t.ASTConfig(**{k: v for k, v in VISION.items() if k != "image_size"}, max_length=48, num_mel_bins=32, frequency_stride=6, time_stride=6), {"input_values": (lambda draw, b: draw.floats(b, 48, 32), {0: "batch"})}, ("last_hidden_state",), ((2,), (1,), (3,)))
library("musicgen", "MusicgenForCausalLM", lambda t: t.MusicgenDecoderConfig(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, num_codebooks=4, max_position_embeddings=128), {"input_ids": (lambda draw, b, n, m: draw.ints(40, 4 * b, n), {0: "rows", 1: "length"}), "encoder_hidden_states": (lambda draw, b, n, m: draw.floats(b, m, 32), {0: "batch", 1: "words"})}, ("logits",), ((2, 6, 5), (1, 4, 7), (1, 9, 3)), use_cache=False)
library("seamless", "Wav2Vec2BertModel", lambda t: t.Wav2Vec2BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, feature_projection_input_dim=20, conv_depthwise_kernel_size=7, left_max_position_embeddings=8, right_max_position_embeddings=4, position_embeddings_type="relative_key"), {"input_features": (lambda draw, b, n: draw.floats(b, n, 20), WORDS), "attention_mask": (ones, WORDS)}, ("last_hidden_state",), ((2, 12), (1, 7), (3, 33)))
# Series.
SERIES = {"past_values": (lambda draw, b, n=32: draw.floats(b, n, 3), {0: "batch"})}
library("patchtst", "PatchTSTForPrediction", lambda t: t.PatchTSTConfig(num_input_channels=3, context_length=32, patch_length=8, patch_stride=4, prediction_length=8, d_model=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=24, scaling="std"), SERIES, ("prediction_outputs",), ((2,), (1,), (5,)))
library("mixer", "PatchTSMixerForPrediction", lambda t: t.PatchTSMixerConfig(num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=8, d_model=16, num_layers=2, scaling="std", mode="mix_channel"), SERIES, ("prediction_outputs",), ((2,), (1,), (5,)))
for name, kind in (("informer", "Informer"), ("autoformer", "Autoformer"), ("time_series", "TimeSeriesTransformer")):
    library(name, f"{kind}Model", lambda t, kind=kind: getattr(t, f"{kind}Config")(prediction_length=6, context_length=20, lags_sequence=[1, 2, 3], num_time_features=2, d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, scaling="std"),
            {"past_values": (lambda draw, b: draw.floats(b, 23), {0: "batch"}), "past_time_features": (lambda draw, b: draw.floats(b, 23, 2), {0: "batch"}), "past_observed_mask": (lambda draw, b: np.ones((b, 23), np.float32), {0: "batch"}),
             "future_values": (lambda draw, b: draw.floats(b, 6), {0: "batch"}), "future_time_features": (lambda draw, b: draw.floats(b, 6, 2), {0: "batch"})}, ("last_hidden_state",), ((2,), (1,), (5,)), use_cache=False)

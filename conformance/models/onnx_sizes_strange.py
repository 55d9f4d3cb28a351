"""What onnx_sizes.py exports of transformers of kinds that nobody had asked on the evening of 2026-11-27: readers of pages, masks of points, detectors with words, pictures of any
grid, experts, speech to text. Small shapes of the library's own classes, random weights."""

import numpy as np
from onnx_sizes_library import PAIR, PAIRS, TEXT, VISION, WORDS, ids, library, ones, picture, text
from onnx_sizes_unnamed import LAYERS, SPEECH

LATER = {0: "batch", 1: "other"}


def boxes(draw, batch, length, *_):
    """Corners of words on a page of 1,000 places."""
    low, high = np.sort(draw.random.integers(0, 1000, (2, batch, length, 2)), 0)
    return np.concatenate([low, high], -1).astype(np.int64)


# Readers of pages and lines.
SEEN = {"pixel_values": (lambda draw, b, h, w, m: draw.floats(b, 3, h, w), {0: "batch", 2: "h", 3: "w"}), "decoder_input_ids": (lambda draw, b, h, w, m: draw.ints(60, b, m), LATER)}
MBART = lambda t: t.MBartConfig(**LAYERS, vocab_size=60, max_position_embeddings=128, is_decoder=True, add_cross_attention=True)  # noqa: E731
library("donut", "VisionEncoderDecoderModel", lambda t: t.VisionEncoderDecoderConfig(encoder=t.DonutSwinConfig(image_size=64, embed_dim=8, depths=[1, 2], num_heads=[1, 2], window_size=4).to_dict() | {"hidden_size": 16}, decoder=MBART(t).to_dict()),
        SEEN, ("logits",), ((2, 64, 96, 5), (1, 64, 64, 3), (1, 96, 64, 9), (3, 64, 128, 7)), use_cache=False)
library("trocr", "VisionEncoderDecoderModel", lambda t: t.VisionEncoderDecoderConfig(encoder=t.ViTConfig(**VISION).to_dict(), decoder=t.TrOCRConfig(vocab_size=60, d_model=32, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=128, is_decoder=True, add_cross_attention=True, cross_attention_hidden_size=32).to_dict()),
        {"pixel_values": (lambda draw, b, m: draw.floats(b, 3, 32, 32), {0: "batch"}), "decoder_input_ids": (lambda draw, b, m: draw.ints(60, b, m), LATER)}, ("logits",), ((2, 5), (1, 3), (1, 9), (3, 7)), use_cache=False)
PAGE = {"input_ids": (ids(), WORDS), "bbox": (boxes, {**WORDS}), "attention_mask": (ones, WORDS)}
LINES = ((2, 12), (1, 7), (1, 16), (3, 33))
library("layoutlmv3_text", "LayoutLMv3Model", lambda t: t.LayoutLMv3Config(**TEXT, coordinate_size=6, shape_size=4, max_2d_position_embeddings=1024, visual_embed=False, rel_pos_bins=8, max_rel_pos=16, rel_2d_pos_bins=8, max_rel_2d_pos=16), PAGE, ("last_hidden_state",), LINES)
library("layoutlmv3", "LayoutLMv3Model", lambda t: t.LayoutLMv3Config(**TEXT, coordinate_size=6, shape_size=4, max_2d_position_embeddings=1024, input_size=32, patch_size=8, rel_pos_bins=8, max_rel_pos=16, rel_2d_pos_bins=8, max_rel_2d_pos=16),
        {**PAGE, "pixel_values": (lambda draw, b, n: draw.floats(b, 3, 32, 32), {0: "batch"})}, ("last_hidden_state",), LINES)
library("lilt", "LiltModel", lambda t: t.LiltConfig(**{**TEXT, "hidden_size": 48}, channel_shrink_ratio=2, max_2d_position_embeddings=1024), PAGE, ("last_hidden_state",), LINES)
library("mgp_str", "MgpstrForSceneTextRecognition", lambda t: t.MgpstrConfig(image_size=[16, 32], max_token_length=7, num_character_labels=20, num_bpe_labels=60, num_wordpiece_labels=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
        {"pixel_values": (lambda draw, b: draw.floats(b, 3, 16, 32), {0: "batch"})}, ("logits",), ((2,), (1,), (3,)))
# Masks of points, pictures of any grid.
POINTS = {"pixel_values": (lambda draw, b, p, n: draw.floats(b, 3, 64, 64), {0: "batch"}), "input_points": (lambda draw, b, p, n: np.abs(draw.floats(b, p, n, 2)) * 20, {0: "batch", 1: "prompts", 2: "points"}), "input_labels": (lambda draw, b, p, n: draw.ints(2, b, p, n), {0: "batch", 1: "prompts", 2: "points"})}
MARKED = ((2, 3, 2), (1, 1, 1), (1, 5, 2), (3, 2, 4), (1, 2, 7))
SAM = lambda t: t.SamConfig(vision_config={"hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64, "patch_size": 8, "window_size": 3, "global_attn_indexes": [1], "num_pos_feats": 8, "mlp_dim": 48, "initializer_range": 0.02}, prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 8}, mask_decoder_config={"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 16})  # noqa: E731
library("sam", "SamModel", SAM, POINTS, ("iou_scores", "pred_masks"), MARKED)
library("sam_boxes", "SamModel", SAM, {"pixel_values": (lambda draw, b, p: draw.floats(b, 3, 64, 64), {0: "batch"}), "input_boxes": (lambda draw, b, p: np.sort(np.abs(draw.floats(b, p, 2, 2)) * 20, 2).reshape(b, p, 4), {0: "batch", 1: "prompts"})}, ("iou_scores", "pred_masks"), ((2, 3), (1, 1), (1, 5), (3, 2)))
library("siglip2", "Siglip2VisionModel", lambda t: t.Siglip2VisionConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, patch_size=4, num_patches=16),
        {"pixel_values": (lambda draw, b, n: draw.floats(b, n, 48), WORDS), "pixel_attention_mask": (lambda draw, b, n: np.ones((b, n), np.int64), WORDS), "spatial_shapes": (lambda draw, b, n: np.array([[2, n // 2], [n // 2, 2], [2, n // 2]][:b], np.int64), {0: "batch"})}, ("last_hidden_state",), ((2, 12), (1, 8), (3, 20)))
picture("zoedepth", "ZoeDepthForDepthEstimation", lambda t: t.ZoeDepthConfig(backbone_config=t.BeitConfig(**{**VISION, "num_hidden_layers": 4}, out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False, use_relative_position_bias=True), neck_hidden_sizes=[8, 16, 24, 32], fusion_hidden_size=16, bottleneck_features=16, bin_embedding_dim=16, num_attractors=[4, 2, 2, 1], num_relative_features=8, bin_configurations=[{"n_bins": 8, "min_depth": 0.1, "max_depth": 10.0, "name": "nyu"}]), ((1, 32, 40), (1, 32, 32), (1, 48, 40), (1, 64, 24)), ("predicted_depth",))
library("vitmatte", "VitMatteForImageMatting", lambda t: t.VitMatteConfig(backbone_config=t.VitDetConfig(num_channels=4, image_size=64, pretrain_image_size=32, patch_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, out_features=["stage2"], window_block_indices=[0], window_size=2, residual_block_indices=[1], use_relative_position_embeddings=True, use_absolute_position_embeddings=True), hidden_size=32, convstream_hidden_sizes=[8, 12, 16], fusion_hidden_sizes=[16, 12, 8, 8]),
        {"pixel_values": (lambda draw, b, h, w: draw.floats(b, 4, h, w), {0: "batch", 2: "h", 3: "w"})}, ("alphas",), ((2, 64, 96), (1, 64, 64), (1, 96, 64), (1, 128, 96)))
# Detectors.
DINO = {**LAYERS, "decoder_layers": 2, "num_queries": 12, "num_feature_levels": 3, "encoder_n_points": 2, "decoder_n_points": 2, "disable_custom_kernels": True}

library("grounding_dino", "GroundingDinoForObjectDetection", lambda t: t.GroundingDinoConfig(**DINO, max_text_len=32, text_config=t.BertConfig(**TEXT), backbone_config=t.SwinConfig(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 2, 2, 4], window_size=4, out_features=["stage2", "stage3", "stage4"])),
        {"pixel_values": (lambda draw, b, h, w, n: draw.floats(b, 3, h, w), {0: "batch", 2: "h", 3: "w"}), "input_ids": (lambda draw, b, h, w, n: draw.ints(60, b, n), WORDS), "attention_mask": (lambda draw, b, h, w, n: np.ones((b, n), np.int64), WORDS)}, ("logits", "pred_boxes"), ((2, 64, 96, 6), (1, 64, 64, 4), (1, 96, 64, 9), (3, 64, 128, 5)))
library("lw_detr", "LwDetrForObjectDetection", lambda t: t.LwDetrConfig(backbone_config=t.LwDetrViTConfig(**{**{k: v for k, v in VISION.items() if k != "intermediate_size"}, "num_hidden_layers": 4}, pretrain_image_size=32, num_windows=4, window_block_indices=[0, 2], out_features=["stage2", "stage4"]), projector_scale_factors=[1.0], d_model=32, decoder_layers=2, decoder_ffn_dim=48, decoder_self_attention_heads=4, decoder_cross_attention_heads=4, decoder_n_points=2, num_queries=12, group_detr=1),
        {"pixel_values": (lambda draw, b: draw.floats(b, 3, 32, 32), {0: "batch"})}, ("logits", "pred_boxes"), ((2,), (1,), (3,)))
# Pictures and words.
CLIP = lambda t: {"text_config": {**{k: v for k, v in TEXT.items()}, "eos_token_id": 59, "projection_dim": 16}, "vision_config": {**VISION, "projection_dim": 16}, "projection_dim": 16}  # noqa: E731
library("clipseg", "CLIPSegForImageSegmentation", lambda t: t.CLIPSegConfig(**CLIP(t), extract_layers=[0, 1], reduce_dim=16, decoder_num_attention_heads=4, decoder_intermediate_size=32), {"input_ids": (ids(), WORDS), "pixel_values": (lambda draw, b, n: draw.floats(b, 3, 32, 32), {0: "batch"})}, ("logits",), ((2, 12), (1, 7), (3, 20)))
library("groupvit", "GroupViTModel", lambda t: t.GroupViTConfig(text_config={**TEXT, "eos_token_id": 59}, vision_config={**VISION, "num_hidden_layers": 3, "depths": [1, 1, 1], "num_group_tokens": [6, 4, 0], "num_output_groups": [6, 4, 4]}, projection_dim=16, projection_intermediate_dim=24), {"input_ids": (ids(), {0: "texts", 1: "length"}), "pixel_values": (lambda draw, b, n: draw.floats(b + 1, 3, 32, 32), {0: "pictures"})}, ("logits_per_image",), ((2, 12), (1, 7), (3, 20)))
library("lxmert", "LxmertModel", lambda t: t.LxmertConfig(vocab_size=60, hidden_size=32, num_attention_heads=4, intermediate_size=48, l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=20), {"input_ids": (ids(), WORDS), "visual_feats": (lambda draw, b, n: draw.floats(b, n + 3, 20), {0: "batch", 1: "regions"}), "visual_pos": (lambda draw, b, n: np.abs(draw.floats(b, n + 3, 4)), {0: "batch", 1: "regions"})}, ("language_output", "vision_output"), ((2, 12), (1, 7), (3, 20)))
library("git", "GitModel", lambda t: t.GitConfig(**TEXT, vision_config=VISION), {"input_ids": (ids(), WORDS), "pixel_values": (lambda draw, b, n: draw.floats(b, 3, 32, 32), {0: "batch"})}, ("last_hidden_state",), ((2, 12), (1, 7), (3, 20)), use_cache=False)
# Texts and experts.
text("olmoe", "OlmoeForCausalLM", lambda t: t.OlmoeConfig(**TEXT, num_experts=6, num_experts_per_tok=2), results=("logits",), use_cache=False)
text("xmod", "XmodModel", lambda t: t.XmodConfig(**TEXT, languages=["en_XX", "de_DE"], default_language="en_XX"))
text("ctrl", "CTRLModel", lambda t: t.CTRLConfig(vocab_size=60, n_embd=32, n_layer=2, n_head=4, dff=48, n_positions=256), use_cache=False)
library("fsmt", "FSMTModel", lambda t: t.FSMTConfig(**LAYERS, langs=["en", "de"], src_vocab_size=60, tgt_vocab_size=60, max_position_embeddings=128), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
library("switch2", "T5Model", lambda t: t.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu"), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
text("luke", "LukeModel", lambda t: t.LukeConfig(**TEXT, entity_vocab_size=20, entity_emb_size=16))
# Sounds.
library("speecht5_asr", "SpeechT5ForSpeechToText", lambda t: t.SpeechT5Config(**{k: v for k, v in SPEECH.items() if k not in ("num_hidden_layers", "num_attention_heads", "intermediate_size")}, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, encoder_max_relative_position=16),
        {"input_values": (lambda draw, b, n, m: draw.floats(b, n), {0: "batch", 1: "samples"}), "decoder_input_ids": (lambda draw, b, n, m: draw.ints(20, b, m), LATER)}, ("logits",), ((2, 1600, 5), (1, 1200, 3), (1, 3000, 9), (3, 1999, 7)), use_cache=False)
library("univnet2", "UnivNetModel", lambda t: t.UnivNetConfig(model_in_channels=8, model_hidden_channels=8, num_mel_bins=12, resblock_kernel_sizes=[3], resblock_stride_sizes=[4], resblock_dilation_sizes=[[1, 3]], kernel_predictor_num_blocks=1, kernel_predictor_hidden_channels=8), {"input_features": (lambda draw, b, n: draw.floats(b, n, 12), WORDS), "noise_sequence": (lambda draw, b, n: draw.floats(b, n, 8), WORDS)}, ("waveforms",), ((2, 12), (1, 7), (3, 20)))
library("whisper", "WhisperModel", lambda t: t.WhisperConfig(**LAYERS, vocab_size=60, num_mel_bins=16, max_source_positions=40, max_target_positions=64, pad_token_id=0), {"input_features": (lambda draw, b, m: draw.floats(b, 16, 80), {0: "batch"}), "decoder_input_ids": (lambda draw, b, m: draw.ints(60, b, m), LATER)}, ("last_hidden_state",), ((2, 5), (1, 3), (1, 9), (3, 7)), use_cache=False)

"""What onnx_sizes.py exports of transformers of kinds that nobody had asked on 2026-11-27: codecs that give codes, series, recurrences and states, tables of words,
sounds, points that are found. Small shapes of the library's own classes, random weights."""

import numpy as np
from onnx_sizes_library import RESNET, SIZES, TEXT, VISION, WORDS, ids, library, ones, picture, text
from onnx_sizes_unnamed import LAYERS

# Codecs: sounds to codes, and codes to sounds.
SOUND = {0: "batch", 2: "samples"}
LENGTHS = ((2, 480), (1, 400), (1, 640), (1, 641), (3, 1000))
ENCODEC = lambda t: t.EncodecConfig(target_bandwidths=[12.0], sampling_rate=2400, num_filters=8, upsampling_ratios=[5, 4], codebook_size=32, codebook_dim=16, hidden_size=16, num_lstm_layers=1, norm_type="weight_norm")  # noqa: E731
DAC = lambda t: t.DacConfig(encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, upsampling_ratios=[4, 2], n_codebooks=3, codebook_size=32, codebook_dim=4, hidden_size=16)  # noqa: E731
MIMI = lambda t: t.MimiConfig(hidden_size=32, num_filters=8, upsampling_ratios=[4, 3], num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4, head_dim=8, intermediate_size=48, codebook_size=32, codebook_dim=16, vector_quantization_hidden_dimension=16, num_quantizers=4, num_semantic_quantizers=1, upsample_groups=32, sliding_window=40, frame_rate=1000.0, sampling_rate=24000)  # noqa: E731
MADE = {"input_values": (lambda draw, b, n: draw.floats(b, 1, n), SOUND)}
library("encodec", "EncodecModel", ENCODEC, MADE, ("audio_values",), LENGTHS)
library("encodec_codes", "EncodecModel", ENCODEC, MADE, ("audio_codes",), LENGTHS)
library("dac", "DacModel", DAC, MADE, ("audio_values", "audio_codes"), LENGTHS)
library("mimi_codes", "MimiModel", MIMI, MADE, ("audio_codes",), ((1, 480), (1, 400), (1, 640), (1, 641), (1, 1000)))
# Series.
library("times_fm", "TimesFmModelForPrediction", lambda t: t.TimesFmConfig(patch_length=8, context_length=32, horizon_length=8, hidden_size=32, intermediate_size=48, head_dim=8, num_hidden_layers=2, num_attention_heads=4), {"past_values": (lambda draw, b, n: draw.floats(b, n), {0: "batch"}), "freq": (lambda draw, b, n: draw.ints(3, b, 1), {0: "batch"})}, ("mean_predictions",), ((2, 32), (1, 32), (3, 32)))
SERIES = {"past_values": (lambda draw, b: draw.floats(b, 48, 3), {0: "batch"})}
library("patchtst_classes", "PatchTSTForClassification", lambda t: t.PatchTSTConfig(num_input_channels=3, context_length=48, patch_length=8, patch_stride=4, d_model=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=24, num_targets=4, use_cls_token=True, scaling="mean"), SERIES, ("prediction_logits",), ((2,), (1,), (5,)))
library("decisions", "DecisionTransformerModel", lambda t: t.DecisionTransformerConfig(state_dim=5, act_dim=3, hidden_size=32, n_layer=2, n_head=4, max_ep_len=64, n_positions=256),
        {"states": (lambda draw, b, n: draw.floats(b, n, 5), WORDS), "actions": (lambda draw, b, n: draw.floats(b, n, 3), WORDS), "returns_to_go": (lambda draw, b, n: draw.floats(b, n, 1), WORDS),
         "timesteps": (lambda draw, b, n: draw.ints(64, b, n), WORDS), "attention_mask": (ones, WORDS)}, ("state_preds", "action_preds", "return_preds"), ((2, 6), (1, 4), (3, 11), (1, 20)))
# Recurrences: some of them are written as loops of Python, so that only the number of texts is open.
LINE = {"input_ids": (ids(), {0: "batch"})}
LINES = ((2, 12), (1, 12), (3, 12), (5, 12))
library("mamba", "MambaForCausalLM", lambda t: t.MambaConfig(vocab_size=60, hidden_size=32, state_size=8, num_hidden_layers=2), LINE, ("logits",), LINES, use_cache=False)
library("falcon_mamba", "FalconMambaForCausalLM", lambda t: t.FalconMambaConfig(vocab_size=60, hidden_size=32, state_size=8, num_hidden_layers=2), LINE, ("logits",), LINES, use_cache=False)
library("rwkv4", "RwkvModel", lambda t: t.RwkvConfig(vocab_size=60, hidden_size=32, attention_hidden_size=32, num_hidden_layers=2, context_length=64), LINE, ("last_hidden_state",), LINES, use_cache=False)
library("xlstm", "xLSTMModel", lambda t: t.xLSTMConfig(vocab_size=60, hidden_size=32, embedding_dim=32, num_heads=4, num_blocks=2, num_hidden_layers=2, chunk_size=4, mode="inference"), LINE, ("last_hidden_state",), LINES, use_cache=False)
library("qwen3_next", "Qwen3NextForCausalLM", lambda t: t.Qwen3NextConfig(**{**TEXT, "num_hidden_layers": 2}, num_key_value_heads=2, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=24, layer_types=["linear_attention", "full_attention"]), LINE, ("logits",), LINES, use_cache=False)
text("lfm2", "Lfm2ForCausalLM", lambda t: t.Lfm2Config(**TEXT, num_key_value_heads=2, layer_types=["conv", "full_attention"]), results=("logits",), use_cache=False)
text("bamba", "BambaForCausalLM", lambda t: t.BambaConfig(**TEXT, num_key_value_heads=2, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8, mamba_chunk_size=16), results=("logits",), use_cache=False)
text("falcon_h1", "FalconH1ForCausalLM", lambda t: t.FalconH1Config(**TEXT, num_key_value_heads=2, head_dim=8, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8, mamba_chunk_size=16), results=("logits",), use_cache=False)
text("nemotron", "NemotronForCausalLM", lambda t: t.NemotronConfig(**TEXT, num_key_value_heads=2), results=("logits",), use_cache=False)
text("gpt_oss", "GptOssForCausalLM", lambda t: t.GptOssConfig(**TEXT, num_key_value_heads=2, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=6, layer_types=["sliding_attention", "full_attention"]), results=("logits",), use_cache=False)
# Texts.
text("tapas", "TapasModel", lambda t: t.TapasConfig(**TEXT, type_vocab_sizes=[3, 256, 256, 2, 256, 256, 10]))
text("reformer", "ReformerModel", lambda t: t.ReformerConfig(vocab_size=60, hidden_size=32, num_attention_heads=4, attention_head_size=8, attn_layers=["local", "local"], feed_forward_size=48, local_attn_chunk_length=4, axial_pos_embds=False, max_position_embeddings=256, is_decoder=True, use_cache=False), sizes=((2, 12), (1, 8), (1, 16), (3, 32)))
text("convbert", "ConvBertModel", lambda t: t.ConvBertConfig(**TEXT, embedding_size=32, conv_kernel_size=5, head_ratio=2))
text("squeezebert", "SqueezeBertModel", lambda t: t.SqueezeBertConfig(**{**TEXT, "embedding_size": 32}, q_groups=4, k_groups=4, v_groups=4, intermediate_groups=4, output_groups=4))
text("ibert", "IBertModel", lambda t: t.IBertConfig(**TEXT, quant_mode=True))
text("yoso", "YosoModel", lambda t: t.YosoConfig(**TEXT, use_expectation=True, conv_window=5))
text("flaubert", "FlaubertModel", lambda t: t.FlaubertConfig(vocab_size=60, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=256))
text("esm", "EsmModel", lambda t: t.EsmConfig(**TEXT, pad_token_id=1, mask_token_id=2, position_embedding_type="rotary", token_dropout=True))
text("biogpt", "BioGptForCausalLM", lambda t: t.BioGptConfig(**TEXT), results=("logits",), use_cache=False)
# Sounds.
library("moonshine", "MoonshineModel", lambda t: t.MoonshineConfig(vocab_size=60, hidden_size=32, intermediate_size=48, encoder_num_hidden_layers=1, decoder_num_hidden_layers=1, encoder_num_attention_heads=4, decoder_num_attention_heads=4, encoder_num_key_value_heads=4, decoder_num_key_value_heads=4),
        {"input_values": (lambda draw, b, n, m: draw.floats(b, n), {0: "batch", 1: "samples"}), "decoder_input_ids": (lambda draw, b, n, m: draw.ints(60, b, m), {0: "batch", 1: "other"})}, ("last_hidden_state",), ((2, 1600, 5), (1, 2000, 3), (1, 3100, 9), (3, 1999, 7)), use_cache=False)
library("fast_speech", "FastSpeech2ConformerModel", lambda t: t.FastSpeech2ConformerConfig(vocab_size=60, hidden_size=32, num_mel_bins=20, encoder_layers=1, decoder_layers=1, encoder_num_attention_heads=2, decoder_num_attention_heads=2, encoder_linear_units=48, decoder_linear_units=48, duration_predictor_channels=16, energy_predictor_channels=16, pitch_predictor_channels=16, speech_decoder_postnet_units=16, speech_decoder_postnet_layers=2, pitch_predictor_layers=2),
        {"input_ids": (ids(), {1: "length"})}, ("spectrogram", "duration_outputs"), ((1, 12), (1, 7), (1, 20), (1, 33)))
library("clap", "ClapAudioModel", lambda t: t.ClapAudioConfig(window_size=4, num_mel_bins=16, spec_size=64, patch_size=4, patch_stride=[4, 4], hidden_size=32, patch_embeds_hidden_size=8, depths=[1, 1], num_attention_heads=[2, 2], num_classes=6, enable_fusion=False), {"input_features": (lambda draw, b: draw.floats(b, 1, 256, 16), {0: "batch"})}, ("last_hidden_state", "pooler_output"), ((2,), (1,), (3,)))
library("speech_text", "Speech2TextModel", lambda t: t.Speech2TextConfig(**LAYERS, vocab_size=60, input_feat_per_channel=20, conv_channels=16, num_conv_layers=2, max_source_positions=256, max_target_positions=64),
        {"input_features": (lambda draw, b, n, m: draw.floats(b, n, 20), {0: "batch", 1: "frames"}), "decoder_input_ids": (lambda draw, b, n, m: draw.ints(60, b, m), {0: "batch", 1: "other"})}, ("last_hidden_state",), ((2, 40, 5), (1, 33, 3), (1, 80, 9), (3, 61, 7)), use_cache=False)
library("vits", "VitsModel", lambda t: t.VitsConfig(vocab_size=38, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, ffn_dim=48, flow_size=16, spectrogram_bins=20, upsample_initial_channel=32, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]], prior_encoder_num_flows=2, use_stochastic_duration_prediction=False, noise_scale=0.0, noise_scale_duration=0.0),
        {"input_ids": (ids(38), {1: "length"})}, ("waveform",), ((1, 12), (1, 7), (1, 20), (1, 33)))
# Pictures.
picture("superpoint", "SuperPointForKeypointDetection", lambda t: t.SuperPointConfig(encoder_hidden_sizes=[8, 8, 16, 16], decoder_hidden_size=24, keypoint_decoder_dim=65, descriptor_decoder_dim=16, keypoint_threshold=0.0153, max_keypoints=-1, initializer_range=0.3), ((1, 64, 96), (1, 64, 64), (1, 96, 72), (1, 80, 112)), ("keypoints", "scores", "descriptors"), axes={2: "h", 3: "w"})
picture("conditional", "ConditionalDetrForObjectDetection", lambda t: t.ConditionalDetrConfig(**LAYERS, num_queries=12, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("yolos", "YolosForObjectDetection", lambda t: t.YolosConfig(**{**VISION, "image_size": [32, 32]}, num_detection_tokens=6), ((2, 32, 40), (1, 32, 32), (1, 48, 40), (3, 64, 24)), ("logits", "pred_boxes"))
picture("dinov2", "Dinov2Model", lambda t: t.Dinov2Config(**VISION), ((2, 32, 40), (1, 32, 32), (1, 48, 40), (3, 64, 24)), ("last_hidden_state",))
picture("segformer", "SegformerForSemanticSegmentation", lambda t: t.SegformerConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16, num_labels=5), SIZES, ("logits",))
picture("swinv2", "Swinv2Model", lambda t: t.Swinv2Config(image_size=64, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4), SIZES, ("last_hidden_state",))
picture("focalnet", "FocalNetModel", lambda t: t.FocalNetConfig(image_size=64, patch_size=4, embed_dim=8, depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3], hidden_sizes=[8, 16]), SIZES, ("last_hidden_state",))
picture("hiera", "HieraModel", lambda t: t.HieraConfig(embed_dim=8, image_size=[64, 64], depths=[1, 1, 1], num_heads=[1, 2, 4], query_stride=[2, 2], masked_unit_size=[4, 4], num_query_pool=2), ((2, 64, 64), (1, 64, 64), (3, 64, 64)), ("last_hidden_state",), axes={0: "batch"})
picture("dinov3", "DINOv3ViTModel", lambda t: t.DINOv3ViTConfig(**VISION, num_register_tokens=2), ((2, 32, 40), (1, 32, 32), (1, 48, 40), (3, 64, 24)), ("last_hidden_state",))
picture("depth_anything", "DepthAnythingForDepthEstimation", lambda t: t.DepthAnythingConfig(backbone_config=t.Dinov2Config(**{**VISION, "num_hidden_layers": 4}, out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False, apply_layernorm=True), reassemble_hidden_size=32, patch_size=8, neck_hidden_sizes=[8, 16, 24, 32], fusion_hidden_size=16, head_hidden_size=8), ((1, 32, 40), (1, 32, 32), (1, 48, 40), (1, 64, 24)), ("predicted_depth",))
library("dual_encoder", "VisionTextDualEncoderModel", lambda t: t.VisionTextDualEncoderConfig(text_config=t.BertConfig(**TEXT).to_dict(), vision_config=t.ViTConfig(**VISION).to_dict(), projection_dim=16), {"input_ids": (lambda draw, b, n: draw.ints(60, b, n), {0: "texts", 1: "length"}), "pixel_values": (lambda draw, b, n: draw.floats(b + 1, 3, 32, 32), {0: "pictures"})}, ("logits_per_image", "text_embeds"), ((2, 12), (1, 7), (3, 20)))
library("pix2struct", "Pix2StructVisionModel", lambda t: t.Pix2StructVisionConfig(hidden_size=32, patch_embed_hidden_size=192, d_ff=48, d_kv=8, num_hidden_layers=2, num_attention_heads=4, seq_len=64), {"flattened_patches": (lambda draw, b, n: np.concatenate([np.tile(np.arange(n)[None, :, None], (b, 1, 2)).astype(np.float32), draw.floats(b, n, 192)], -1), WORDS)}, ("last_hidden_state",), ((2, 12), (1, 7), (3, 20), (1, 33)))

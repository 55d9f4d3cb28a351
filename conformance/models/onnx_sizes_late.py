"""What onnx_sizes.py exports of transformers that nobody had asked at the end of 2026-11-27: decoders with windows, latent attention and sparse activations, encoders of
pictures, queries that read patches, speech. Small shapes of the library's own classes, random weights."""

from onnx_sizes_library import PAIR, PAIRS, SIZES, TEXT, VISION, library, ones, picture, text

KV = {**TEXT, "num_key_value_heads": 2}
HEAD = {**KV, "head_dim": 8}

# Texts.
text("gemma3n", "Gemma3nForCausalLM", lambda t: t.Gemma3nTextConfig(**{**HEAD, "intermediate_size": [48, 48]}, vocab_size_per_layer_input=60, hidden_size_per_layer_input=8, num_kv_shared_layers=0, laurel_rank=4, sliding_window=8, layer_types=["sliding_attention", "full_attention"], activation_sparsity_pattern=[0.95, 0.0], pad_token_id=0), results=("logits",), use_cache=False)
text("doge", "DogeForCausalLM", lambda t: t.DogeConfig(**KV, keep_window_size=8), results=("logits",), use_cache=False)
text("vaultgemma", "VaultGemmaForCausalLM", lambda t: t.VaultGemmaConfig(**HEAD, sliding_window=8), results=("logits",), use_cache=False)
text("minicpm", "MiniCPM3ForCausalLM", lambda t: t.MiniCPM3Config(**{**TEXT, "num_key_value_heads": 4}, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8), results=("logits",), use_cache=False)
library("t5gemma", "T5GemmaForConditionalGeneration", lambda t: t.T5GemmaConfig(encoder=t.T5GemmaModuleConfig(**HEAD, sliding_window=8), decoder=t.T5GemmaModuleConfig(**HEAD, sliding_window=8), vocab_size=60), PAIR, ("logits",), PAIRS, use_cache=False)
# Pictures.
picture("ijepa", "IJepaModel", lambda t: t.IJepaConfig(**VISION), ((2, 32, 32), (1, 32, 32), (3, 32, 32)), ("last_hidden_state",), axes={0: "batch"})
picture("regnet", "RegNetForImageClassification", lambda t: t.RegNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=8, layer_type="y"), SIZES, ("logits",))
# Pictures with texts.
library("qformer", "Blip2QFormerModel", lambda t: t.Blip2QFormerConfig(**TEXT, encoder_hidden_size=24, cross_attention_frequency=2), {"query_embeds": (lambda draw, b, n, m: draw.floats(b, n, 32), {0: "batch", 1: "queries"}), "encoder_hidden_states": (lambda draw, b, n, m: draw.floats(b, m, 24), {0: "batch", 1: "patches"})}, ("last_hidden_state",), ((2, 6, 10), (1, 4, 7), (3, 9, 33)))
# Sounds.
FRAMES = ((2, 40), (1, 33), (1, 80), (3, 65))
library("parakeet", "ParakeetForCTC", lambda t: t.ParakeetCTCConfig(vocab_size=30, encoder_config=t.ParakeetEncoderConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_mel_bins=16, subsampling_conv_channels=16, conv_kernel_size=5).to_dict()), {"input_features": (lambda draw, b, n: draw.floats(b, n, 16), {0: "batch", 1: "frames"}), "attention_mask": (ones, {0: "batch", 1: "frames"})}, ("logits",), FRAMES)

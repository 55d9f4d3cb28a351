"""What onnx_sizes.py exports of transformers and timm that nobody had asked by the morning of 2026-11-28: decoders with shared experts, scores of caps and norms of heads,
texts, pictures by attention in windows and grids, sounds, series. Small shapes of the library's own classes, random weights."""

from onnx_sizes_fresh import LOGITS, backbone, batched
from onnx_sizes_library import SIZES, TEXT, VISION, library, picture, text

KV = {**TEXT, "num_key_value_heads": 2}
HEAD = {**KV, "head_dim": 8}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}

# Decoders.
text("qwen2_moe", "Qwen2MoeForCausalLM", lambda t: batched(t.Qwen2MoeConfig(**KV, **EXPERTS, num_experts=4, shared_expert_intermediate_size=24)), **LOGITS)
text("glm4_moe", "Glm4MoeForCausalLM", lambda t: batched(t.Glm4MoeConfig(**HEAD, **EXPERTS, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1)), **LOGITS)
text("ernie_moe", "Ernie4_5_MoeForCausalLM", lambda t: batched(t.Ernie4_5_MoeConfig(**KV, moe_intermediate_size=16, moe_num_experts=4, moe_k=2, moe_layer_start_index=1)), **LOGITS)
text("phimoe", "PhimoeForCausalLM", lambda t: batched(t.PhimoeConfig(**KV, num_local_experts=4)), **LOGITS)
text("hunyuan_moe", "HunYuanMoEV1ForCausalLM", lambda t: batched(t.HunYuanMoEV1Config(**HEAD, num_experts=4, moe_topk=2)), **LOGITS)
text("deepseek_v3", "DeepseekV3ForCausalLM", lambda t: batched(t.DeepseekV3Config(**{**TEXT, "num_key_value_heads": 4}, moe_intermediate_size=16, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)), **LOGITS)
text("jetmoe", "JetMoeForCausalLM", lambda t: batched(t.JetMoeConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_key_value_heads=2, kv_channels=8, intermediate_size=48, num_local_experts=4, num_experts_per_tok=2)), **LOGITS)
text("flex_olmo", "FlexOlmoForCausalLM", lambda t: batched(t.FlexOlmoConfig(**KV, pad_token_id=0, num_experts=4, num_experts_per_tok=2)), **LOGITS)
text("dots1", "Dots1ForCausalLM", lambda t: batched(t.Dots1Config(**HEAD, **EXPERTS, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1)), **LOGITS)
# Texts.
text("mpnet", "MPNetModel", lambda t: t.MPNetConfig(**TEXT))
text("ernie", "ErnieModel", lambda t: t.ErnieConfig(**TEXT, use_task_id=True))
text("megatron", "MegatronBertModel", lambda t: t.MegatronBertConfig(**TEXT))
text("rembert", "RemBertModel", lambda t: t.RemBertConfig(**TEXT, input_embedding_size=16, output_embedding_size=16))
text("xlm", "XLMModel", lambda t: t.XLMConfig(vocab_size=60, emb_dim=32, n_layers=2, n_heads=4, max_position_embeddings=128))
text("modernbert_decoder", "ModernBertDecoderForCausalLM", lambda t: t.ModernBertDecoderConfig(**TEXT, local_attention=8, pad_token_id=0), **LOGITS)
text("splinter", "SplinterModel", lambda t: t.SplinterConfig(**TEXT))
text("roc_bert", "RoCBertModel", lambda t: t.RoCBertConfig(**TEXT, pronunciation_vocab_size=20, shape_vocab_size=20, enable_pronunciation=False, enable_shape=False))
# Pictures.
picture("cvt", "CvtModel", lambda t: t.CvtConfig(embed_dim=[8, 16, 24], num_heads=[1, 2, 3], depth=[1, 2, 3]), SIZES, ("last_hidden_state",))
picture("vit_msn", "ViTMSNModel", lambda t: t.ViTMSNConfig(**VISION), ((2, 32, 32), (1, 32, 32), (3, 32, 32)), ("last_hidden_state",), axes={0: "batch"})
picture("beit", "BeitModel", lambda t: t.BeitConfig(**VISION, use_relative_position_bias=True), ((2, 32, 32), (1, 32, 32), (3, 32, 32)), ("last_hidden_state",), axes={0: "batch"})
picture("data2vec_vision", "Data2VecVisionModel", lambda t: t.Data2VecVisionConfig(**VISION, use_relative_position_bias=True), ((2, 32, 32), (1, 32, 32), (3, 32, 32)), ("last_hidden_state",), axes={0: "batch"})
picture("bit", "BitModel", lambda t: t.BitConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="bottleneck", num_groups=4), SIZES, ("last_hidden_state",))
picture("mobilenet_v1", "MobileNetV1Model", lambda t: t.MobileNetV1Config(depth_multiplier=0.25), SIZES, ("last_hidden_state",))
picture("dinov2_registers", "Dinov2WithRegistersModel", lambda t: t.Dinov2WithRegistersConfig(**VISION, num_register_tokens=2), ((2, 32, 32), (1, 32, 48), (3, 48, 32)), ("last_hidden_state",))
backbone("coatnet", "coatnet_nano_rw_224", ((2, 224, 224), (1, 224, 224)))
backbone("efficientvit", "efficientvit_b0")
backbone("fastvit", "fastvit_t8")
backbone("inception_next", "inception_next_atto")
backbone("starnet", "starnet_s050")
backbone("rdnet", "rdnet_tiny", ((1, 64, 96), (2, 64, 64)))
backbone("hgnet", "hgnetv2_b0")
backbone("tiny_vit", "tiny_vit_5m_224", ((2, 224, 224), (1, 224, 224)))
backbone("mambaout", "mambaout_femto")
# Sounds and series.
library("clvp", "ClvpEncoder", lambda t: t.ClvpEncoderConfig(**{**TEXT, "hidden_size": 128}, projection_dim=16), {"input_ids": (lambda draw, b, n: draw.ints(60, b, n), {0: "batch", 1: "n"})}, ("last_hidden_state",), ((2, 12), (1, 7), (3, 20)))

"""What onnx_sizes.py exports of kinds that nobody had named on 2026-11-27: detectors that read tables and pages, segmentation by queries, long texts, codecs of speech.
Small shapes of the library's own classes, random weights."""

from onnx_sizes_library import PAIR, PAIRS, RESNET, SIZES, library, picture, wave

SPEECH = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "conv_dim": [16, 16, 16], "conv_stride": [5, 4, 2], "conv_kernel": [10, 8, 4],
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
LAYERS = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "d_model": 32}
SAMPLES = ((2, 1600), (1, 1200), (1, 3000), (3, 1999))

picture("table_transformer", "TableTransformerForObjectDetection", lambda t: t.TableTransformerConfig(**LAYERS, num_queries=12, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=RESNET(t)), SIZES, ("logits", "pred_boxes"))
picture("textnet", "TextNetModel", lambda t: t.TextNetConfig(stem_out_channels=8, hidden_sizes=[8, 8, 16, 24, 32]), SIZES, ("last_hidden_state",))
picture("swiftformer", "SwiftFormerModel", lambda t: t.SwiftFormerConfig(image_size=64, depths=[1, 1, 1, 1], embed_dims=[8, 16, 24, 32]), SIZES, ("last_hidden_state",))
picture("eomt", "EomtForUniversalSegmentation", lambda t: t.EomtConfig(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=64, patch_size=8, mlp_ratio=2, num_blocks=2, num_queries=6), ((2, 64, 64), (1, 64, 64), (3, 64, 64)), ("class_queries_logits", "masks_queries_logits"), axes={0: "batch"})
picture("hgnet", "HGNetV2ForImageClassification", lambda t: t.HGNetV2Config(stem_channels=[3, 8, 8], stage_in_channels=[8, 16, 24, 32], stage_mid_channels=[8, 8, 8, 8], stage_out_channels=[16, 24, 32, 40], stage_num_blocks=[1, 1, 1, 1], stage_numb_of_layers=[2, 2, 2, 2], hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1]), SIZES, ("logits",))
wave("sewd", "SEWDModel", lambda t: t.SEWDConfig(**SPEECH, position_buckets=16), SAMPLES)
library("longt5", "LongT5Model", lambda t: t.LongT5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, local_radius=7), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
library("pegasus_x", "PegasusXModel", lambda t: t.PegasusXConfig(**LAYERS, vocab_size=60, num_global_tokens=4, block_size=8, max_position_embeddings=128), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
library("plbart", "PLBartModel", lambda t: t.PLBartConfig(**LAYERS, vocab_size=60, max_position_embeddings=128), PAIR, ("last_hidden_state",), PAIRS, use_cache=False)
library("roformer", "RoFormerModel", lambda t: t.RoFormerConfig(vocab_size=60, embedding_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=128), {name: PAIR[name] for name in ("input_ids", "attention_mask")}, ("last_hidden_state",), tuple(one[:2] for one in PAIRS))

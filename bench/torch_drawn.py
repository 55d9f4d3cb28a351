"""A fourth set of networks for compare_networks.py (SET=drawn): drawn by lot (seed 20261128) from the families of timm and the models of
transformers that no measurement had named. Of the lot, those stay that have one input and that PyTorch's CUDA graphs can hold."""

import timm
import torch
import transformers as tr

from torch_networks import Makers, Of, last, logits

# Of timm: one of each family that the other sets lack, and of sixteen others one more.
IMAGES = {
    "cpubone_b2pt5_dwnorm": 256,
    "cspnext_tiny": 224,
    "efficientvim_m1_dist": 224,
    "hardcorenas_b": 224,
    "iformer_l_distilled": 224,
    "inception_resnet_v2": 299,
    "inception_v4": 299,
    "lcnetv2_large": 224,
    "lowformer_e1": 224,
    "repghostnet_050": 224,
    "legacy_seresnet101": 224,
    "swin_small_patch4_window7_224": 224,
    "swinv2_cr_small_ns_224": 224,
    "tresnet_m": 224,
    "vit_tiny_r_s16_p8_224": 224,
    "vit_relpos_small_patch16_rpn_224": 224,
    "legacy_xception": 299,
    "nf_ecaresnet50": 224,
    "volo_d2_224": 224,
    "crossvit_9_240": 240,
    "fasternet_t1": 224,
    "ese_vovnet57b": 256,
    "convnextv2_small": 224,
    "swinv2_small_window8_256": 256,
    "gcvit_xtiny": 224,
    "mobilevit_s": 256,
    "levit_384_s8": 224,
    "lcnet_075": 224,
    "shvit_s2": 224,
    "resnetv2_18d": 224,
}


def others(batch):
    """Networks of transformers: text, sound, pictures, finders of objects."""

    makers = Makers(batch)
    tokens, given, of = makers.tokens, makers.given, makers.of

    def picture(side=224):
        return given(3, side, side)

    def decoder(name, attention="sdpa", config=None, **changes):
        config = config or name.replace("ForCausalLM", "Config")
        return of(name, logits, lambda: tokens(256), attention, config, vocab_size=8000, **changes)

    grouped = dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4)
    feature = lambda net, x: net(x).last_hidden_state
    return {
        "nystromformer_base": of("NystromformerModel", last, tokens, "eager", "NystromformerConfig", segment_means_seq_len=128, num_landmarks=32),
        "xlm_roberta_base": of("XLMRobertaModel", last, tokens, config="XLMRobertaConfig", vocab_size=8000, hidden_size=768),
        "xlm_roberta_wide": of(
            "XLMRobertaXLModel", last, tokens, "eager", "XLMRobertaXLConfig", vocab_size=8000, hidden_size=1024, num_hidden_layers=6, num_attention_heads=16, intermediate_size=4096
        ),
        "ernie_base": of("ErnieModel", last, tokens, "eager", "ErnieConfig", vocab_size=8000),
        "luke_base": of("LukeModel", last, tokens, "eager", "LukeConfig", vocab_size=8000, entity_vocab_size=1000, use_entity_aware_attention=False),
        "mt5_encoder": of("MT5EncoderModel", last, tokens, "eager", "MT5Config", vocab_size=8000, d_model=512, d_ff=1024, num_layers=8, num_heads=6),
        "arcee_prompt": decoder("ArceeForCausalLM", **grouped),
        "olmo3_prompt": decoder("Olmo3ForCausalLM", **grouped),
        "granite_prompt": decoder("GraniteForCausalLM", **grouped),
        "ernie4_5_prompt": decoder("Ernie4_5ForCausalLM", config="Ernie4_5Config", **grouped),
        "gpt_bigcode_prompt": decoder("GPTBigCodeForCausalLM"),
        "biogpt_prompt": decoder("BioGptForCausalLM", hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
        "apertus_prompt": decoder("ApertusForCausalLM", **grouped),
        "wav2vec2_conformer": of(
            "Wav2Vec2ConformerModel", last, lambda: given(16000), "eager", "Wav2Vec2ConformerConfig", hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048
        ),
        "sew_d_tiny": of("SEWDModel", last, lambda: given(16000), "eager", "SEWDConfig"),
        "moonshine_encoder": lambda: (
            Of(tr.MoonshineModel(tr.MoonshineConfig(attn_implementation="sdpa")).encoder, feature),
            given(16000),
        ),
        "vitdet_base": of("VitDetModel", lambda net, x: net(x).last_hidden_state, picture, "eager", "VitDetConfig", image_size=224),
        "pvt_tiny": of("PvtModel", last, picture, "eager", "PvtConfig"),
        "cvt_13": of("CvtModel", feature, picture, "eager", "CvtConfig"),
        "mobilenet_v1": of("MobileNetV1Model", feature, picture, "eager", "MobileNetV1Config"),
        "textnet_base": of("TextNetModel", feature, picture, "eager", "TextNetConfig"),
        "focalnet_hf": of("FocalNetModel", feature, picture, "eager", "FocalNetConfig"),
        "swin_hf": of("SwinModel", last, picture, "eager", "SwinConfig"),
        "beit_segmentation": of(
            "BeitForSemanticSegmentation", lambda net, x: net(x).logits, picture, "eager", "BeitConfig", hidden_size=384, num_attention_heads=6, intermediate_size=1536, out_indices=[3, 5, 7, 11]
        ),
        "d_fine": of("DFineForObjectDetection", lambda net, x: net(x).pred_boxes, lambda: picture(320), "eager", "DFineConfig"),
        "deformable_detr": of(
            "DeformableDetrForObjectDetection", lambda net, x: net(x).logits, lambda: picture(320), "eager", "DeformableDetrConfig", use_pretrained_backbone=False, use_timm_backbone=True
        ),
    }


def made(batch):
    """For each network a function that makes it, and its input."""

    def of_timm(name, size):
        return lambda: (timm.create_model(name, pretrained=False, exportable=True), (torch.randn(batch, 3, size, size),))

    return {name: of_timm(name, size) for name, size in IMAGES.items()} | others(batch)

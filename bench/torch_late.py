"""A third set of networks for compare_networks.py (SET=late): those of timm, torchvision and transformers that no measurement
had named before 2026-11-28, drawn after the kernels and passes of that day were written."""

import timm
import torch
import torchvision.models as tv
import transformers as tr

from torch_networks import Makers, Of, last, logits

# Of timm: convolutions, transformers of several kinds, and both.
IMAGES = {
    "botnet26t_256": 256,
    "caformer_s18": 224,
    "coat_lite_mini": 224,
    "convformer_s18": 224,
    "convit_tiny": 224,
    "cspdarknet53": 256,
    "cspresnet50": 256,
    "darknet53": 256,
    "efficientformerv2_s1": 224,
    "efficientvit_b1": 224,
    "efficientvit_m3": 224,
    "ese_vovnet19b_dw": 224,
    "fasternet_t0": 224,
    "fbnetv3_b": 224,
    "flexivit_small": 240,
    "gcvit_xxtiny": 224,
    "gernet_m": 224,
    "halonet26t": 256,
    "lambda_resnet26t": 256,
    "mixnet_s": 224,
    "mobilevitv2_100": 256,
    "mvitv2_tiny": 224,
    "nest_tiny": 224,
    "nextvit_small": 224,
    "pit_s_224": 224,
    "rdnet_tiny": 224,
    "regnetz_b16": 224,
    "repvit_m1_1": 224,
    "resmlp_12_224": 224,
    "resnest26d": 224,
    "resnetv2_50": 224,
    "rexnet_100": 224,
    "selecsls42b": 224,
    "sequencer2d_s": 224,
    "shvit_s1": 224,
    "swiftformer_s": 224,
    "tinynet_a": 192,
    "tnt_s_patch16_224": 224,
    "visformer_small": 224,
    "vitamin_small_224": 224,
    "volo_d1_224": 224,
}


def others(batch):
    """Networks of transformers and torchvision: text, sound, films, depth, larger pictures."""

    makers = Makers(batch)
    tokens, given, of = makers.tokens, makers.given, makers.of

    full = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12)
    grouped = dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4)
    return {
        "convbert_base": of("ConvBertModel", last, tokens, "eager", "ConvBertConfig"),
        "fnet_base": of("FNetModel", last, tokens, "eager", "FNetConfig"),
        "roformer_base": of("RoFormerModel", last, tokens, "eager", "RoFormerConfig"),
        "xlnet_base": of("XLNetModel", last, tokens, "eager", "XLNetConfig", d_model=768, n_layer=12, n_head=12, d_inner=3072),
        "bart_encoder": lambda: (
            Of(tr.BartModel(tr.BartConfig(attn_implementation="sdpa")).encoder, last),
            tokens(),
        ),
        "modernbert_base": of("ModernBertModel", last, tokens, config="ModernBertConfig"),
        "mistral_prompt": of("MistralForCausalLM", logits, lambda: tokens(256), config="MistralConfig", vocab_size=8000, **grouped),
        "qwen3_prompt": of(
            "Qwen3ForCausalLM", logits, lambda: tokens(256), config="Qwen3Config", vocab_size=8000, head_dim=64, **grouped
        ),
        "falcon_prompt": of(
            "FalconForCausalLM",
            logits,
            lambda: tokens(256),
            config="FalconConfig",
            vocab_size=8000,
            hidden_size=768,
            num_hidden_layers=12,
            num_attention_heads=12,
            multi_query=True,
        ),
        "gptj_prompt": of(
            "GPTJForCausalLM", logits, lambda: tokens(256), "eager", "GPTJConfig", vocab_size=8000, n_embd=768, n_layer=12, n_head=12
        ),
        "stablelm_prompt": of("StableLmForCausalLM", logits, lambda: tokens(256), config="StableLmConfig", vocab_size=8000, **full),
        "wavlm_base": of("WavLMModel", last, lambda: given(16000), "eager", "WavLMConfig"),
        "sew_tiny": of("SEWModel", last, lambda: given(16000), "eager", "SEWConfig"),
        "dinov3_small": of(
            "DINOv3ViTModel", last, lambda: given(3, 224, 224), config="DINOv3ViTConfig", hidden_size=384, num_attention_heads=6, intermediate_size=1536
        ),
        "swin2sr": of(
            "Swin2SRForImageSuperResolution",
            lambda net, x: net(x).reconstruction,
            lambda: given(3, 64, 64),
            "eager",
            "Swin2SRConfig",
        ),
        "glpn": of("GLPNForDepthEstimation", lambda net, x: net(x).predicted_depth, lambda: given(3, 256, 256), "eager", "GLPNConfig"),
        "googlenet": lambda: (tv.googlenet(weights=None, init_weights=False), given(3, 224, 224)),
        "alexnet": lambda: (tv.alexnet(), given(3, 224, 224)),
        "r2plus1d_18": lambda: (tv.video.r2plus1d_18(), given(3, 8, 112, 112)),
        "mc3_18": lambda: (tv.video.mc3_18(), given(3, 8, 112, 112)),
    }


def made(batch):
    """For each network a function that makes it, and its input."""

    def of_timm(name, size):
        return lambda: (timm.create_model(name, pretrained=False, exportable=True), (torch.randn(batch, 3, size, size),))

    return {name: of_timm(name, size) for name, size in IMAGES.items()} | others(batch)

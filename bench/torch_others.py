"""More networks for compare_networks.py (SET=others): those of timm, torchvision and transformers that no measurement of this
project had named before 2026-11-27. They show how the ones that were looked at differ from the rest."""

import timm
import torch
import torchvision.models as tv
import transformers as tr

from torch_networks import Makers, Of, last, logits

# Of timm, by what each is for: convolutions, transformers, both, and small ones for phones.
IMAGES = {
    "resnext50_32x4d": 224,
    "seresnet50": 224,
    "ecaresnet50t": 224,
    "nfnet_l0": 224,
    "repvgg_a2": 224,
    "vgg16_bn": 224,
    "inception_v3": 299,
    "xception41": 299,
    "dpn68": 224,
    "hrnet_w18_small": 224,
    "dla34": 224,
    "res2net50_26w_4s": 224,
    "convmixer_768_32": 224,
    "inception_next_tiny": 224,
    "hgnetv2_b2": 224,
    "ghostnetv2_100": 224,
    "mobileone_s1": 224,
    "tf_efficientnetv2_s": 224,
    "mobilenetv4_conv_small": 224,
    "lcnet_100": 224,
    "edgenext_small": 256,
    "efficientformer_l1": 224,
    "fastvit_t8": 256,
    "poolformer_s12": 224,
    "levit_256": 224,
    "tiny_vit_11m_224": 224,
    "deit3_small_patch16_224": 224,
    "beitv2_base_patch16_224": 224,
    "eva02_small_patch14_224": 224,
    "cait_xxs24_224": 224,
    "xcit_tiny_12_p16_224": 224,
    "crossvit_15_240": 240,
    "mixer_b16_224": 224,
    "gmlp_s16_224": 224,
    "maxvit_tiny_tf_224": 224,
    "coatnet_0_rw_224": 224,
    "swinv2_tiny_window8_256": 256,
    "focalnet_tiny_srf": 224,
    "davit_tiny": 224,
    "pvt_v2_b1": 224,
    "twins_svt_small": 224,
    "mambaout_tiny": 224,
    "starnet_s2": 224,
    "hiera_tiny_224": 224,
    # Groups of 4 to 64 channels, drawn after the kernel for them was written.
    "regnetx_016": 224,
    "regnety_032": 224,
    "resnext101_32x8d": 224,
    "seresnext26d_32x4d": 224,
    "skresnext50_32x4d": 224,
    "gcresnext26ts": 256,
}


def texts(batch):
    """Networks of transformers: of text, sound, and of pictures where timm has none of the kind."""

    makers = Makers(batch)
    tokens, given, of = makers.tokens, makers.given, makers.of

    def picture(size=224):
        return given(3, size, size)

    qwen = dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=12, num_attention_heads=14, num_key_value_heads=2)
    gemma = dict(hidden_size=640, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=1)
    phi = dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16)
    small = dict(vocab_size=8000, pad_token_id=0)
    neox = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, vocab_size=8000)
    return {
        "roberta_base": of("RobertaModel", last, tokens, config="RobertaConfig"),
        "albert_base": of(
            "AlbertModel", last, tokens, config="AlbertConfig", hidden_size=768, num_attention_heads=12, intermediate_size=3072
        ),
        "deberta_v2": of(
            "DebertaV2Model",
            last,
            tokens,
            "eager",
            "DebertaV2Config",
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=6,
            intermediate_size=1536,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
        ),
        "mpnet_base": of("MPNetModel", last, tokens, "eager", "MPNetConfig"),
        "mobilebert": of("MobileBertModel", last, tokens, "eager", "MobileBertConfig"),
        "squeezebert": of("SqueezeBertModel", last, tokens, "eager", "SqueezeBertConfig"),
        "clip_text": of("CLIPTextModel", last, lambda: tokens(77), config="CLIPTextConfig"),
        "siglip_vision": of("SiglipVisionModel", last, picture, config="SiglipVisionConfig", image_size=224),
        "dinov2_small": of(
            "Dinov2Model", last, picture, config="Dinov2Config", hidden_size=384, num_attention_heads=6, image_size=224, patch_size=14
        ),
        "dpt_small": of(
            "DPTForDepthEstimation",
            lambda net, x: net(x).predicted_depth,
            picture,
            "eager",
            "DPTConfig",
            hidden_size=384,
            num_attention_heads=6,
            intermediate_size=1536,
            image_size=224,
            neck_hidden_sizes=[48, 96, 192, 384],
            fusion_hidden_size=64,
        ),
        "detr_resnet50": of(
            "DetrModel", last, lambda: picture(320), "eager", "DetrConfig", use_timm_backbone=True, use_pretrained_backbone=False
        ),
        "hubert_base": of("HubertModel", last, lambda: given(16000), config="HubertConfig"),
        "ast": of("ASTModel", last, lambda: given(512, 128), config="ASTConfig", max_length=512),
        "videomae_small": of(
            "VideoMAEModel",
            last,
            lambda: given(8, 3, 224, 224),
            config="VideoMAEConfig",
            num_frames=8,
            hidden_size=384,
            num_attention_heads=6,
            intermediate_size=1536,
        ),
        "qwen2_prompt": of("Qwen2ForCausalLM", logits, lambda: tokens(256), config="Qwen2Config", **small, **qwen),
        "gemma2_prompt": of(
            "Gemma2ForCausalLM", logits, lambda: tokens(256), "eager", "Gemma2Config", head_dim=256, **small, **gemma
        ),
        "phi3_prompt": of("Phi3ForCausalLM", logits, lambda: tokens(256), config="Phi3Config", **small, **phi),
        "gpt_neox_prompt": of("GPTNeoXForCausalLM", logits, lambda: tokens(256), config="GPTNeoXConfig", **neox),
        "bloom_prompt": of(
            "BloomForCausalLM", logits, lambda: tokens(256), "eager", "BloomConfig", vocab_size=8000, hidden_size=768, n_layer=12, n_head=12
        ),
        "resnet3d_18": lambda: (tv.video.r3d_18(), given(3, 8, 112, 112)),
        "crnn": lambda: (Of(Reader(), lambda net, x: net(x)), given(1, 32, 160)),
        "style_transfer": lambda: (Stylist(), picture(256)),
        "super_resolution": lambda: (Enlarger(), picture(128)),
        "denoiser_1d": lambda: (Denoiser(), given(1, 16384)),
    }


class Reader(torch.nn.Module):
    """Lines of text: convolutions, two recurrent layers in both directions, a class for each column."""

    def __init__(self, classes=97):
        super().__init__()
        nn, layers, before = torch.nn, [], 1
        for after, pool in ((64, 2), (128, 2), (256, (2, 1)), (256, (2, 1)), (512, (2, 1))):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(pool)]
            before = after
        self.columns = nn.Sequential(*layers)
        self.lines = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(512, classes)

    def forward(self, x):
        return self.out(self.lines(self.columns(x).squeeze(2).transpose(1, 2))[0])


class Stylist(torch.nn.Module):
    """Fast style transfer: instance norms, residual blocks, reflected borders, enlarging by neighbours."""

    def __init__(self):
        super().__init__()
        nn = torch.nn

        def layer(before, after, size, stride=1, larger=False):
            parts = [nn.Upsample(scale_factor=2.0)] if larger else []
            parts += [nn.ReflectionPad2d(size // 2), nn.Conv2d(before, after, size, stride)]
            return parts + [nn.InstanceNorm2d(after, affine=True)]

        relu = nn.ReLU()
        self.first = nn.Sequential(*layer(3, 32, 9), relu, *layer(32, 64, 3, 2), relu, *layer(64, 128, 3, 2), relu)
        self.blocks = nn.ModuleList(nn.Sequential(*layer(128, 128, 3), nn.ReLU(), *layer(128, 128, 3)) for _ in range(5))
        self.last = nn.Sequential(*layer(128, 64, 3, larger=True), relu, *layer(64, 32, 3, larger=True), relu)
        self.out = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(self.last(x))


class Enlarger(torch.nn.Module):
    """Residual blocks without norms, then places out of channels, as EDSR."""

    def __init__(self, width=64, blocks=16):
        super().__init__()
        nn = torch.nn
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)) for _ in range(blocks)
        )
        self.up = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        first = x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.up(x + first)


class Denoiser(torch.nn.Module):
    """Sound by a U-Net of one dimension: long kernels with strides, gates, transposed convolutions, a recurrent layer."""

    def __init__(self, widths=(48, 96, 192, 384)):
        super().__init__()
        nn, before = torch.nn, 1
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for after in widths:
            self.down.append(
                nn.Sequential(nn.Conv1d(before, after, 8, 4, padding=2), nn.ReLU(), nn.Conv1d(after, 2 * after, 1), nn.GLU(1))
            )
            self.up.insert(
                0, nn.Sequential(nn.Conv1d(after, 2 * after, 1), nn.GLU(1), nn.ConvTranspose1d(after, before, 8, 4, padding=2))
            )
            before = after
        self.middle = nn.LSTM(widths[-1], widths[-1], batch_first=True)

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
        x = self.middle(x.transpose(1, 2))[0].transpose(1, 2)
        for place, level in enumerate(self.up):
            x = level(x + kept.pop())
            x = torch.relu(x) if place + 1 < len(self.up) else x
        return x


def made(batch):
    """For each network a function that makes it, and its input."""

    def of_timm(name, size):
        return lambda: (timm.create_model(name, pretrained=False, exportable=True), (torch.randn(batch, 3, size, size),))

    return {name: of_timm(name, size) for name, size in IMAGES.items()} | texts(batch)

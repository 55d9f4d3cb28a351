"""The networks of export_pte_networks.py: torchvision's and Hugging Face's architectures, small enough for a processor.

`NETWORKS`: name -> what makes it, what makes sets of inputs (a list of tuples), and dynamic shapes for `torch.export` or None.
"""
import torch
import torchvision.models as tv
from torch import nn
from torch.export import Dim

try:
    import transformers as hf
except ImportError:
    hf = None


class Call(nn.Module):
    """A model of which one result is taken, or several."""

    def __init__(self, model, take=None):
        super().__init__()
        self.model, self.take = model, take

    def forward(self, *args):
        result = self.model(*args)
        return self.take(result) if self.take else result


class Named(nn.Module):
    """A model of Hugging Face whose inputs are given by position, and whose hidden states are the result."""

    def __init__(self, model, names, results):
        super().__init__()
        self.model, self.names, self.results = model, names, results

    def forward(self, *args):
        result = self.model(**dict(zip(self.names, args)), return_dict=True)
        return tuple(getattr(result, name) for name in self.results)


class Pyramid(nn.Module):
    """A detector without what chooses boxes: a backbone and its heads."""

    def __init__(self, backbone, head, lists=True):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, x):
        return self.head(list(self.backbone(x).values()))


class Tagger(nn.Module):
    """Words to tags by a recurrent network in both directions."""

    def __init__(self, cell):
        super().__init__()
        self.table, self.cell, self.out = nn.Embedding(100, 32), cell(32, 48, 1, batch_first=True, bidirectional=True), nn.Linear(96, 9)

    def forward(self, words):
        return self.out(self.cell(self.table(words))[0])


class UNet(nn.Module):
    """Down, up again, and across."""

    def __init__(self, width=16):
        super().__init__()
        block = lambda a, b: nn.Sequential(*(layer for c in (a, b) for layer in (nn.Conv2d(c, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())))
        self.down = nn.ModuleList([block(3, width), block(width, 2 * width), block(2 * width, 4 * width)])
        self.turn = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.up, self.out = nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)]), nn.Conv2d(width, 2, 1)

    def forward(self, x):
        across = []
        for down in self.down[:-1]:
            across.append(down(x))
            x = nn.functional.max_pool2d(across[-1], 2)
        x = self.down[-1](x)
        for turn, up in zip(self.turn, self.up):
            x = up(torch.cat((across.pop(), turn(x)), 1))
        return self.out(x)


def image(*size):
    return lambda: [(torch.randn(1, 3, *size),)]


def images(*sizes):
    return lambda: [(torch.randn(1, 3, *size),) for size in sizes]


def words(*lengths, most=100, mask=False):
    def make():
        sets = [(torch.randint(2, most, (1, n)),) for n in lengths]
        return [(ids, torch.cat((torch.ones(1, ids.shape[1] - 2), torch.zeros(1, 2)), 1).long()) for (ids,) in sets] if mask else sets

    return make


def decoded():
    return [(torch.randint(0, 99, (1, 7)), torch.randn(1, 40, 64), torch.ones(1, 1, 7, 7).tril().bool(), torch.arange(7)[None])]


def plain(function, **more):
    return lambda: function(weights=None, **more)


def mobilenet_v2_short():
    return tv.MobileNetV2(10, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2], [6, 64, 1, 2]])


def mobilenet_v3_short():
    setting, _ = tv.mobilenetv3._mobilenet_v3_conf("mobilenet_v3_small")
    return tv.MobileNetV3(setting[:5], 128, 10)


def efficientnet_short():
    block = tv.efficientnet.MBConvConfig
    return tv.EfficientNet([block(1, 3, 1, 32, 16, 1), block(6, 3, 2, 16, 24, 2), block(6, 5, 2, 24, 40, 1)], 0.0, num_classes=10, last_channel=128)


def resnet_short(block):
    return lambda: tv.ResNet(block, [1, 1, 1, 1], 10)


def swin():
    return tv.swin_transformer.SwinTransformer([2, 2], 32, [2, 2], [2, 4], [4, 4], num_classes=10)


def swin_v2():
    block, merging = tv.swin_transformer.SwinTransformerBlockV2, tv.swin_transformer.PatchMergingV2
    return tv.swin_transformer.SwinTransformer([2, 2], 32, [2, 2], [2, 4], [4, 4], num_classes=10, block=block, downsample_layer=merging)


def convnext():
    block = tv.convnext.CNBlockConfig
    return tv.convnext.ConvNeXt([block(32, 64, 1), block(64, 96, 2), block(96, None, 1)], num_classes=10)


def ssdlite():
    whole = tv.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=8)
    return Pyramid(whole.backbone, whole.head)


def fcos():
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.models.detection.fcos import FCOSHead

    return Pyramid(resnet_fpn_backbone(backbone_name="resnet18", weights=None), FCOSHead(256, 1, 5, 1))


def encoder_config(kind, **more):
    return kind(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_position_embeddings=64, **more)


def bert():
    return Named(hf.BertModel(encoder_config(hf.BertConfig)), ["input_ids", "attention_mask"], ["last_hidden_state", "pooler_output"])


def roberta():
    return Named(hf.RobertaModel(encoder_config(hf.RobertaConfig)), ["input_ids", "attention_mask"], ["last_hidden_state"])


def electra():
    return Named(hf.ElectraModel(encoder_config(hf.ElectraConfig, embedding_size=32)), ["input_ids", "attention_mask"], ["last_hidden_state"])


def mobilebert():
    config = hf.MobileBertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, embedding_size=32,
                                 intra_bottleneck_size=32, max_position_embeddings=64, num_feedforward_networks=2)
    return Named(hf.MobileBertModel(config), ["input_ids", "attention_mask"], ["last_hidden_state"])


def distilbert():
    config = hf.DistilBertConfig(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=128, max_position_embeddings=64)
    return Named(hf.DistilBertModel(config), ["input_ids", "attention_mask"], ["last_hidden_state"])


def albert():
    return Named(hf.AlbertModel(encoder_config(hf.AlbertConfig, embedding_size=32)), ["input_ids", "attention_mask"], ["last_hidden_state"])


def whisper():
    return hf.WhisperModel(hf.WhisperConfig(vocab_size=100, num_mel_bins=16, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                            decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=40,
                                            max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
                                            use_cache=False))


class Decode(nn.Module):
    """A decoder that reads what an encoder made."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, states):
        return self.model(input_ids=ids, encoder_hidden_states=states, use_cache=False).last_hidden_state


class DecodeMasked(Decode):
    """The same, where the caller says what may be seen and where words are: Vulkan's exporter fails on delegates that are handed nothing."""

    def forward(self, ids, states, seen, places):
        given = {"attention_mask": seen, "position_ids": places, "encoder_hidden_states": states}
        return self.model(input_ids=ids, use_cache=False, **given).last_hidden_state


def t5():
    return hf.T5Model(hf.T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False))


def causal(config):
    return Named(hf.AutoModelForCausalLM.from_config(config), ["input_ids"], ["logits"])


def llama_like(kind, **more):
    return lambda: causal(kind(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
                               max_position_embeddings=64, use_cache=False, **more))


def gpt2():
    return causal(hf.GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False))


def clip_vision():
    return Named(hf.CLIPVisionModel(hf.CLIPVisionConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                                                        patch_size=8)), ["pixel_values"], ["last_hidden_state", "pooler_output"])


def clip_text():
    return Named(hf.CLIPTextModel(encoder_config(hf.CLIPTextConfig, eos_token_id=99)), ["input_ids"], ["last_hidden_state"])


def vit_hf():
    return Named(hf.ViTModel(hf.ViTConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)),
                 ["pixel_values"], ["last_hidden_state"])


def wav2vec2():
    config = hf.Wav2Vec2Config(vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=(32, 32, 32),
                               conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4), num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return Named(hf.Wav2Vec2ForCTC(config), ["input_values"], ["logits"])


def segformer():
    config = hf.SegformerConfig(depths=[1, 1], hidden_sizes=[16, 32], num_encoder_blocks=2, sr_ratios=[4, 2], patch_sizes=[7, 3], strides=[4, 2],
                                num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32, num_labels=6)
    return Named(hf.SegformerForSemanticSegmentation(config), ["pixel_values"], ["logits"])


def mobilevit():
    config = hf.MobileViTConfig(image_size=64, hidden_sizes=[32, 48, 64], neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64], num_attention_heads=4)
    return Named(hf.MobileViTModel(config), ["pixel_values"], ["last_hidden_state", "pooler_output"])


def levit():
    config = hf.LevitConfig(image_size=64, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[16, 16, 16])
    return Named(hf.LevitModel(config), ["pixel_values"], ["last_hidden_state"])


def deberta():
    more = {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True}
    return Named(hf.DebertaV2Model(encoder_config(hf.DebertaV2Config, **more)), ["input_ids", "attention_mask"], ["last_hidden_state"])


def moonshine_encoder():
    config = hf.MoonshineConfig(vocab_size=100, hidden_size=64, intermediate_size=128, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
                                encoder_num_attention_heads=4, decoder_num_attention_heads=4)
    return Named(hf.MoonshineModel(config).encoder, ["input_values"], ["last_hidden_state"])


def opt():
    return causal(hf.OPTConfig(vocab_size=100, hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
                               word_embed_proj_dim=32, use_cache=False))


ROWS = {0: Dim.STATIC, 1: Dim("n", min=4, max=48)}
SIDES = {2: 32 * Dim("h", min=1, max=4), 3: 32 * Dim("w", min=1, max=4)}
MASKED = words(16, 11, 32, mask=True)
VIT = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 4, "hidden_dim": 64, "mlp_dim": 128, "num_classes": 10}

NETWORKS = {
    "mobilenet_v2": (plain(tv.mobilenet_v2), images((64, 64), (96, 32)), (SIDES,)),
    "mobilenet_v3_small": (plain(tv.mobilenet_v3_small), image(64, 64), None),
    "resnet18": (plain(tv.resnet18), images((64, 64), (32, 96)), (SIDES,)),
    "bert": (bert, MASKED, ({"args": (ROWS, ROWS)}["args"],)),
    "vit": (lambda: tv.VisionTransformer(**VIT), image(32, 32), None),
    "whisper_encoder": (lambda: Named(whisper().encoder, ["input_features"], ["last_hidden_state"]), lambda: [(torch.randn(1, 16, 80),)], None),
    "whisper_decoder": (lambda: Decode(whisper().decoder), lambda: [(torch.randint(0, 99, (1, 7)), torch.randn(1, 40, 64))], None),
    "whisper_decoder_masked": (lambda: DecodeMasked(whisper().decoder), decoded, None),
    "llama": (llama_like(hf.LlamaConfig), words(12, 5, 40), ((ROWS,),)),
    "mobilebert": (mobilebert, MASKED, ((ROWS, ROWS),)),
    "efficientnet_b0": (plain(tv.efficientnet_b0), image(64, 64), None),
    "resnet18_short": (resnet_short(tv.resnet.BasicBlock), image(64, 64), None),
    "resnet50_short": (resnet_short(tv.resnet.Bottleneck), image(64, 64), None),
    "mobilenet_v2_short": (mobilenet_v2_short, image(64, 64), None),
    "mobilenet_v3_short": (mobilenet_v3_short, image(64, 64), None),
    "efficientnet_short": (efficientnet_short, image(64, 64), None),
    "convnext": (convnext, image(64, 64), None),
    "swin": (swin, image(64, 64), None),
    "deeplab": (plain(tv.segmentation.deeplabv3_mobilenet_v3_large, weights_backbone=None, num_classes=6), image(64, 64), None),
    "distilbert": (distilbert, MASKED, ((ROWS, ROWS),)),
    "t5_encoder": (lambda: Named(t5().encoder, ["input_ids"], ["last_hidden_state"]), words(12, 6, 30), ((ROWS,),)),
    "t5_decoder": (lambda: Decode(t5().decoder), lambda: [(torch.randint(0, 99, (1, 7)), torch.randn(1, 12, 64))], None),
    "clip_vision": (clip_vision, image(32, 32), None),
    "clip_text": (clip_text, words(12), None),
    "wav2vec2": (wav2vec2, lambda: [(torch.randn(1, 2000),)], None),
    "lstm_tagger": (lambda: Tagger(nn.LSTM), words(8), None),
    "gru_tagger": (lambda: Tagger(nn.GRU), words(8), None),
    "ssdlite": (ssdlite, image(96, 96), None),
    "fcos": (fcos, image(64, 64), None),
    "gpt2": (gpt2, words(12, 5, 40), ((ROWS,),)),
    "resnet50": (plain(tv.resnet50), image(64, 64), None),
    "squeezenet": (plain(tv.squeezenet1_1), image(64, 64), None),
    "shufflenet": (plain(tv.shufflenet_v2_x0_5), image(64, 64), None),
    "densenet": (lambda: tv.DenseNet(8, (2, 2, 2), 16), image(64, 64), None),
    "regnet": (plain(tv.regnet_y_400mf), image(64, 64), None),
    "mnasnet": (plain(tv.mnasnet0_5), image(64, 64), None),
    "googlenet": (plain(tv.googlenet, init_weights=False, aux_logits=False), image(64, 64), None),
    "vgg11": (lambda: Call(tv.VGG(tv.vgg.make_layers([8, "M", 16, "M", 32, "M"], True), 10, False).features), image(32, 32), None),
    "maxvit": (lambda: tv.MaxVit((64, 64), 16, [16, 32], [1, 1], 8, 0.1, 4, num_classes=6), image(64, 64), None),
    "swin_v2": (swin_v2, image(64, 64), None),
    "lraspp": (plain(tv.segmentation.lraspp_mobilenet_v3_large, weights_backbone=None, num_classes=6), image(64, 64), None),
    "fcn": (lambda: Call(tv.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=6)), image(64, 64), None),
    "video": (lambda: tv.video.r3d_18(weights=None), lambda: [(torch.randn(1, 3, 4, 32, 32),)], None),
    "roberta": (roberta, MASKED, None),
    "electra": (electra, MASKED, None),
    "albert": (albert, MASKED, None),
    "qwen2": (llama_like(getattr(hf, "Qwen2Config", None)), words(12, 5, 40), ((ROWS,),)),
    "qwen3": (llama_like(getattr(hf, "Qwen3Config", None), head_dim=16), words(12), None),
    "gemma2": (llama_like(getattr(hf, "Gemma2Config", None), head_dim=16), words(12), None),
    "phi3": (llama_like(getattr(hf, "Phi3Config", None), pad_token_id=0), words(12), None),
    "vit_hf": (vit_hf, image(32, 32), None),
    "unet": (UNet, image(64, 64), None),
    "segformer": (segformer, image(64, 64), None),
    "mobilevit": (mobilevit, image(64, 64), None),
    "levit": (levit, image(64, 64), None),
    "deberta": (deberta, MASKED, None),
    "moonshine_encoder": (moonshine_encoder, lambda: [(torch.randn(1, 6000),)], None),
    "opt": (opt, words(12), None),
}

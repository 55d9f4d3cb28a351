"""The networks of compare_networks.py: modules of torchvision and transformers with random weights, and their inputs."""

import importlib

import torch
import torchvision.models as tv
import transformers as tr
from torch import nn


class Of(nn.Module):
    """A module whose result is `result(net, *inputs)`: one tensor."""

    def __init__(self, net, result):
        super().__init__()
        self.net, self.result = net, result

    def forward(self, *inputs):
        return self.result(self.net, *inputs)


class Recurrent(nn.Module):
    """Two layers of cells over 32 steps, and a linear layer of the last one."""

    def __init__(self, cells):
        super().__init__()
        self.cells = cells(64, 256, 2, batch_first=True)
        self.out = nn.Linear(256, 10)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


class Residual(nn.Module):
    """Two convolutions with group norms, as in U-Nets of diffusion models."""

    def __init__(self, before, after):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, before), nn.Conv2d(before, after, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, after), nn.Conv2d(after, after, 3, padding=1)
        self.beside = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x):
        h = self.conv1(nn.functional.silu(self.norm1(x)))
        return self.beside(x) + self.conv2(nn.functional.silu(self.norm2(h)))


class Attending(nn.Module):
    """Self attention over the places of an image, a gated layer of four times the channels, residuals."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels, bias=False), nn.Linear(channels, channels)
        self.wide, self.narrow = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        batch, channels, height, width = x.shape
        t = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm1(t)).chunk(3, -1)
        q, k, v = (y.view(batch, -1, self.heads, channels // self.heads).transpose(1, 2) for y in (q, k, v))
        a = nn.functional.scaled_dot_product_attention(q, k, v)
        t = t + self.out(a.transpose(1, 2).reshape(batch, height * width, channels))
        gate, up = self.wide(self.norm2(t)).chunk(2, -1)
        t = t + self.narrow(nn.functional.gelu(gate) * up)
        return t.transpose(1, 2).reshape(batch, channels, height, width)


class Diffusion(nn.Module):
    """One level down and up of a latent U-Net."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 320, 3, padding=1)
        self.down = nn.Sequential(Residual(320, 320), nn.Conv2d(320, 320, 3, stride=2, padding=1))
        self.middle = nn.Sequential(Residual(320, 640), Attending(640, 10), Residual(640, 640))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2.0), nn.Conv2d(640, 320, 3, padding=1))
        self.last = nn.Sequential(Residual(640, 320), nn.GroupNorm(32, 320), nn.SiLU(), nn.Conv2d(320, 4, 3, padding=1))

    def forward(self, x):
        x = self.first(x)
        return self.last(torch.cat([self.up(self.middle(self.down(x))), x], 1))


class Segmenting(nn.Module):
    """A U-Net of four levels."""

    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()

        def double(before, after):
            layers = []
            for c in (before, after):
                layers += [nn.Conv2d(c, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            return nn.Sequential(*layers)

        self.down = nn.ModuleList(double(b, a) for b, a in zip((3,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for b, a in zip(widths, widths[1:]))
        self.after = nn.ModuleList(double(2 * c, c) for c in widths[:-1])
        self.out = nn.Conv2d(widths[0], 8, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(nn.functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for up, after, beside in list(zip(self.up, self.after, kept))[::-1]:
            x = after(torch.cat([up(x), beside], 1))
        return self.out(x)


def hugging(cls, config, result, attention="sdpa"):
    config._attn_implementation = attention
    return Of(cls(config), result)


class Makers:
    """What makes networks of transformers, each with its one input, of a batch."""

    def __init__(self, batch):
        self.batch = batch

    def tokens(self, count=128):
        return (torch.randint(5, 1000, (self.batch, count)),)

    def given(self, *shape):
        return (torch.randn(self.batch, *shape),)

    def of(self, name, result, inputs, attention="sdpa", config=None, **changes):
        def make():  # Looked up here: a version of the library without one must not keep the others away.
            made = getattr(tr, config or name + "Config")
            return hugging(getattr(tr, name), made(**changes), result, attention), inputs()

        return make


def last(net, x):
    return net(x).last_hidden_state


def logits(net, x):
    return net(x).logits


def levels(net, x):
    """The feature maps of a detector's backbone, side by side."""
    return torch.cat([level.flatten(1) for level in net(x).values()], 1)


def made(batch):
    """For each network a function that makes it, and its input."""

    def image(size=224, channels=3):
        return (torch.randn(batch, channels, size, size),)

    def tokens(count=128):
        return (torch.randint(0, 1000, (batch, count)),)

    def sound(*shape):
        return (torch.randn(batch, *shape),)

    plain = {"weights": None, "weights_backbone": None}
    tiny = dict(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    small = dict(hidden_size=192, intermediate_size=768, num_hidden_layers=12, num_attention_heads=3)
    llama = dict(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12)
    electra = dict(embedding_size=128, hidden_size=256, intermediate_size=1024, num_attention_heads=4)
    whisper = tr.models.whisper.modeling_whisper.WhisperEncoder
    masks = tv.segmentation
    finders = tv.detection
    return {
        "vit_b_16": lambda: (tv.vit_b_16(), image()),
        "bert_base": lambda: (hugging(tr.BertModel, tr.BertConfig(), last), tokens()),
        "convnext_tiny": lambda: (tv.convnext_tiny(), image()),
        "swin_t": lambda: (tv.swin_t(), image()),
        "resnet50": lambda: (tv.resnet50(), image()),
        "mobilenet_v2": lambda: (tv.mobilenet_v2(), image()),
        "mobilenet_v3_large": lambda: (tv.mobilenet_v3_large(), image()),
        "efficientnet_b0": lambda: (tv.efficientnet_b0(), image()),
        "regnet_y_800mf": lambda: (tv.regnet_y_800mf(), image()),
        "densenet121": lambda: (tv.densenet121(), image()),
        "shufflenet_v2": lambda: (tv.shufflenet_v2_x1_0(), image()),
        "squeezenet": lambda: (tv.squeezenet1_1(), image()),
        "mnasnet": lambda: (tv.mnasnet1_0(), image()),
        "whisper_tiny_enc": lambda: (hugging(whisper, tr.WhisperConfig(**tiny), last), sound(80, 3000)),
        "wav2vec2": lambda: (hugging(tr.Wav2Vec2Model, tr.Wav2Vec2Config(), last), sound(16000)),
        "segformer_b0": lambda: (
            hugging(tr.SegformerForSemanticSegmentation, tr.SegformerConfig(), logits, "eager"),
            image(512),
        ),
        "deeplab_mnv3": lambda: (
            Of(masks.deeplabv3_mobilenet_v3_large(**plain), lambda net, x: net(x)["out"]),
            image(256),
        ),
        "lraspp_mnv3": lambda: (
            Of(masks.lraspp_mobilenet_v3_large(**plain), lambda net, x: net(x)["out"]),
            image(256),
        ),
        "fcn_resnet50": lambda: (Of(masks.fcn_resnet50(**plain), lambda net, x: net(x)["out"]), image(256)),
        "unet": lambda: (Segmenting(), image(256)),
        "retinanet_backbone": lambda: (Of(finders.retinanet_resnet50_fpn(**plain).backbone, levels), image(320)),
        "ssdlite_backbone": lambda: (Of(finders.ssdlite320_mobilenet_v3_large(**plain).backbone, levels), image(320)),
        "yolos_tiny": lambda: (
            hugging(tr.YolosModel, tr.YolosConfig(image_size=[224, 224], num_detection_tokens=100, **small), last),
            image(),
        ),
        "mobilevit": lambda: (hugging(tr.MobileViTModel, tr.MobileViTConfig(), last, "eager"), image(256)),
        "t5_small_enc": lambda: (
            hugging(tr.T5EncoderModel, tr.T5Config(d_model=512, d_ff=2048, num_layers=6), last, "eager"),
            tokens(),
        ),
        "distilbert": lambda: (hugging(tr.DistilBertModel, tr.DistilBertConfig(), last), tokens()),
        "electra_small": lambda: (hugging(tr.ElectraModel, tr.ElectraConfig(**electra), last), tokens()),
        "gpt2_prompt": lambda: (hugging(tr.GPT2LMHeadModel, tr.GPT2Config(vocab_size=8000), logits), tokens(256)),
        "opt_prompt": lambda: (hugging(tr.OPTForCausalLM, tr.OPTConfig(vocab_size=8000), logits), tokens(256)),
        "llama_prompt": lambda: (hugging(tr.LlamaForCausalLM, tr.LlamaConfig(**llama), logits), tokens(256)),
        "diffusion_block": lambda: (Diffusion(), image(64, 4)),
        "lstm": lambda: (Recurrent(nn.LSTM), sound(32, 64)),
        "gru": lambda: (Recurrent(nn.GRU), sound(32, 64)),
    }


SETS = ("others", "late", "drawn", "lot", "after", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "generators")


def networks(only=None, batch=1, chosen_set=None):
    """Names, modules and inputs, of this file or of one of SETS, which torch_NAME.py has. Batch normalizations get statistics,
    so that results are not all alike; so do the last linear layers that torchvision fills with zeros."""
    torch.backends.mha.set_fastpath_enabled(False)
    if chosen_set in SETS:
        chosen = importlib.import_module(f"torch_{chosen_set}").made
    elif chosen_set:
        raise SystemExit(f"SET={chosen_set} is unknown; there are {', '.join(SETS)}, and none for the first networks")
    else:
        chosen = made
    for name, make in chosen(batch).items():
        if only and name not in only:
            continue
        torch.manual_seed(1)
        try:
            net, inputs = make()
        except Exception as error:  # A version of the library without it must not keep the others away.
            print("not made:", name, str(error).splitlines()[:1], flush=True)
            continue
        net.eval()
        for part in net.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
            if isinstance(part, nn.Linear) and not part.weight.any():
                nn.init.normal_(part.weight, std=0.02)
        yield name, net, inputs

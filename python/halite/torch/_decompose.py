"""What PyTorch computes by one operator of its own for processors and CUDA, in operators that exporters know.

Meaning: `torch/nn/modules/activation.py` (`MultiheadAttention`) and `transformer.py` (`TransformerEncoderLayer`), whose fast paths
call these operators.
"""

from __future__ import annotations

import math

import torch
from torch._decomp import get_decompositions

F = torch.nn.functional

_OF_ROWS, _OF_KEYS = 0, 1
"""Kinds of masks: for all pairs of rows, and for the keys of each sequence. Others say it for each head."""


def _spread(mask: torch.Tensor, kind: int | None) -> torch.Tensor:
    """A mask as one of batch, heads, rows, keys."""
    if kind == _OF_ROWS:
        return mask.view(1, 1, *mask.shape)
    if kind == _OF_KEYS:
        return mask.view(mask.shape[0], 1, 1, mask.shape[1])
    return mask


def attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    """`aten._native_multi_head_attention`: the result and the weights."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)

    def heads(of, n):
        projected = F.linear(of, weights[n], biases[n])
        return projected.unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2)

    scores = heads(query, 0) @ heads(key, 1).transpose(-2, -1) / math.sqrt(embed_dim // num_head)
    if mask is not None:
        mask = _spread(mask, mask_type)
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    shares = scores.softmax(-1)
    mixed = (shares @ heads(value, 2)).transpose(1, 2).flatten(2)
    told = shares.mean(1) if average_attn_weights else shares
    return F.linear(mixed, proj_weight, proj_bias), told if need_weights else shares.new_empty((0,))


def encoder_layer(
    src,
    embed_dim,
    num_heads,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    use_gelu,
    norm_first,
    eps,
    norm_weight_1,
    norm_bias_1,
    norm_weight_2,
    norm_bias_2,
    ffn_weight_1,
    ffn_bias_1,
    ffn_weight_2,
    ffn_bias_2,
    mask=None,
    mask_type=None,
):
    """`aten._transformer_encoder_layer_fwd`."""

    def attend(x):
        own = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return attention(x, x, x, embed_dim, num_heads, *own, mask, False, True, mask_type)[0]

    def feed_forward(x):
        x = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(x) if use_gelu else F.relu(x), ffn_weight_2, ffn_bias_2)

    def normalize(x, weight, bias):
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        src = src + attend(normalize(src, norm_weight_1, norm_bias_1))
        return src + feed_forward(normalize(src, norm_weight_2, norm_bias_2))
    src = normalize(src + attend(src), norm_weight_1, norm_bias_1)
    return normalize(src + feed_forward(src), norm_weight_2, norm_bias_2)


def batch_norm(x, weight, bias, mean, variance, momentum, eps):
    """`aten._native_batch_norm_legit_no_training`: the result, and nothing of what only training needs."""
    factor = torch.rsqrt(variance + eps)
    factor = factor if weight is None else factor * weight
    offset = -mean * factor if bias is None else bias - mean * factor
    sizes = (1, -1, *(1 for _ in x.shape[2:]))
    return (x * factor.view(sizes) + offset.view(sizes)).to(x.dtype), mean.new_empty((0,)), mean.new_empty((0,))


def stable_sort(x, *, stable=None, dim=-1, descending=False):
    """`aten.sort.stable`: `TopK` of ONNX, of all, keeps the order of equal numbers."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    return torch.topk(x, x.shape[dim], dim, largest=descending)


def stable_order(x, *, stable, dim=-1, descending=False):
    """`aten.argsort.stable`."""
    return stable_sort(x, stable=stable, dim=dim, descending=descending)[1]


TABLE = {
    torch.ops.aten.argsort.stable: stable_order,
    torch.ops.aten.sort.stable: stable_sort,
    torch.ops.aten._native_multi_head_attention.default: attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: encoder_layer,
    # What graphs have that were traced for processors.
    **get_decompositions([torch.ops.aten._scaled_dot_product_flash_attention_for_cpu]),
}
"""For `ExportedProgram.run_decompositions`."""

if torch.__version__.startswith("2.6."):
    # Its exporter and newer versions of onnxscript do not agree on how many results this has.
    TABLE[torch.ops.aten._native_batch_norm_legit_no_training.default] = batch_norm

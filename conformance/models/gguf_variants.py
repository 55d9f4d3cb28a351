"""Small random GGUF models of known architectures whose keys or tensors no file at hand has. llama.cpp runs them, and not always as
one would guess: these are what it does. gguf_tiny.py writes them with the others.
"""

import gguf_folds
import numpy as np
from gguf_families import CASES, DENSE, FEED_NORM, GEGLU, HEADS, KV_HEADS, POST_NORM, SMALL, SMALL_KEYS, WIDTH, attention

WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
FACTOR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0, "rope.scaling.attn_factor": 1.2}


def like(name, keys, change=lambda layer, parts: parts):
    """A case with other keys, and perhaps other layers."""
    arch, own, layers, *model = CASES[name]
    return (arch, {**own, **keys}, [change(layer, parts) for layer, parts in enumerate(layers)], *model)


def fused(layer, parts):
    """Queries with their gates, keys and values as one tensor in the layers that attend."""
    apart = [part for part in parts if part[0] in ("attn_q", "attn_k", "attn_v")]
    if not apart:
        return parts
    one = ["attn_qkv", sum(part[1] for part in apart), apart[0][2]]
    return [one, *[part for part in parts if part not in apart]]


def biased(layer, parts):
    """A bias behind attention."""
    return [*parts, ["attn_output.bias", WIDTH]]


def folded(case, seed, **more):
    """A case whose weights are folded with Hadamard matrices."""
    arch, own, layers, *model = case
    model = model[0] if model else [["output_norm", WIDTH], ["output", "vocabulary", WIDTH]]
    keys = gguf_folds.drawn(np.random.default_rng(seed), WIDTH, layers, model)
    return (arch, {**own, **keys, **{gguf_folds.PREFIX + key: value for key, value in more.items()}}, layers, model)


VARIANTS = {
    # Layers with windows find nothing.
    "window-of-none": like("gemma2", {WINDOW: 0}),
    # Windows are of 4,096 tokens whatever the file says, and a factor without a kind is theirs alone.
    "factor-of-windows": like("smallthinker", {WINDOW: 8, "rope.scaling.type": "none", "rope.scaling.factor": 4.0, "rope.freq_base_swa": 3000.0}),
    # The base of windows is not read, and rotary embedding is that of windows.
    "cohere2-pattern": (
        "cohere2", {**SMALL_KEYS, WINDOW: 8, PATTERN: 2, "attention.layer_norm_epsilon": 1e-5, "logit_scale": 0.3, "rope.freq_base_swa": 3000.0},
        [[*attention(SMALL), *DENSE]] * 4, [["output_norm", WIDTH]],
    ),
    # All layers that attend have the window, and the first layer, which does not, tells what is turned.
    "lfm2-window": like("lfm2", {WINDOW: 8, "rope.dimension_count_swa": SMALL // 2}),
    # Layers without windows turn as much as the first layer, which has one.
    "laguna-pattern": like("laguna", {PATTERN: [True, False, True, False, True], "rope.scaling.attn_factor": 1.3}),
    # Experts are chosen by what the router says, with the bias and in groups, and weighed by a softmax over the chosen.
    "chosen-weighed": like("minimax-m2", {"expert_gating_func": 3, "expert_group_count": 4, "expert_group_used_count": 2}),
    # Pairs that no section has a turn for stay as they are.
    "sections-in-turn": like("qwen3vl", {"rope.dimension_sections": [4, 2, 2, 0]}),
    # With sections halves are turned, and not neighbours; the fourth section stays.
    "sections-in-runs": (
        "glm4", {**SMALL_KEYS, "rope.dimension_sections": [2, 1, 1, 2]},
        [[*attention(SMALL), *POST_NORM, *FEED_NORM, *GEGLU, ["post_ffw_norm", WIDTH]]] * 2,
    ),
    # What makes contexts longer counts for scores alone.
    "ocr-factor": like("deepseek2-ocr", FACTOR),
    "qwen35-fused": like("qwen35", {}, fused),
    # The bias is not read.
    "falcon-h1-bias": like("falcon-h1", {}, biased),
    # Rows are turned before products, and heads of delta nets come in another order; the table of tokens is the last matrix in one.
    "qwen35-folded": folded(CASES["qwen35"], 1, gdn_v_grouped=True),
    "qwen3next-folded": folded(CASES["qwen3next"], 5),
    "llama-folded": folded(("llama", SMALL_KEYS, [[*attention(SMALL), *FEED_NORM, *DENSE]] * 2, [["output_norm", WIDTH]]), 7),
    # Rotary embedding by layer.
    "rope-pattern": like("granite_swa", {"attention.rope_pattern": [True, False, True]}),
}  # fmt: skip
CASES |= VARIANTS
# A model whose first tokens are those of pictures: it needs more tokens than there are otherwise.
LONG, PICTURES = "chameleon", 8000
NORMS = [[f"attn_{name}_norm{kind}", heads, SMALL] for name, heads in (("q", HEADS), ("k", KV_HEADS)) for kind in ("", ".bias")]
CASES[LONG] = ("chameleon", SMALL_KEYS, [[*attention(SMALL), *NORMS, *FEED_NORM, *DENSE]] * 2, [["output_norm", WIDTH]])

"""Metadata of weights that are folded with Hadamard matrices, by lot, for models that gguf_matrix.py draws.

llama.cpp takes the architectures and the matrices below. Random weights are as good folded as they are: what both programs do with them is
compared, which is the turning of rows."""

ARCHITECTURES = ("llama", "qwen3", "qwen3moe", "qwen35", "qwen35moe", "qwen3next")
PREFIX = "prism.hadamard."
PARTS = (
    "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_gate", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps",
    "ffn_gate_up_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "ssm_out",
)  # fmt: skip
TABLE = "token_embd.weight"


def drawn(random, width, layers, model):
    """Keys for a model with these parts, whose table of tokens has rows of `width` elements."""
    head = [f"{name}.weight" for name, *_ in model if name == "output"]
    rows = {f"blk.{layer}.{name}.weight": dims[-1] for layer, parts in enumerate(layers) for name, *dims in parts if name in PARTS}
    rows |= dict.fromkeys(head, width)
    blocks = [block for block in (1, 2, 8, 16, 32, 64, 128, 256) if sum(length % block == 0 for length in rows.values()) > len(rows) // 2]
    block = int(blocks[int(random.integers(len(blocks)))])
    folded = [name for name, length in rows.items() if length % block == 0 and random.integers(8) > 0]
    is_table = width % block == 0 and bool(random.integers(4))
    tied = is_table and not head
    keys = {
        "version": 2 if tied else 1, "block_size": block, "transform": "normalized-sylvester-walsh-hadamard", "axis": "input-last-dimension",
        "sign_mode": "explicit" if random.integers(4) else "identity", "weight_names": folded,
    }  # fmt: skip
    if tied:
        keys["tied_output"] = True
    if is_table:
        keys["inverse_weight_names"] = [TABLE]
    if any("ssm_out" in name for name in folded):
        keys["gdn_v_grouped"] = bool(random.integers(2))
    if keys["sign_mode"] == "explicit":
        widths = sorted({rows[name] for name in folded} | ({width} if is_table else set()))
        keys["sign_widths"] = widths
        keys["sign_values"] = [int(sign) for sign in random.choice([-1, 1], sum(widths))]
    return {PREFIX + key: value for key, value in keys.items()} if folded else {}

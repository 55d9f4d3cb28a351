"""Small random GGUF models of the architectures that most files have, of sizes and with options by lot, for gguf_matrix.py. Heads have 64 to 256
elements, or less usual numbers, and their rows need not be as long as the model is wide.
"""

from gguf import RopeScalingType

# Rotary embedding that files may have beside a base.
SCALED = ("none", "linear", "yarn")


class Sizes:
    """Sizes of a model, at random."""

    def __init__(self, random, square=False, many=False):
        """`square`: heads are as long as the model is wide, all together. `many`: there are as many heads of keys as of queries."""
        one = self.one = lambda *of: of[int(random.integers(len(of)))]
        self.random = random
        self.dim = one(64, 80, 96, 128, 256, one(16, 32, 40, 48, 72, 112, 160))
        self.kv = one(1, 1, 2, 3, 4, 5)
        self.heads = self.kv * (1 if many else one(1, 2, 3, 4))
        while square and self.heads * self.dim % 32:
            self.heads, self.kv = 2 * self.heads, 2 * self.kv
        self.width = self.heads * self.dim if square else one(96, 160, 224, 256, 288, 320, 512)
        self.inner = one(32, 96, 160, 256, 352, 544, 768)
        self.layers = one(1, 2, 2, 3)
        self.turned = self.dim

    def maybe(self, *parts, of=2):
        """Parts, or none of them."""
        return list(parts) if self.random.integers(of) == 0 else []

    def rotary(self, partial=False, kinds=SCALED):
        """Keys of rotary embedding."""
        keys = {"rope.freq_base": self.one(500.0, 10000.0, 1e6)}
        if partial and self.random.integers(2):
            self.turned = self.one(*(turned for turned in (self.dim // 2, self.dim // 4) if turned % 2 == 0))
        keys["rope.dimension_count"] = self.turned
        kind = self.one(*kinds)
        if kind != "none":
            keys |= {"rope.scaling.type": kind, "rope.scaling.factor": self.one(2.0, 4.0, 8.0, 40.0)}
        if kind == "yarn":
            keys["rope.scaling.type"] = RopeScalingType.YARN.value
            keys["rope.scaling.original_context_length"] = self.one(32, 100, 4096)
            keys |= {"rope.scaling.attn_factor": self.one(0.7, 1.3)} if self.random.integers(3) == 0 else {}
        return keys

    def keys(self):
        """Keys that all have."""
        return {
            "embedding_length": self.width, "feed_forward_length": self.inner, "attention.head_count": self.heads, "attention.head_count_kv": self.kv,
            "attention.key_length": self.dim, "attention.value_length": self.dim, "attention.layer_norm_rms_epsilon": self.one(1e-5, 1e-6),
            "attention.layer_norm_epsilon": self.one(1e-5, 1e-6),
        }  # fmt: skip

    def attention(self, fused=False, biased=False, output_biased=False):
        """Queries, keys, values and what comes behind."""
        rows = [("q", self.heads * self.dim), ("k", self.kv * self.dim), ("v", self.kv * self.dim)]
        if fused:
            rows = [("qkv", (self.heads + 2 * self.kv) * self.dim)]
        parts = [part for name, length in rows for part in [[f"attn_{name}", length, self.width], *([[f"attn_{name}.bias", length]] if biased else [])]]
        return [*parts, ["attn_output", self.width, self.heads * self.dim], *([["attn_output.bias", self.width]] if output_biased else [])]

    def norm(self, name, biased=False):
        """A norm of rows of the model."""
        return [[name, self.width], *([[name + ".bias", self.width]] if biased else [])]

    def feed(self, gated=True, biased=False):
        """A feed-forward network."""
        parts = [["ffn_gate", self.inner, self.width]] if gated else []
        parts += [["ffn_up", self.inner, self.width], ["ffn_down", self.width, self.inner]]
        return [part for own in parts for part in ([own, [own[0] + ".bias", own[1]]] if biased else [own])]

    def pair(self):
        """A feed-forward network whose gate and first product are one matrix."""
        return [["ffn_up", 2 * self.inner, self.width], ["ffn_down", self.width, self.inner]]

    def head_norms(self):
        """Norms of each head of queries and of keys."""
        return [["attn_q_norm", self.dim], ["attn_k_norm", self.dim]]

    def model(self, tied=None, biased=False, more=()):
        """What is outside of layers."""
        tied = self.random.integers(3) == 0 if tied is None else tied
        return [*self.norm("output_norm", biased), *([] if tied else [["output", "vocabulary", self.width]]), *more]


def gated(random, arch):
    """Like Llama: norms by squares, and a gate."""
    many = arch in ("baichuan", "qwen")
    s = Sizes(random, square=arch in ("qwen", "internlm2", "xverse", "exaone", "minicpm", "orion", "baichuan", "stablelm", "olmo2", "phi3", "chatglm"), many=many)
    keys, norm = {**s.keys(), **s.rotary(partial=arch in ("chatglm", "stablelm"))}, s.norm
    centred = arch in ("orion", "stablelm")
    biased = arch in ("qwen", "qwen2") or arch in ("llama", "seed_oss") and s.random.integers(3) == 0
    fused = arch in ("qwen", "phi3") or arch == "chatglm" and bool(s.random.integers(2))
    if fused and arch == "chatglm":
        biased = True
    attention = s.attention(fused, biased)
    before, after = [*norm("attn_norm", centred)], norm("post_attention_norm" if arch == "seed_oss" else "ffn_norm", centred)
    feed = s.pair() if arch in ("phi3", "chatglm") else s.feed(gated=arch != "arcee")
    if arch == "qwen":
        keys["feed_forward_length"] = 2 * s.inner
    more, model = [], None
    if arch in ("qwen3", "gemma3"):
        more = s.head_norms()
    if arch == "olmo2":
        more, before, after = [["attn_q_norm", s.heads * s.dim], ["attn_k_norm", s.kv * s.dim]], [], [["post_attention_norm", s.width], ["post_ffw_norm", s.width]]
        keys |= {"attention.sliding_window": s.one(5, 16, 33), "attention.sliding_window_pattern": [bool(s.random.integers(2)) for _ in range(s.layers)]} if s.random.integers(2) else {}
    if arch in ("gemma", "gemma3", "baichuan", "stablelm"):
        model = s.model(tied={"gemma": True, "gemma3": None}.get(arch, False), biased=centred)
    if arch == "gemma3":
        s.layers = s.one(2, 6, 7)
        more += [["post_attention_norm", s.width], ["post_ffw_norm", s.width]]
        keys |= {"attention.sliding_window": s.one(5, 16, 33), "rope.freq_base_swa": s.one(300.0, 10000.0)} if s.random.integers(4) else {}
    if arch == "phi3":
        keys |= {"attention.sliding_window": s.one(0, 40)} if s.random.integers(2) else {}
    if arch in ("phi3", "minicpm") and s.random.integers(2):
        keys = {key: value for key, value in keys.items() if "scaling" not in key}
        keys |= {"rope.scaling.original_context_length": s.one(64, 512, 4096), "rope.scaling.attn_factor": s.one(1.0, 1.19)}
        model = s.model(more=[["rope_factors_long", s.turned // 2], ["rope_factors_short", s.turned // 2]])
    if arch == "llama" and s.random.integers(3) == 0:
        model = s.model(more=[["rope_freqs", s.turned // 2]])
    if arch in ("granite", "minicpm"):
        keys |= {"logit_scale": s.one(2.0, 8.0), "residual_scale": s.one(0.22, 1.0), "embedding_scale": s.one(1.0, 12.0)}
        keys |= {"attention.scale": s.one(0.05, 0.1)} if arch == "granite" else {}
    if arch == "smollm3":
        s.layers = s.one(3, 4, 5)
    if arch == "baichuan":
        s.layers = 32
    if arch == "stablelm":
        more = [["attn_q_norm", s.heads, s.dim], ["attn_k_norm", s.kv, s.dim]] if s.random.integers(3) == 0 else []
        after = after if s.random.integers(2) else []
    return keys, [[*before, *attention, *more, *after, *feed]] * s.layers, model or s.model(biased=centred)


def centred(random, arch):
    """Like GPT-2: norms that take the mean away."""
    s = Sizes(random, square=arch not in ("starcoder2", "codeshell", "nemotron", "command-r"), many=arch in ("gpt2", "gptneox", "bloom", "phi2", "refact", "olmo"))
    turns = arch in ("gptneox", "starcoder2", "codeshell", "falcon", "phi2", "nemotron", "olmo", "command-r")
    keys = {**s.keys(), **(s.rotary(partial=arch in ("gptneox", "phi2", "nemotron")) if turns else {})}
    biased = arch not in ("falcon", "mpt", "olmo", "command-r", "refact")
    if arch == "mpt" and s.random.integers(2):
        biased = True
    fused = arch not in ("starcoder2", "nemotron", "olmo", "command-r", "refact")
    if arch in ("mpt", "refact"):
        keys |= {"attention.max_alibi_bias": s.one(8.0, 4.0)}
    if arch in ("mpt", "olmo") and s.random.integers(2):
        keys["attention.clamp_kqv"] = s.one(0.5, 8.0)
    if arch == "gptneox":
        keys["use_parallel_residual"] = s.one(True, False)
    norms_biased = arch not in ("mpt", "command-r") or arch == "mpt" and biased
    before, after = s.norm("attn_norm", norms_biased), s.norm("ffn_norm", norms_biased)
    if arch == "falcon":
        before, after = [*before, *(s.norm("attn_norm_2", True) if s.random.integers(2) else [])], []
    if arch in ("phi2", "command-r"):
        after = []
    if arch == "refact":
        before, after = s.norm("attn_norm"), s.norm("ffn_norm")
    if arch == "olmo":
        before, after = [], []
    feed = s.feed(gated=arch in ("olmo", "command-r", "refact"), biased=biased)
    tied = {"command-r": True, "phi2": False, "gptneox": False, "nemotron": False, "codeshell": False, "refact": False}.get(arch)
    model = [] if arch == "olmo" else s.norm("output_norm", norms_biased and arch != "refact")
    tied = s.random.integers(3) == 0 if tied is None else tied
    model += [] if tied else [["output", "vocabulary", s.width]]
    if arch == "phi2":
        model += [["output.bias", "vocabulary"]]
    if arch in ("gpt2", "starcoder") or arch == "mpt" and s.random.integers(3) == 0:
        model += [["position_embd", "context", s.width]]
    if arch == "bloom":
        model += s.norm("token_embd_norm", True)
    if arch == "command-r":
        keys["logit_scale"] = s.one(0.0625, 0.5)
    return keys, [[*before, *s.attention(fused, biased, biased), *after, *feed]] * s.layers, model


def mixed(random, arch):
    """Mixtures of experts."""
    s = Sizes(random, square=arch in ("olmoe", "deepseek", "phimoe"), many=arch in ("deepseek", "dots1"))
    keys, experts = {**s.keys(), **s.rotary()}, s.one(4, 5, 8, 12, 33)
    own = s.inner if arch in ("llama", "phimoe", "granitemoe", "olmoe") else s.one(32, 96, 256)
    keys |= {"expert_count": experts, "expert_used_count": s.one(1, 2, 3, 4)}
    keys |= {"expert_feed_forward_length": own} if own is not s.inner else {}
    routed = [["ffn_gate_inp", experts, s.width]]
    routed += [[f"ffn_{name}_exps", experts, *([s.width, own] if name == "down" else [own, s.width])] for name in ("gate", "up", "down")]
    net = lambda rows: [[f"ffn_{name}_shexp", *([s.width, rows] if name == "down" else [rows, s.width])] for name in ("gate", "up", "down")]
    centred = arch == "phimoe"
    biased = arch in ("qwen2moe", "phimoe", "gpt-oss")
    attention = s.attention(False, biased, arch in ("phimoe", "gpt-oss"))
    before, after, more, dense = s.norm("attn_norm", centred), s.norm("ffn_norm", centred), [], 0
    if arch in ("qwen3moe", "dots1"):
        more = s.head_norms()
    if arch == "olmoe":
        more = [["attn_q_norm", s.heads * s.dim], ["attn_k_norm", s.kv * s.dim]]
    if arch == "qwen2moe":
        rows = s.one(32, 160)
        keys["expert_shared_feed_forward_length"] = rows
        routed += [["ffn_gate_inp_shexp", s.width], *net(rows)]
    if arch == "granitemoe":
        keys |= {"logit_scale": 4.0, "residual_scale": 0.5, "embedding_scale": 3.0, "attention.scale": 0.1}
        if s.random.integers(2):
            keys["expert_shared_feed_forward_length"] = 96
            routed += net(96)
    if arch in ("deepseek", "dots1"):
        shared, dense = s.one(1, 2), s.one(0, 1)
        keys |= {"expert_shared_count": shared, "leading_dense_block_count": dense, "expert_weights_scale": s.one(1.0, 2.5)}
        routed += net(shared * own)
    if arch == "dots1":
        keys |= {"expert_gating_func": s.one(1, 2), "expert_weights_norm": s.one(True, False)}
        routed += s.maybe(["exp_probs_b.bias", experts])
    if arch == "gpt-oss":
        after, more = s.norm("post_attention_norm"), [["attn_sinks", s.heads]]
        keys |= {"attention.sliding_window": s.one(5, 16, 33)}
        routed += [["ffn_gate_inp.bias", experts], *[[f"ffn_{name}_exps.bias", experts, s.width if name == "down" else own] for name in ("gate", "up", "down")]]
    layer = lambda number: [*before, *attention, *more, *after, *(s.feed() if number < dense else routed)]
    model = s.model(tied=False, biased=centred, more=[["output.bias", "vocabulary"]] if centred else [])
    if centred and s.random.integers(2):
        keys = {key: value for key, value in keys.items() if "scaling" not in key}
        keys |= {"rope.scaling.original_context_length": s.one(64, 4096), "rope.scaling.attn_factor": 1.2}
        model += [["rope_factors_long", s.turned // 2], ["rope_factors_short", s.turned // 2]]
    return keys, [layer(number) for number in range(s.layers)], model


GATED = (
    "llama", "qwen", "qwen2", "qwen3", "gemma", "gemma3", "phi3", "granite", "smollm3", "internlm2", "xverse", "minicpm", "chatglm", "ernie4_5", "arcee",
    "exaone", "seed_oss", "olmo2", "orion", "stablelm", "baichuan",
)  # fmt: skip
CENTRED = ("gpt2", "gptneox", "starcoder", "starcoder2", "codeshell", "mpt", "bloom", "falcon", "phi2", "nemotron", "olmo", "command-r", "refact")
MIXED = ("llama-moe", "qwen2moe", "qwen3moe", "olmoe", "granitemoe", "phimoe", "deepseek", "dots1", "gpt-oss")
DRAWN = {
    **{name: lambda random, name=name: gated(random, name) for name in GATED},
    **{name: lambda random, name=name: centred(random, name) for name in CENTRED},
    **{name: lambda random, name=name: mixed(random, name.removesuffix("-moe")) for name in MIXED},
}  # fmt: skip

"""What onnx_sizes.py exports of decoders: modules, example inputs, for each the name and its open dimensions, names of results, and calls."""

import numpy as np
from onnx_sizes_base import Drawn, case


def decoder(config, kind, layers, heads, dim, words=60, seq2seq=False):
    """A decoder of transformers with its past as inputs; `seq2seq` attends to what an encoder gave."""
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    torch.manual_seed(1)
    config._attn_implementation = "eager" if config.model_type in ("t5", "bloom", "xglm", "gemma2", "gpt_neo", "mpt") else "sdpa"
    inner = kind(config).eval()
    for weight in inner.parameters():
        torch.nn.init.normal_(weight, std=0.15) if weight.dim() > 1 else None

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, ids, mask, *rest):
            states, past = (rest[0], rest[1:]) if seq2seq else (None, rest)
            cache = DynamicCache()
            for layer in range(layers):
                cache.update(past[2 * layer], past[2 * layer + 1], layer)
            if seq2seq:
                whole = EncoderDecoderCache(cache, DynamicCache())
                out = self.inner(input_ids=ids, attention_mask=mask, encoder_hidden_states=states, past_key_values=whole, use_cache=True)
                hidden, cache = out.last_hidden_state, whole.self_attention_cache
            else:
                out = self.inner(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
                hidden = out.logits
            given = [hidden]
            for layer in cache.layers:
                given += [layer.keys, layer.values]
            return tuple(given)

    width = getattr(config, "d_model", None) or config.hidden_size
    draw = Drawn()

    def call(batch, length, past, frames=9):
        made = [draw.ints(words, batch, length), np.ones((batch, past + length), np.int64)]
        made += [draw.floats(batch, frames, width)] if seq2seq else []
        return made + [draw.floats(batch, heads, past, dim) for _ in range(2 * layers)]

    inputs = [("input_ids", {0: "batch", 1: "length"}), ("attention_mask", {0: "batch", 1: "total"})]
    inputs += [("encoder_hidden_states", {0: "batch", 1: "frames"})] if seq2seq else []
    pairs = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    inputs += [(f"past_key_values.{pair}", {0: "batch", 2: "past"}) for pair in pairs]
    results = ["logits", *(f"present.{pair}" for pair in pairs)]
    sizes = [(1, 4, 3), (1, 1, 7), (1, 1, 8), (1, 1, 9), (2, 1, 5), (3, 2, 16), (1, 1, 33), (1, 6, 0), (2, 1, 100)]
    return Module().eval(), call(2, 3, 5), inputs, results, [call(*one) for one in sizes]


@case
def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    return decoder(config, Qwen2ForCausalLM, 2, 2, 8)


@case
def gemma():
    from transformers import GemmaConfig, GemmaForCausalLM

    config = GemmaConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=8)
    return decoder(config, GemmaForCausalLM, 2, 1, 8)


@case
def phi():
    from transformers import PhiConfig, PhiForCausalLM

    config = PhiConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    return decoder(config, PhiForCausalLM, 2, 4, 8)


@case
def opt():
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(vocab_size=60, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256, word_embed_proj_dim=32, pad_token_id=0)
    return decoder(config, OPTForCausalLM, 2, 4, 8)


@case
def gpt_neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256)
    return decoder(config, GPTNeoXForCausalLM, 2, 4, 8)


@case
def t5():
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Stack

    config = T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    config.is_decoder, config.use_cache = True, True
    return decoder(config, T5Stack, 2, 4, 8, seq2seq=True)


@case
def bart():
    from transformers import BartConfig
    from transformers.models.bart.modeling_bart import BartDecoder

    config = BartConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=256, pad_token_id=1)
    return decoder(config, BartDecoder, 2, 4, 8, seq2seq=True)


def causal(name, layers=2, heads=4, kv=None, dim=8, head="ForCausalLM", **more):
    """A decoder of transformers by the name of its classes, with what most configurations have."""
    import transformers

    common = dict(vocab_size=60, hidden_size=32, num_hidden_layers=layers, num_attention_heads=heads)
    config = getattr(transformers, name + "Config")(**common, **more)
    return decoder(config, getattr(transformers, name + head), layers, kv or heads, dim)


@case
def llama():
    return causal("Llama", kv=2, intermediate_size=48, num_key_value_heads=2)


@case
def mistral():
    return causal("Mistral", kv=2, intermediate_size=48, num_key_value_heads=2, sliding_window=12)


@case
def stablelm():
    return causal("StableLm", intermediate_size=48, num_key_value_heads=4)


@case
def gpt2():
    return causal("GPT2", head="LMHeadModel", n_positions=256)


@case
def bloom():
    return causal("Bloom")


@case
def falcon():
    return causal("Falcon", kv=1, multi_query=True, new_decoder_architecture=False)


@case
def olmo():
    return causal("Olmo", intermediate_size=48)


@case
def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperDecoder

    config = WhisperConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_target_positions=256, pad_token_id=1)
    return decoder(config, WhisperDecoder, 2, 4, 8, seq2seq=True)


@case
def marian():
    from transformers import MarianConfig
    from transformers.models.marian.modeling_marian import MarianDecoder

    config = MarianConfig(vocab_size=60, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=256, pad_token_id=1)
    return decoder(config, MarianDecoder, 2, 4, 8, seq2seq=True)

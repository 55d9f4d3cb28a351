"""Decoders of random weights for onnx_generate.py: what their exporters write, with past and present as inputs and outputs."""

import json
import pathlib
import shutil
import tempfile
import traceback

CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def make(folder, names):
    """Writes the files of the named cases, or of all: NAME.EXPORTER.onnx."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        for exporter, write in CASES[name]().items():
            path = folder / f"{name}.{exporter}.onnx"
            try:
                write(path)
                print(path.name, flush=True)
            except Exception as error:  # noqa: BLE001: exporters fail in many ways.
                path.unlink(missing_ok=True)
                said = (str(error).splitlines() or [""])[0][:200]
                print(f"{path.name}: not exported: {type(error).__name__}: {said}", flush=True)
                if not names:
                    continue
                print(traceback.format_exc().splitlines()[-4:], flush=True)


def drawn(model, seed=1):
    """The same network with weights that make no two words as likely."""
    import torch

    torch.manual_seed(seed)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.15)
    return model.eval()


def genai(config, kind, path, *extra):
    """A file as onnxruntime-genai's builder writes it, with activations that ONNX Runtime does not round to 8 bits."""
    import onnx
    from onnxruntime_genai.models.builder import create_model, parse_extra_options

    with tempfile.TemporaryDirectory() as place:
        source = pathlib.Path(place) / "source"
        drawn(kind(config)).save_pretrained(source)
        words = {f"w{place}": place for place in range(config.vocab_size)}
        tokens = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                  "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"}}
        (source / "tokenizer.json").write_text(json.dumps(tokens))
        (source / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "w2", "bos_token": "w1"}))
        given = (str(source), str(source), place, "int4", "cpu", f"{place}/cache")
        create_model(*given, **parse_extra_options(*given, list(extra)))
        model = onnx.load(f"{place}/model.onnx")
        shutil.rmtree(f"{place}/cache", ignore_errors=True)
    for node in model.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    # What this builder leaves open though all calls have the same.
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "kv_cache_dim":
                dim.dim_value = config.head_dim
    onnx.save(model, path)


def causal(inner, layers, heads, dim, words, positions=True, seq2seq=0):
    """What the exporters of torch.onnx write of a decoder of transformers. `seq2seq` is the width of what an encoder gave."""
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = drawn(inner)

        def forward(self, ids, mask, other, past):
            cache = DynamicCache()
            for layer in range(layers):
                cache.update(past[2 * layer], past[2 * layer + 1], layer)
            given = dict(input_ids=ids, attention_mask=mask, use_cache=True)
            if seq2seq:
                whole = EncoderDecoderCache(cache, DynamicCache())
                out = self.inner(encoder_hidden_states=other, past_key_values=whole, **given)
                cache, logits = whole.self_attention_cache, out.last_hidden_state @ self.inner.get_input_embeddings().weight.T
            else:
                given = {**given, "position_ids": other} if positions else given
                logits = self.inner(past_key_values=cache, **given).logits
            return (logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values)))

    batch, length, before = 2, 3, 5
    other = torch.randn(batch, 9, seq2seq) if seq2seq else torch.arange(before, before + length).expand(batch, length)
    past = [torch.randn(batch, heads, before, dim) for _ in range(2 * layers)]
    example = (torch.randint(3, words, (batch, length)), torch.ones(batch, before + length, dtype=torch.int64), other, past)
    pairs = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    third = ("encoder_hidden_states", {0: "batch", 1: "frames"}) if seq2seq else ("position_ids", {0: "batch", 1: "length"})
    inputs = [("input_ids", {0: "batch", 1: "length"}), ("attention_mask", {0: "batch", 1: "total"}), third]
    inputs += [(f"past_key_values.{pair}", {0: "batch", 2: "past"}) for pair in pairs]
    names, results = [name for name, _ in inputs], ["logits", *(f"present.{pair}" for pair in pairs)]
    module = Module().eval()

    def torchscript(path):
        with torch.no_grad():
            torch.onnx.export(module, example, str(path), dynamo=False, opset_version=17, input_names=names, output_names=results, dynamic_axes=dict(inputs))

    def dynamo(path):
        axes = [{axis: torch.export.Dim.DYNAMIC for axis in axes} for _, axes in inputs]
        with torch.no_grad():
            made = torch.onnx.export(module, example, dynamo=True, input_names=names, output_names=results, dynamic_shapes=(*axes[:3], axes[3:]), verbose=False)
        made.save(str(path), external_data=False)

    return {"dynamo": dynamo, "torchscript": torchscript}


def of_transformers(name, kv=None, dim=8, head="ForCausalLM", positions=True, layers=2, words=200, **more):
    """A decoder of transformers by the name of its classes, with what most configurations have."""
    import transformers

    common = dict(vocab_size=words, hidden_size=32, num_hidden_layers=layers, num_attention_heads=4)
    config = getattr(transformers, name + "Config")(**{**common, **more})
    config._attn_implementation = more.get("attn_implementation", "sdpa")
    return causal(getattr(transformers, name + head)(config), layers, kv or 4, dim, words, positions)


@case
def gqa():
    """Issue: (a)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=1024, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, head_dim=32)
    return {"genai": lambda path: genai(config, LlamaForCausalLM, path)}


@case
def concat():
    """(b)."""
    return of_transformers("Llama", kv=2, dim=32, words=512, hidden_size=128, intermediate_size=256, num_key_value_heads=2, max_position_embeddings=1024)


@case
def whisper_tiny():
    """(c): the sizes of Whisper-tiny."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperDecoder

    config = WhisperConfig(vocab_size=51865, d_model=384, decoder_layers=4, decoder_attention_heads=6, decoder_ffn_dim=1536, max_target_positions=1024)
    config._attn_implementation = "sdpa"
    return causal(WhisperDecoder(config), 4, 6, 64, 51865, seq2seq=384)


@case
def gpt_neox():
    return of_transformers("GPTNeoX", intermediate_size=48, max_position_embeddings=1024)


@case
def phi():
    return of_transformers("Phi", intermediate_size=48, max_position_embeddings=1024)


@case
def qwen3():
    return of_transformers("Qwen3", kv=2, dim=16, intermediate_size=48, num_key_value_heads=2, head_dim=16, max_position_embeddings=1024)


@case
def falcon():
    return of_transformers("Falcon", kv=1, multi_query=True, new_decoder_architecture=False)


@case
def opt():
    return of_transformers("OPT", ffn_dim=48, max_position_embeddings=1024, word_embed_proj_dim=32)


def seq2seq(name, kind, module, **more):
    """A decoder that attends to what an encoder gave."""
    import importlib

    import transformers

    config = getattr(transformers, name + "Config")(**more)
    config._attn_implementation = "eager" if name == "T5" else "sdpa"
    inner = getattr(importlib.import_module(f"transformers.models.{module}.modeling_{module}"), kind)(config)
    return causal(inner, 2, 4, 8, 200, seq2seq=32)


BART_LIKE = dict(vocab_size=200, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, max_position_embeddings=1024, pad_token_id=1)


@case
def bart():
    return seq2seq("Bart", "BartDecoder", "bart", **BART_LIKE)


@case
def t5():
    return seq2seq("T5", "T5Stack", "t5", vocab_size=200, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, is_decoder=True)


@case
def gpt2():
    return of_transformers("GPT2", head="LMHeadModel", n_positions=1024)


@case
def gptj():
    return of_transformers("GPTJ", rotary_dim=4, n_positions=1024, n_embd=32, n_layer=2, n_head=4)


@case
def olmo2():
    return of_transformers("Olmo2", kv=4, intermediate_size=48)


@case
def cohere():
    return of_transformers("Cohere", kv=2, intermediate_size=48, num_key_value_heads=2)


@case
def starcoder2():
    return of_transformers("Starcoder2", kv=2, intermediate_size=48, num_key_value_heads=2, sliding_window=24)


@case
def granite():
    return of_transformers("Granite", kv=2, intermediate_size=48, num_key_value_heads=2)


@case
def gemma3():
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(vocab_size=200, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=8,
                              max_position_embeddings=1024, layer_types=["full_attention", "full_attention"])
    config._attn_implementation = "sdpa"
    return causal(Gemma3ForCausalLM(config), 2, 1, 8, 200)


@case
def marian():
    return seq2seq("Marian", "MarianDecoder", "marian", **BART_LIKE)


@case
def pegasus():
    return seq2seq("Pegasus", "PegasusDecoder", "pegasus", **BART_LIKE)


@case
def mixtral():
    return of_transformers("Mixtral", kv=2, intermediate_size=48, num_key_value_heads=2, num_local_experts=4)


@case
def gqa_qwen3():
    """onnxruntime-genai's builder for a model that normalizes queries and keys."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         max_position_embeddings=1024, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, head_dim=32)
    return {"genai": lambda path: genai(config, Qwen3ForCausalLM, path)}


@case
def gqa_phi3():
    """The same for one whose queries, keys and values come of one product."""
    from transformers import Phi3Config, Phi3ForCausalLM

    config = Phi3Config(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                        max_position_embeddings=1024, original_max_position_embeddings=1024, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    config.head_dim = 16
    return {"genai": lambda path: genai(config, Phi3ForCausalLM, path)}

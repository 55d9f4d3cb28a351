"""Greedy texts of a language model by llama.cpp's processor back end, and what Halite has behind each of their tokens.

    python gguf_greedy.py reference MODEL.gguf LIBRARIES TEXTS.json [TOKENS]
    python gguf_greedy.py compare MODEL.gguf TEXTS.json [DEVICE]

`reference` writes on from ten prompts, 256 tokens each unless TOKENS says otherwise, always the most likely one, and keeps how far the second
is from it. LIBRARIES is a folder as for gguf_tiny.py. `compare` gives these texts to Halite, 64 tokens a call, and tells where another token
is the most likely one to it: up to the first such place Halite writes the same text by itself, and behind it both still have the same text
before them. Each such place comes with how far the two tokens are apart in Halite's logits and in llama.cpp's; ties are a few hundredths,
which is what llama.cpp's rounding of activations to 8 bits makes beside packed weights. Needs `numpy`, and `halite` for `compare`.
"""

import ctypes as C
import json
import sys

import numpy as np

from llama_cpp import SILENT, libraries

PROMPTS = [
    "The capital of France is", "Once upon a time there was", "def fibonacci(n):", "The three laws of thermodynamics are",
    "Dear Sir or Madam,", "In 1969, the first people", "To make bread you need", "Der schnelle braune Fuchs", "1, 1, 2, 3, 5, 8,",
    "The quick brown fox",
]  # fmt: skip
CONTEXT, CALL = 512, 64


def reference(model, folder, out, most=256):
    """Texts of llama.cpp."""
    lib = libraries(folder, ["cpu"])
    lib.llama_log_set(SILENT, None)
    loaded = lib.llama_model_load_from_file(model.encode(), lib.llama_model_default_params())
    assert loaded, model
    params = lib.llama_context_default_params()
    np.frombuffer(params, np.uint32, 4)[:] = [CONTEXT, CONTEXT, CONTEXT, 1]
    context, vocabulary = lib.llama_init_from_model(loaded, params), lib.llama_model_get_vocab(loaded)
    known = lib.llama_vocab_n_tokens(vocabulary)
    texts = []
    for prompt in PROMPTS:
        lib.llama_memory_clear(lib.llama_get_memory(context), True)
        made, text = (C.c_int32 * CONTEXT)(), prompt.encode()
        tokens = list(made[: lib.llama_tokenize(vocabulary, text, len(text), made, CONTEXT, True, False)])
        greedy, gaps, new = [], [], tokens
        for _ in range(int(most)):
            given = (C.c_int32 * len(new))(*new)
            assert lib.llama_decode(context, lib.llama_batch_get_one(given, len(new))) == 0
            logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(context, -1), (known,))
            second, first = np.partition(logits, -2)[-2:]
            new = [int(logits.argmax())]
            greedy, gaps = greedy + new, gaps + [round(float(first - second), 5)]
        texts.append({"text": prompt, "prompt": tokens, "greedy": greedy, "gaps": gaps})
        with open(out, "w") as file:
            json.dump(texts, file)
        print(prompt, flush=True)


def compare(model, texts, device="vulkan"):
    """Halite's most likely tokens behind those of these texts."""
    import halite

    session = halite.Session(model, device=device, dimensions={"tokens": CALL, "rows": CALL, "context": CONTEXT})
    rows, all_tokens, others = np.arange(CALL, dtype=np.int32), 0, []
    with open(texts) as file:
        read = json.load(file)
    for text in read:
        tokens, first, found = text["prompt"] + text["greedy"], len(text["prompt"]), []
        state = session.state()
        for at in range(0, len(tokens), CALL):
            part = np.zeros(CALL, np.int32)
            part[: len(tokens[at : at + CALL])] = tokens[at : at + CALL]
            places = np.arange(at, at + CALL, dtype=np.int64)
            logits = np.array(state.run({"tokens": part, "positions": places, "rows": rows})["logits"])
            for row, token in enumerate(tokens[at + 1 : at + 1 + CALL]):
                place, best = at + 1 + row - first, int(logits[row].argmax())
                if place >= 0 and best != token:
                    gap = round(float(logits[row, best] - logits[row, token]), 4)
                    found.append((place, gap, text["gaps"][place]))
        all_tokens, others = all_tokens + len(text["greedy"]), others + found
        print(f"{text['text']}: {len(found)} of {len(text['greedy'])} are others: (place, gap, llama.cpp's gap) {found}", flush=True)
    print(f"{len(others)} of {all_tokens} tokens are others; largest gap {max([gap for _, gap, _ in others] or [0])}")


if __name__ == "__main__":
    {"reference": reference, "compare": compare}[sys.argv[1]](*sys.argv[2:])

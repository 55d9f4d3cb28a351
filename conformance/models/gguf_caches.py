"""What caches of keys and values in blocks change, beside llama.cpp, in small random models of architectures by lot.

    python gguf_caches.py HALITE LIBRARIES COUNT SEED [NAME...]

HALITE is the program, LIBRARIES llama.cpp's (see gguf_tiny.py). COUNT architectures of gguf_matrix.py are drawn, or each NAME taken, with
weights as f32. Each program tells the logarithms of the probabilities of 55 tokens with caches in f16, and with pairs of types that are drawn;
the root of the mean square of what a pair changes is printed, of Halite and of llama.cpp, of all tokens and of all but two, and how far the
programs are apart in f16. The last lines say how many cases are right: within 0.08 in f16, and changes (but of two tokens, whose experts may be
at ties) of at most 1.5 times llama.cpp's and 0.02 more. Where llama.cpp takes no such caches, or has no numbers with them, a change is only told.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
import zlib

import gguf_families as families
import gguf_matrix
import gguf_sizes
import gguf_tiny
import numpy as np

TOKENS, TIES, LIMIT = 56, 2, 240
PAIRS = [(keys, values) for keys in gguf_matrix.CACHES for values in gguf_matrix.CACHES if (keys, values) != ("f16", "f16")]


def logarithms(logits):
    """Of probabilities; of numbers that may be minus infinity."""
    most = logits.max()
    return logits - most - np.log(np.exp(logits - most).sum())


def of_llama(libraries, path, tokens, pair):
    """What llama.cpp says of each token but the first."""
    llama = gguf_matrix.Ways(libraries, path, 1, tuple(gguf_matrix.CACHES[kind] for kind in pair))
    llama.lib.llama_memory_clear(llama.lib.llama_get_memory(llama.context), True)
    rows = [logarithms(np.array(llama.logits([token]), float)) for token in tokens[:-1]]
    return np.array([row[token] for row, token in zip(rows, tokens[1:])])


def of_halite(program, path, tokens, pair):
    """The same of Halite, by its server."""
    options = [f"--cache-type-k={pair[0]}", f"--cache-type-v={pair[1]}", "--context=128", "--port=0"]
    server = subprocess.Popen([program, "serve", path, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        if not line:
            raise RuntimeError(server.stderr.read().strip().splitlines()[-1])
        request = {"prompt": tokens, "max_tokens": 0, "echo": True, "logprobs": 0}
        url = re.search(r"http://[0-9.:]+", line).group(0) + "/v1/completions"
        sent = urllib.request.Request(url, json.dumps(request).encode(), {"content-type": "application/json"})
        reply = json.load(urllib.request.urlopen(sent, timeout=LIMIT))
        return np.array(reply["choices"][0]["logprobs"]["token_logprobs"][1:], float)
    finally:
        server.kill()
        server.communicate()


def takes_blocks(keys):
    """Whether rows of keys and values are whole blocks of 32 elements, where metadata say how long they are."""
    return all(keys.get(f"attention.{part}_length", 32) % 32 == 0 for part in ("key", "value"))


def prepare(case, size, path, random):
    """A model with weights as f32."""
    more = {}
    if size == "drawn":
        arch = case.removesuffix("-moe")
        keys, layers, model, *given = next(own for own in iter(lambda: gguf_matrix.DRAWN[case](random), None) if takes_blocks(own[0]))
        more = given[0] if given else {}
    else:
        arch, keys, layers, *model = (gguf_matrix.WIDE if size == "wide" else gguf_matrix.NARROW)[case]
        model = model[0] if model else [["output_norm", "width"], ["output", "vocabulary", "width"]]
        keys = {"embedding_length": gguf_sizes.WIDTH if size == "wide" else 32, **keys}
        if size == "narrow":
            keys = {"feed_forward_length": 64, "attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 32, **keys}
    parts = {"width": keys["embedding_length"], "context": 512}
    model = [[parts.get(part, part) for part in own] for own in model]
    families.CASES["drawn"] = (arch, {**keys, "context_length": 512}, layers, model)
    families.write(path, "drawn", lambda w: gguf_tiny.scores_vocabulary(w, 7), True, seed=int(random.integers(1 << 30)), added=0.3, **more)


def compare(program, libraries, case, seed):
    """A line of one case, and whether it is right."""
    random = np.random.default_rng([seed, zlib.crc32(case.encode())])
    sizes = ["narrow", "wide"] if case in gguf_matrix.NARROW else ["drawn"]
    size = sizes[int(random.integers(len(sizes)))]
    pairs = [PAIRS[number] for number in random.permutation(len(PAIRS))[:3]]
    told = {"case": case, "size": size, "right": True}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        prepare(case, size, path, random)
        tokens = [int(token) for token in random.integers(3, 250, TOKENS)]
        plain = of_llama(libraries, path, tokens, ("f16", "f16")), of_halite(program, path, tokens, ("f16", "f16"))
        mean = lambda squares: float(np.sqrt(np.mean(squares)))
        # Of all tokens, and of all but those that change the most: one whose experts are at a tie may get others.
        changed = lambda of, base: (mean((of - base) ** 2), mean(np.sort((of - base) ** 2)[:-TIES]))
        told["f16"] = mean((plain[1] - plain[0]) ** 2)
        told["right"] = bool(told["f16"] < 0.08)
        for pair in pairs:
            try:
                own = changed(of_halite(program, path, tokens, pair), plain[1])
            except RuntimeError as error:
                own = str(error)[-120:]
            try:
                llama = changed(of_llama(libraries, path, tokens, pair), plain[0])
            except AssertionError:
                llama = None
            told["/".join(pair)] = own, llama
            refused = isinstance(own, str)
            told["right"] &= refused == (llama is None) or not refused
            if not refused and llama is not None and np.isfinite(llama[1]):
                told["right"] &= bool(own[1] <= 1.5 * llama[1] + 0.02)
    print(json.dumps(told), flush=True)
    return told["right"]


def main(program, libraries, count, seed, *names):
    random = np.random.default_rng(int(seed))
    every = sorted({*gguf_matrix.NARROW, *gguf_matrix.DRAWN} - {"drawn"})
    names = names or [every[number] for number in random.permutation(len(every))[: int(count)]]
    results = {}
    for case in names:
        # llama.cpp ends the process that it does not like something in.
        process = os.fork()
        if process == 0:
            signal.alarm(LIMIT)
            try:
                right = compare(program, libraries, case, int(seed))
            except AssertionError as error:
                print(case, "left out:", str(error)[-120:], flush=True)
                os._exit(2)
            os._exit(0 if right else 1)
        results[case] = os.waitpid(process, 0)[1]
    ran = [case for case, status in results.items() if status in (0, 256)]
    print(sum(results[case] == 0 for case in ran), "of", len(ran), "right; not:", [case for case in ran if results[case]])
    print("left out:", [case for case in results if case not in ran])
    sys.exit(any(results[case] for case in ran) or not ran)


if __name__ == "__main__":
    main(*sys.argv[1:])

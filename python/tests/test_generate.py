"""Language models: text that streams, conversations, sequences, vectors of texts. The models: conformance/models/gguf_tiny.py."""

from __future__ import annotations

import gc
import json
import threading

import numpy as np
import pytest
from conftest import REPOSITORY

import halite

FILES = REPOSITORY / "compiler/tests/data/gguf"


@pytest.fixture(scope="module")
def llama(device):
    return halite.Generator(FILES / "llama.gguf", context=64, device=device, cache=False)


@pytest.fixture(scope="module")
def gemma(device):
    return halite.Generator(FILES / "gemma3.gguf", context=64, device=device, cache=False)


@pytest.fixture(scope="module")
def told():
    """What llama.cpp made of llama.gguf."""
    return json.loads((FILES / "llama.json").read_text())


def test_tokens_and_logits_are_those_of_llama_cpp(llama, told):
    stream = llama.generate(told["prompt"], max_tokens=16, temperature=0)
    pieces = list(stream)
    ended = [i for i, token in enumerate(told["greedy"]) if llama.is_end(token)]
    wanted = told["greedy"][: ended[0] if ended else 16]
    assert stream.tokens == wanted and stream.stop == ("end" if ended else "length")
    assert "".join(pieces) == stream.text == stream.read() and all(pieces)
    assert stream.sequence.tokens == told["prompt"] + wanted
    sequence = llama.sequence()
    assert sequence.prompt(told["prompt"]) == 0 and len(sequence) == 40
    assert np.abs(sequence.logits - np.array(told["logits"], np.float32)).max() < 0.03
    assert sequence.prompt(told["prompt"] + [5]) == 40, "what is common is kept"
    assert sequence.generator.context == llama.context == 64 and sequence.nbytes > 0


def test_a_stream_is_as_lazy_as_it_says(llama, told):
    stream = llama.generate(told["prompt"], max_tokens=16, temperature=0)
    assert stream.stop is None and stream.tokens == [] and len(stream.sequence) == 40
    first = next(stream)
    # Others may look at the sequence while it is written; the token of the text that was told joins it with the next.
    assert stream.text == first and len(stream.sequence) == 40 + len(stream.tokens) - 1
    del stream
    gc.collect()


def test_texts_end_an_answer_and_are_not_told(llama, told):
    whole = llama.generate(told["prompt"], max_tokens=16, temperature=0).read()
    stop = whole[len(whole) // 2 :][:3]
    stream = llama.generate(told["prompt"], max_tokens=16, temperature=0, stop=stop)
    assert stream.read() == whole[: whole.index(stop)] and stream.stop == "text"
    assert next(stream, None) is None
    # What only began like one is told in the end.
    stream = llama.generate(told["prompt"], max_tokens=16, temperature=0, stop=[whole[-1] + "no such text", "neither"])
    assert stream.read() == whole and stream.stop in ("end", "length")
    for wrong in ("", ["a", ""]):
        with pytest.raises(halite.Error, match="is not empty"):
            llama.generate("a", stop=wrong)
    with pytest.raises(halite.Error, match="a text, or a list of texts"):
        llama.generate("a", stop=7)


def test_prompts_are_texts_tokens_and_messages(gemma):
    text = gemma.chat([{"role": "user", "content": "in the"}])
    assert text.endswith("<|turn|>assistant\n") and gemma.chat([("user", "in the")]) == text
    said = {"role": "user", "content": "in the", "name": "x", "tool_calls": [{"function": {"name": "f"}}]}
    assert gemma.chat([said], values={"enable_thinking": False}) == text
    with pytest.raises(halite.Error, match="messages"):
        gemma.chat([said], values={"messages": []})
    with pytest.raises(halite.Error, match="takes no tools"):
        gemma.chat([said], tools=[{"type": "function", "function": {"name": "f"}}])
    tokens = gemma.tokenize(text, control=True)
    plain = gemma.tokenize(text)
    assert len(plain) > len(tokens), "names of control tokens in a text are plain text"
    choices = {"max_tokens": 6, "temperature": 0}
    answers = {gemma.generate(prompt, **choices).read() for prompt in (tokens, [{"role": "user", "content": "in the"}], [("user", "in the")])}
    assert len(answers) == 1
    assert gemma.generate("in the", **choices).sequence.tokens[: len(gemma.tokenize("in the"))] == gemma.tokenize("in the")
    assert gemma.text(gemma.tokenize("in the")).strip() == "in the"
    for wrong in ([{"role": "user"}], [7.5], 7, [("user",)]):
        with pytest.raises(halite.Error, match="a prompt is a text, a list of tokens, or a list of messages"):
            gemma.generate(wrong)


def test_choices_are_drawn_by_the_seed(llama):
    def draw(seed):
        return llama.generate([5, 6, 7], max_tokens=12, temperature=3.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed).tokens

    def drawn(seed):
        stream = llama.generate([5, 6, 7], max_tokens=12, temperature=3.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed)
        stream.read()
        return stream.tokens

    assert draw(1) == [] and drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(4)}) > 1


def test_sequences_are_forked_saved_and_taken_back(llama, told):
    sequence = llama.sequence()
    sequence.prompt(told["prompt"])
    logits = sequence.logits
    saved, other = sequence.save(), sequence.fork()
    sequence.append([5, 6, 7])
    assert other.tokens == told["prompt"] and len(sequence) == 43
    sequence.truncate(40)
    assert sequence.logits.size == 0
    again = llama.sequence()
    again.load(saved)
    streams = [s.generate(max_tokens=4, temperature=0) for s in (sequence, other, again)]
    assert len({stream.read() for stream in streams}) == 1
    assert np.abs(llama.generate(told["prompt"]).sequence.logits - logits).max() < 0.03
    for wrong in (b"no", saved[:20]):
        with pytest.raises(halite.Error, match="no saved sequence"):
            again.load(wrong)


def test_the_end_of_a_context_and_wrong_tokens(llama):
    stream = llama.generate([5] * 61, temperature=3.0, seed=3)
    stream.read()
    assert stream.stop in ("context", "end") and len(stream.sequence) <= 64
    for tokens, text in (([], "at least one token"), ([9999], "there is no token 9999"), ([5] * 65, "do not fit a context of 64")):
        with pytest.raises(halite.Error, match=text):
            llama.generate(tokens)
    with pytest.raises(halite.Error, match="does not score"):
        llama.sequence().score([5, 6])
    with pytest.raises(halite.Error, match="give it a prompt"):
        next(llama.sequence().generate())


def test_scores_and_caches_in_blocks(device):
    generator = halite.Generator(FILES / "qwen3.gguf", context=64, cache_types=("q8_0", "q4_0"), scoring=True, device=device, cache=False)
    assert generator.cache_types == ("q8_0", "q4_0")
    scores = generator.sequence().score([5, 6, 7, 8])
    assert scores.shape == (4,) and scores[0] == 0 and (scores[1:] < 0).all()
    with pytest.raises(halite.Error, match="f16, q8_0, q4_0"):
        halite.Generator(FILES / "qwen3.gguf", cache_types="q5_1", device=device)
    with pytest.raises(halite.Error, match="types of caches are"):
        halite.Generator(FILES / "qwen3.gguf", cache_types=8, device=device)


def test_writing_is_cancelled_and_ends_in_time(llama):
    token = halite.CancelToken()
    stream = llama.generate([5, 6], cancel=token, temperature=3.0)
    next(stream)
    token.cancel()
    with pytest.raises(halite.Error) as caught:
        stream.read()
    assert caught.value.kind == "cancelled"
    with pytest.raises(halite.Error) as caught:
        llama.generate([5, 6], timeout=0.0).read()
    assert caught.value.kind == "deadline_exceeded"


def test_threads_write_sequences_of_their_own(llama, told):
    alone = llama.generate(told["prompt"], max_tokens=8, temperature=0).read()
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(llama.generate(told["prompt"], max_tokens=8, temperature=0).read())) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone] * 3


def test_vectors_of_texts(device):
    embedder = halite.Embedder(FILES / "bert.gguf", device=device, cache=False)
    wanted = json.loads((FILES / "bert.json").read_text())
    raw = embedder.embed(wanted["text"], normalize=False)
    assert np.abs(raw - np.array(wanted["vector"], np.float32)).max() < 0.03
    one = embedder.embed(wanted["text"])
    assert one.dtype == np.float32 and abs(np.linalg.norm(one) - 1) < 1e-4
    both = embedder.embed([wanted["text"], "the"])
    assert both.shape == (2, one.size) and np.array_equal(both[0], one)
    assert np.array_equal(embedder.embed(embedder.tokenize("the")), both[1])
    assert embedder.longest == 128 and embedder.session.device is not None
    for wrong, text in (([], "0 tokens"), (7, "an embedder takes"), ([["a"], 7], "an embedder takes")):
        with pytest.raises(halite.Error, match=text):
            embedder.embed(wrong)


def test_models_of_other_kinds_are_refused(device, digits):
    with pytest.raises(halite.Error, match="is no GGUF file"):
        halite.Embedder(digits, device=device)
    with pytest.raises(halite.Error, match="tokenizer"):
        halite.Generator(digits, device=device)
    with pytest.raises(halite.Error, match="no-such-tokenizer.json"):
        halite.Generator(digits, tokenizer="no-such-tokenizer.json", device=device)
    with pytest.raises(halite.Error, match="is an encoder"):
        halite.Generator(FILES / "bert.gguf", device=device)
    with pytest.raises(halite.Error, match="makes no vectors"):
        halite.Embedder(FILES / "llama.gguf", device=device, cache=False)


def test_tokens_are_chosen_where_the_program_says(device, told):
    for place in ["host", "device"]:
        model = FILES / "llama.gguf"
        generator = halite.Generator(model, context=64, choose_on=place, device=device, cache=False)
        stream = generator.generate(told["prompt"], max_tokens=9, temperature=0)
        # One that was chosen for the iterator, the others for who reads to the end.
        first = next(stream)
        assert stream.read().startswith(first) and stream.stop == "length"
        assert stream.tokens == told["greedy"][:9]
        whole = generator.generate(told["prompt"], max_tokens=9, temperature=0).read()
        assert whole == stream.text
        cut = generator.generate(told["prompt"], max_tokens=12, temperature=0, stop=whole[len(whole) // 2 :])
        assert cut.read() == whole[: len(whole) // 2] and cut.stop == "text"
        # What a device chose by stays there.
        assert (len(cut.sequence.logits) == 0) == (place == "device")
        assert cut.sequence.tokens == told["prompt"] + cut.tokens
    with pytest.raises(halite.Error, match="auto, host, device"):
        halite.Generator(FILES / "llama.gguf", choose_on="gpu", device=device)


def test_texts_go_on_behind_their_end_where_the_program_says(llama):
    def write(seed, **how):
        stream = llama.generate([3], max_tokens=40, temperature=3, top_k=0, top_p=1, min_p=0, seed=seed, **how)
        stream.read()
        return stream

    short = next(stream for stream in map(write, range(50)) if stream.stop == "end")
    seed = next(seed for seed in range(50) if write(seed).stop == "end")
    long = write(seed, ignore_end=True)
    assert long.stop == "length" and len(long.tokens) == 40
    assert long.tokens[: len(short.tokens)] == short.tokens and llama.is_end(long.tokens[len(short.tokens)])
    sequence = llama.sequence()
    sequence.prompt([3])
    how = dict(max_tokens=40, temperature=3, top_k=0, top_p=1, min_p=0, seed=seed)
    lazy = sequence.generate(ignore_end=True, **how)
    list(lazy)
    assert lazy.tokens == long.tokens


def test_decoders_in_other_formats_write_with_a_tokenizer_from_a_file(device):
    decoder = REPOSITORY / "conformance/tests/data/state/decoder.onnx"
    generator = halite.Generator(decoder, tokenizer=FILES / "llama.gguf", context=64, device=device, cache=False)
    stream = generator.generate([3, 7, 1, 9, 4], max_tokens=6, temperature=0)
    stream.read()
    # ONNX Runtime's most likely tokens.
    assert stream.tokens == [36, 37, 36, 40, 49, 23] and stream.stop == "length"


@pytest.mark.parametrize("place", ["host", "device"])
def test_steps_of_several_sequences_are_those_of_each(device, place):
    several = halite.Generator(FILES / "llama.gguf", context=64, device=device, cache=False, batch=3, choose_on=place)
    assert several.batch == 3
    ways = [{"temperature": 0}, {"temperature": 0.9, "top_k": 20, "seed": 4}, {"temperature": 0.9, "top_k": 20, "seed": 5}]
    prompts = [[5, 6, 7], list(range(3, 30)), [9, 40]]
    writers = []
    for prompt, way in zip(prompts, ways):
        sequence = several.sequence()
        sequence.prompt(prompt)
        writers.append((sequence, halite.Sampler(ignore_end=True, **way)))
    told = [several.step(writers) for _ in range(7)]
    # One leaves, the others go on.
    told_behind = [several.step(writers[1:]) for _ in range(3)]
    for place, (prompt, way) in enumerate(zip(prompts, ways)):
        own = [step[place] for step in told] + [step[place - 1] for step in told_behind if place > 0]
        stream = several.generate(prompt, max_tokens=len(own), ignore_end=True, **way)
        stream.read()
        assert own == stream.tokens and writers[place][0].tokens == prompt + own


def test_who_takes_a_step_is_checked(device):
    several = halite.Generator(FILES / "llama.gguf", context=64, device=device, cache=False, batch=2)
    full, empty = several.sequence(), several.sequence()
    full.prompt(list(range(3, 67)))
    sampler = halite.Sampler(temperature=0, ignore_end=True)
    assert several.step([(full, sampler)]) == ["context"] and several.step([]) == []
    with pytest.raises(halite.Error, match="takes part in a step once"):
        several.step([(full, sampler), (full, halite.Sampler())])
    with pytest.raises(halite.Error, match="takes part in a step once"):
        several.step([(full, sampler), (empty, sampler)])
    with pytest.raises(halite.Error, match="give it a prompt"):
        several.step([(full, sampler), (empty, halite.Sampler())])
    token = halite.CancelToken()
    token.cancel()
    with pytest.raises(halite.Error, match="cancelled"):
        several.step([(full, sampler)], cancel=token)


SCHEMA = {"type": "object", "properties": {"a": {"enum": ["in the", 12]}}, "required": ["a"]}


def test_answers_follow_schemas(llama):
    for schema in (SCHEMA, json.dumps(SCHEMA)):
        stream = llama.generate([5, 6, 7], max_tokens=50, temperature=1, seed=1, json_schema=schema)
        assert json.loads("".join(stream))["a"] in ("in the", 12) and stream.stop == "end"
    sequence = llama.sequence()
    sequence.prompt([5, 6, 7])
    assert sequence.generate(max_tokens=50, temperature=1, seed=1, json_schema=SCHEMA).read() == stream.text
    # The same in steps.
    sequence.prompt([5, 6, 7])
    sampler = llama.schema_sampler(SCHEMA, temperature=1, seed=1)
    while llama.step([(sequence, sampler)]) != ["end"]:
        pass
    assert llama.text(sequence.tokens[3:]) == stream.text
    for wrong, text in (("{", "is no JSON"), ({"not": {}}, "'not'"), (False, "no value")):
        with pytest.raises(halite.Error, match=text):
            llama.generate("a", json_schema=wrong)
    with pytest.raises(TypeError):
        llama.schema_sampler({"enum": [object()]})

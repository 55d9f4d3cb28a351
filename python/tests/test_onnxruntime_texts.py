"""Models of texts of the stand-in for ONNX Runtime: what the host computes, and devices between."""

from __future__ import annotations

import models
import numpy as np
import pytest
from models import BOOL, FLOAT, INT64, TEXT

import halite.onnxruntime as ort


@pytest.fixture(autouse=True)
def on_device(device, monkeypatch):
    monkeypatch.setenv("HALITE_ONNXRUNTIME_DEVICE", device.uri)


def columns() -> bytes:
    """Columns for the cities of a text, and a number for another text."""
    return models.model(
        models.node("Identity", ["city"], ["there"]),
        models.classic("OneHotEncoder", ["there"], ["one"], cats_strings=["Rom", "Köln", "b"]),
        models.classic("LabelEncoder", ["kind"], ["code"], keys_strings=["a", "b"], values_int64s=[7, 8]),
        models.takes("city", ["n"], TEXT),
        models.takes("kind", ["n"], TEXT),
        models.gives("one", ["n", 3]),
        models.gives("code", ["n"], INT64),
    )


@pytest.mark.parametrize("kind", ["U", "O", "S"])
def test_texts_are_looked_up(kind):
    session = ort.InferenceSession(columns())
    assert [(arg.name, arg.type, arg.shape) for arg in session.get_inputs()] == [
        ("city", "tensor(string)", ["n"]),
        ("kind", "tensor(string)", ["n"]),
    ]
    cities, kinds = ["Köln", "nowhere", "b", "a"], ["b", "a", "", "Rom"]

    def array(words):
        return np.array([word.encode() for word in words]) if kind == "S" else np.array(words, kind)

    feed = {"city": array(cities), "kind": array(kinds)}
    one, code = session.run(None, feed)
    assert one.dtype == np.float32 and one.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert code.tolist() == [8, 7, -1, -1] and feed["city"].dtype.kind == kind
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("code")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [8, 7, -1, -1]
    assert session.get_outputs()[1].type == "tensor(int64)"
    with pytest.raises(ort.InvalidArgument, match="takes texts"):
        session.run(None, {**feed, "city": np.ones(4, np.float32)})


def test_texts_are_mapped_to_numbers_and_to_texts():
    def run(*nodes, element):
        model = models.model(*nodes, models.takes("s", ["n"], TEXT), models.gives("y", ["n"], element))
        return ort.InferenceSession(model).run(None, {"s": np.array(["y", "?", "x"])})[0].tolist()

    mapped = models.classic("CategoryMapper", ["s"], ["y"], cats_strings=["x", "y"], cats_int64s=[5, -6])
    assert run(mapped, element=INT64) == [-6, -1, 5]
    values = {"keys_strings": ["x", "y"], "values_floats": [0.5, 1.5]}
    assert run(models.classic("LabelEncoder", ["s"], ["y"], **values), element=FLOAT)[::2] == [1.5, 0.5]
    renamed = models.classic("LabelEncoder", ["s"], ["y"], keys_strings=["x", "y"], values_strings=["ex", "why"])
    assert run(renamed, element=TEXT) == ["why", "_Unused", "ex"]


def run(inputs: dict, outputs: dict, *nodes: bytes, **feed):
    """A model of nodes; types of inputs and outputs with their ranks."""
    takes = [models.takes(name, [f"{name}{at}" for at in range(rank)], kind) for name, (kind, rank) in inputs.items()]
    gives = [models.gives(name, [f"{name}{at}" for at in range(rank)], kind) for name, (kind, rank) in outputs.items()]
    session = ort.InferenceSession(models.model(*nodes, *takes, *gives))
    return [made.tolist() for made in session.run(None, {name: np.array(value) for name, value in feed.items()})]


def test_texts_go_to_the_device_as_numbers_and_come_back_as_texts():
    words = ["a", "b", "c"]
    counts = models.node("TfIdfVectorizer", ["parts"], ["counts"], mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                         ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 3], pool_strings=[*words, "a", "b"], weights=[1.5, 2.0, 0.5, 4.0])  # fmt: skip
    model = models.model(
        models.node("StringNormalizer", ["s"], ["lower"], case_change_action="LOWER", is_case_sensitive=0),
        models.node("Tokenizer", ["lower"], ["parts"], "com.microsoft", mark=0, pad_value="#", mincharnum=1, tokenexp="[a-z]+"),
        counts,
        models.node("Add", ["counts", "x"], ["sums"]),
        models.classic("LinearClassifier", ["sums"], ["label", "scores"], coefficients=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], intercepts=[0.0, 0.5], classlabels_strings=["zero", "drei"]),
        models.node("StringConcat", ["label", "s"], ["y"]),
        models.classic("ZipMap", ["scores"], ["shares"], classlabels_strings=["zero", "drei"]),
        models.takes("s", ["n"], TEXT),
        models.takes("x", [1, 4]),
        models.gives("y", ["n"], TEXT),
        models.gives("sums", ["n", 4]),
        models.message(12, models.message(1, "shares")),
    )  # fmt: skip
    session = ort.InferenceSession(model)
    feed = {"s": np.array(["A-b, C", "b b"]), "x": np.array([[0.25, 0, 0, -1]], np.float32)}
    y, sums, shares = session.run(None, feed)
    assert sums.tolist() == [[2.25, 0.5, 1.5, 3.0], [4.25, 0, 0, -1]]
    assert y.tolist() == ["dreiA-b, C", "zerob b"] and shares == [{"zero": 2.25, "drei": 3.5}, {"zero": 4.25, "drei": -0.5}]
    # Another number of rows, and values that stay where they are.
    values = session.run_with_ort_values(["sums", "y"], {"s": ort.OrtValue(np.array(["c"])), "x": ort.OrtValue(feed["x"])})
    assert values[0].numpy().tolist() == [[0.25, 0.5, 0, -1]] and values[1].numpy().tolist() == ["zeroc"]
    assert session.get_provider_options()["VulkanExecutionProvider"]["device"] is not None
    with pytest.raises(ort.InvalidArgument, match="no input 'q'"):
        session.run(None, {**feed, "q": feed["x"]})
    with pytest.raises(ort.InvalidArgument, match="2 dimensions, and the model takes 1"):
        session.run(None, {**feed, "s": np.array([["a"]])})


def test_texts_are_cut_joined_and_compared():
    one = {"s": (TEXT, 1)}
    split = models.node("StringSplit", ["s"], ["y", "k"], delimiter=",", maxsplit=1)
    assert run(one, {"y": (TEXT, 2), "k": (INT64, 1)}, split, s=["a,b,c", ""]) == [[["a", "b,c"], ["", ""]], [2, 0]]
    # Spaces are skipped; other white space is text.
    spaces = models.node("StringSplit", ["s"], ["y", "k"])
    assert run(one, {"y": (TEXT, 2)}, spaces, s=[" a  b\tc ", "d"]) == [[["a", "b\tc"], ["d", ""]]]
    normal = models.node("StringNormalizer", ["s"], ["y"], case_change_action="UPPER", stopwords=["THE", "ß"], is_case_sensitive=0)
    assert run(one, {"y": (TEXT, 1)}, normal, s=["The", "straße", "ŉ", "ß"]) == [["STRASSE".replace("SS", "ß"), "ŉ"]]
    assert run(one, {"y": (TEXT, 1)}, normal, s=["the"]) == [[""]]
    unique = models.node("Unique", ["s"], ["y", "a", "b", "c"], sorted=1)
    outputs = {"y": (TEXT, 1), "a": (INT64, 1), "b": (INT64, 1), "c": (INT64, 1)}
    assert run(one, outputs, unique, s=["b", "ä", "b", "B"]) == [["B", "b", "ä"], [3, 0, 1], [1, 2, 1, 0], [1, 2, 1]]
    two = {"s": (TEXT, 1), "t": (TEXT, 1)}
    chosen = models.node("Equal", ["s", "t"], ["e"]), models.node("Where", ["e", "s", "t"], ["y"])
    assert run(two, {"e": (BOOL, 1), "y": (TEXT, 1)}, *chosen, s=["a", "b"], t=["a", "c"]) == [[True, False], ["a", "c"]]


def test_nodes_may_stand_in_any_order():
    nodes = (
        models.node("StringConcat", ["name", "s"], ["y"]),
        models.classic("LabelEncoder", ["twice"], ["name"], keys_int64s=[4, 6], values_strings=["vier", "sechs"]),
        models.node("Add", ["code", "code"], ["twice"]),
        models.classic("LabelEncoder", ["s"], ["code"], keys_strings=["a", "b"], values_int64s=[2, 3]),
    )
    assert run({"s": (TEXT, 1)}, {"y": (TEXT, 1)}, *nodes, s=["b", "a", "?"]) == [["sechsb", "viera", "_Unused?"]]


def test_patterns_are_those_of_re2():
    def whole(pattern, *words):
        node = models.node("RegexFullMatch", ["s"], ["y"], pattern=pattern)
        return run({"s": (TEXT, 1)}, {"y": (BOOL, 1)}, node, s=list(words))[0]

    assert whole(r"\w+@[\w.]+\.(com|de)", "a@b.de", "a@b.dex", "é@b.de") == [True, False, False]
    assert whole("[[:alpha:]&~[-]+", "a&~[-", "a1") == [True, False]
    assert whole(r"\d{2}|\pL", "12", "١٢", "é") == [True, False, True]

    def tokens(*words, least=1, mark=0, **how):
        node = models.node("Tokenizer", ["s"], ["y"], "com.microsoft", pad_value="", mincharnum=least, mark=mark, **how)
        return run({"s": (TEXT, 1)}, {"y": (TEXT, 2)}, node, s=list(words))[0]

    # The longest one counts, and a match that is too short is searched through.
    assert tokens("abcab", tokenexp="a|ab|abc") == [["abc", "ab"]]
    assert tokens("a bcd", least=3, tokenexp="[a-z]+| b") == [["bcd"]]
    assert tokens("a, b;c", "d", separators=["[,;] ?"]) == [["a", "b", "c"], ["d", "", ""]]
    assert tokens("é日", separators=[""], mark=1) == [["\x02", "é", "日", "\x03"]]
    for wrong in (r"(?=a)", r"\Bx", "[a--b]", "("):
        with pytest.raises(ort.Fail, match="pattern"):
            whole(wrong, "a")


def test_numbers_are_written_and_read():
    written = models.node("Cast", ["x"], ["y"], to=TEXT)
    found = run({"x": (FLOAT, 1)}, {"y": (TEXT, 1)}, written, x=np.array([0.1, 1e10, -3, np.nan, np.inf], np.float32))
    assert found == [["0.1", "1e+10", "-3", "NaN", "INF"]]
    read = models.node("Cast", ["s"], ["t"], to=FLOAT), models.node("Add", ["t", "t"], ["y"])
    assert run({"s": (TEXT, 1)}, {"y": (FLOAT, 1)}, *read, s=["1.5", " 4", "0x10", "7up"]) == [[3.0, 8.0, 32.0, 14.0]]
    with pytest.raises(ort.InvalidArgument, match="'up' is no number"):
        run({"s": (TEXT, 1)}, {"y": (FLOAT, 1)}, *read, s=["up"])


def test_what_nothing_computes_is_refused():
    def model(node, element=INT64):
        return models.model(node, models.takes("s", ["n"], TEXT), models.gives("y", ["n"], element))

    with pytest.raises(ort.NotImplemented, match="operator 'Sort' with texts"):
        ort.InferenceSession(model(models.node("Sort", ["s"], ["y"])))
    with pytest.raises(ort.Fail, match="no list 'keys'"):
        ort.InferenceSession(model(models.classic("LabelEncoder", ["s"], ["y"], values_int64s=[2]))).run(None, {"s": np.array(["a"])})
    body = models.node("Identity", ["s"], ["z"]) + models.gives("z", ["n"], TEXT)
    branches = models.node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    with pytest.raises(ort.NotImplemented, match="branch or body"):
        ort.InferenceSession(models.model(branches, models.takes("s", ["n"], TEXT), models.takes("c", [], BOOL), models.gives("y", ["n"], TEXT)))
    # Texts that are given back as they are need no device.
    assert ort.InferenceSession(model(models.node("Identity", ["s"], ["y"]), TEXT)).run(None, {"s": np.array(["é"])})[0].tolist() == ["é"]


def test_damaged_files_are_refused_or_left_as_they_are():
    from halite.onnxruntime import _split

    whole = columns()
    damaged = [whole[:cut] for cut in range(0, len(whole), 3)]
    for place in range(len(whole)):
        other = bytearray(whole)
        other[place] ^= 0x11
        damaged.append(bytes(other))
    for data in damaged:
        try:
            _split.planned(memoryview(data))
        except (ort.NotImplemented, ValueError, TypeError, KeyError, IndexError, StopIteration):
            pass

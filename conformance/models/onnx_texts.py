#!/usr/bin/env python3
"""ONNX models with texts: pipelines of scikit-learn as skl2onnx writes them, and models by hand, beside ONNX Runtime.

    onnx_texts.py make OUT [--only a,b]
    onnx_texts.py draw OUT --seed 5 --count 40
    onnx_texts.py check OUT [--device vulkan] [--door onnxruntime,session]

`make` needs scikit-learn and skl2onnx (1.20), and writes NAME.onnx with three sets of inputs. `draw` makes
pipelines by lot. `check` needs the package `halite` and ONNX
Runtime; it prints for each file whether types, texts, labels, keys and numbers are those of ONNX Runtime. Where that wants a locale that
is missing, the file is run by the rules of a locale that is there.
"""
import argparse
import pathlib
import pickle
import sys
import warnings

import numpy as np

WORDS = "the quick brown fox jumps over lazy dog while rain falls on green hills and old towns sleep under silver moon light today".split()
CITIES = np.array(["Rom", "Köln", "Oslo", "Łódź", "Paris"])
KINDS = np.array(["red", "green", "blue"])
LABELS = np.array(["apple", "birne", "cœur", "drei"])


def sentences(rng, count):
    made = [" ".join(rng.choice(WORDS, rng.integers(3, 12))) for _ in range(count)]
    return [text.capitalize() + rng.choice(["", ".", "!", ", ok?", " 42"]) for text in made]


class Data:
    """Rows of the kinds that tables have, and labels that follow from them."""

    def __init__(self, seed=3, count=120):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(count, 4)).astype(np.float32)
        self.missing = self.x.copy()
        self.missing[rng.random(self.x.shape) < 0.15] = np.nan
        self.city, self.kind = CITIES[rng.integers(0, 4, count)], KINDS[rng.integers(0, 3, count)]
        self.texts = np.array(sentences(rng, count))
        score = self.x[:, 0] + (self.city == "Rom") + np.array(["fox" in text for text in self.texts]) - 0.4
        self.number = (score + 0.1 * rng.normal(size=count)).astype(np.float32)
        self.label = LABELS[np.digitize(score, [-0.5, 0.5, 1.2])]
        self.two = np.where(score > 0.3, "yes", "no")


def tables(data, seed):
    """Inputs for the columns of a table: three sets, with values that were not there before."""
    other = Data(seed, 7)
    city = other.city.copy()
    city[0] = "nowhere"
    for rows in (slice(0, 7), slice(0, 1), slice(2, 5)):
        yield {
            "x": other.x[rows], "missing": other.missing[rows], "city": city[rows].reshape(-1, 1), "kind": other.kind[rows].reshape(-1, 1),
            "text": other.texts[rows].reshape(-1, 1), "words": other.texts[rows],
            "both": np.stack([city[rows], other.kind[rows]], 1),
        }


def pipelines():
    from sklearn import (calibration, compose, decomposition, ensemble, feature_extraction, impute, linear_model, multiclass, naive_bayes,
                         neighbors, neural_network, pipeline, preprocessing, svm, tree)
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    text = feature_extraction.text
    floats, one = lambda n: FloatTensorType([None, n]), StringTensorType([None, 1])  # noqa: E731
    number, table = {"x": floats(4)}, {"missing": floats(4), "city": one, "kind": one}
    line = {"text": one}
    pipe = pipeline.make_pipeline

    def columns(last, *more, categories=None):
        cats = categories or preprocessing.OneHotEncoder(handle_unknown="ignore")
        parts = [("n", pipe(impute.SimpleImputer(), preprocessing.StandardScaler()), [0, 1, 2, 3]), ("c", cats, [4, 5]), *more]
        return pipe(compose.ColumnTransformer(parts), last)

    tree_of = lambda: ensemble.RandomForestClassifier(12, max_depth=5, random_state=0)  # noqa: E731
    tfidf = text.TfidfVectorizer
    return {
        "scaled_logistic": (pipe(preprocessing.StandardScaler(), linear_model.LogisticRegression()), number, "label", {}),
        "columns_forest": (columns(tree_of()), table, "label", {}),
        "columns_boosted_number": (columns(ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0)), table, "number", {}),
        "ordinal_tree": (columns(tree.DecisionTreeClassifier(max_depth=6, random_state=0), categories=preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)), table, "two", {}),
        "tfidf_logistic": (pipe(tfidf(), linear_model.LogisticRegression()), line, "label", {}),
        "counts_bayes": (pipe(text.CountVectorizer(ngram_range=(1, 2)), naive_bayes.MultinomialNB()), line, "label", {}),
        "characters_svc": (pipe(tfidf(analyzer="char", ngram_range=(2, 3)), linear_model.LogisticRegression()), line, "label", {}),
        "pairs_sgd": (pipe(tfidf(ngram_range=(2, 2)), linear_model.SGDClassifier(loss="log_loss", random_state=0)), line, "two", {}),
        "tfidf_svd_neighbours": (pipe(tfidf(), decomposition.TruncatedSVD(6, random_state=0), neighbors.KNeighborsClassifier(3)), line, "label", {}),
        "minmax_svc": (pipe(preprocessing.MinMaxScaler(), svm.SVC(probability=True, random_state=0)), number, "label", {}),
        "robust_boosting": (pipe(preprocessing.RobustScaler(), ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0)), number, "label", {}),
        "normalized_sgd": (pipe(preprocessing.Normalizer(), linear_model.SGDClassifier(loss="log_loss", random_state=0)), number, "label", {}),
        "one_hot_ridge": (pipe(preprocessing.OneHotEncoder(drop="first", handle_unknown="ignore"), linear_model.Ridge()), {"city": one}, "number", {}),
        "most_often": (pipe(preprocessing.OneHotEncoder(min_frequency=20, handle_unknown="ignore"), linear_model.LogisticRegression()), {"both": StringTensorType([None, 2])}, "label", {}),
        "voting": (ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4, random_state=0))], voting="soft", flatten_transform=False), number, "label", {}),
        "stacking": (ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]), number, "label", {}),
        "calibrated": (calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=3), number, "label", {}),
        "perceptron": (pipe(preprocessing.StandardScaler(), neural_network.MLPClassifier([8], max_iter=60, random_state=0)), number, "label", {}),
        "texts_and_columns": (columns(linear_model.LogisticRegression(), ("t", tfidf(), 6)), {**table, "text": one}, "label", {}),
        "bins_bayes": (pipe(preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), naive_bayes.BernoulliNB()), number, "label", {}),
        "one_versus_rest": (multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), number, "label", {}),
        "union_of_vectors": (pipe(pipeline.FeatureUnion([("w", tfidf()), ("c", tfidf(analyzer="char", ngram_range=(1, 2)))]), linear_model.LogisticRegression()), line, "label", {}),
        "stop_words_case": (pipe(tfidf(stop_words=["the", "and", "on"], lowercase=False, sublinear_tf=True), linear_model.LogisticRegression()), line, "label", {}),
        "zipmap_columns": (columns(tree_of()), table, "label", {"zipmap": "columns"}),
        "raw_scores": (columns(linear_model.LogisticRegression()), table, "label", {"zipmap": False, "raw_scores": True}),
        "without_zipmap": (pipe(tfidf(token_pattern="[a-z]+"), ensemble.ExtraTreesClassifier(10, max_depth=4, random_state=0)), line, "label", {"zipmap": False}),
        "hashed_names": (pipe(feature_extraction.FeatureHasher(8, input_type="string", dtype=np.float32), linear_model.LogisticRegression()), {"both": StringTensorType([None, 2])}, "two", {}),
        "labels_as_numbers": (preprocessing.LabelEncoder(), {"words": StringTensorType([None])}, None, {}),
    }


def drawn(rng):
    """A pipeline by lot: what becomes of each column, a scaling of all, an estimator; its inputs, what it learns, options."""
    from sklearn import (compose, decomposition, ensemble, feature_extraction, feature_selection, impute, linear_model, naive_bayes, neighbors,
                         neural_network, pipeline, preprocessing, svm, tree)
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    one = lambda options: options[rng.integers(len(options))]  # noqa: E731
    text, pre = feature_extraction.text, preprocessing
    floats, texts = FloatTensorType([None, 4]), StringTensorType([None, 1])
    numbers = lambda: pipeline.make_pipeline(  # noqa: E731
        impute.SimpleImputer(strategy=str(one(["mean", "median", "most_frequent"]))),
        one([pre.StandardScaler(), pre.MinMaxScaler(), pre.RobustScaler(), pre.MaxAbsScaler(), pre.PowerTransformer(), pre.PolynomialFeatures(2), pre.Binarizer(), pre.KBinsDiscretizer(3, encode="onehot-dense")]),
    )
    categories = lambda: one([pre.OneHotEncoder(handle_unknown="ignore"), pre.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)])  # noqa: E731
    how = {"ngram_range": one([(1, 1), (1, 2), (2, 2)]), "lowercase": bool(rng.integers(2)), "binary": bool(rng.integers(2)), "max_features": one([None, 12]), "stop_words": one([None, ["the", "and"]])}
    if rng.random() < 0.3:
        how = {"analyzer": "char", "ngram_range": one([(1, 2), (2, 3)]), "lowercase": bool(rng.integers(2))}
    words = lambda: one([text.TfidfVectorizer(**how, norm=one(["l1", "l2", None]), use_idf=bool(rng.integers(2))), text.CountVectorizer(**how)])  # noqa: E731
    parts, inputs = [], {}
    for name, kind, made, width in (("missing", floats, numbers, 4), ("city", texts, categories, 1), ("kind", texts, categories, 1), ("text", texts, words, 1)):
        if rng.random() < 0.6:
            first = sum(4 if own == "missing" else 1 for own in inputs)
            inputs[name] = kind
            parts.append((name, made(), first if name == "text" else list(range(first, first + width))))
    if not parts:
        return drawn(rng)
    learns = str(one(["label", "label", "two", "number"]))
    trees = {"random_state": 0, "max_depth": 4}
    if learns == "number":
        last = one([linear_model.Ridge(), linear_model.Lasso(0.01), ensemble.RandomForestRegressor(8, **trees), ensemble.GradientBoostingRegressor(n_estimators=8, random_state=0), svm.SVR(), neighbors.KNeighborsRegressor(3), tree.DecisionTreeRegressor(**trees), linear_model.HuberRegressor()])
    else:
        last = one([linear_model.LogisticRegression(), ensemble.RandomForestClassifier(8, **trees), ensemble.GradientBoostingClassifier(n_estimators=6, random_state=0), svm.SVC(probability=True, random_state=0), neighbors.KNeighborsClassifier(3), tree.DecisionTreeClassifier(**trees), naive_bayes.GaussianNB(), neural_network.MLPClassifier([6], max_iter=40, random_state=0), linear_model.SGDClassifier(loss="modified_huber", random_state=0), ensemble.ExtraTreesClassifier(8, **trees), ensemble.AdaBoostClassifier(n_estimators=5, random_state=0), linear_model.RidgeClassifier()])
    middle = one([None, None, pre.MaxAbsScaler(), decomposition.TruncatedSVD(2, random_state=0), feature_selection.VarianceThreshold()])
    steps = [compose.ColumnTransformer(parts, sparse_threshold=0), middle, last]
    options = {} if learns == "number" or isinstance(last, linear_model.RidgeClassifier) else one([{}, {"zipmap": False}, {"zipmap": "columns"}])
    return pipeline.make_pipeline(*(step for step in steps if step is not None)), inputs, learns, options


def by_hand():
    """Models of texts as people write them: NAME -> (nodes, inputs, outputs, constants, three sets)."""
    from onnx import TensorProto as T
    from onnx import helper as h
    from onnx import numpy_helper as n

    node, ml = h.make_node, "ai.onnx.ml"
    info = h.make_tensor_value_info
    text, f, i, b = T.STRING, T.FLOAT, T.INT64, T.BOOL
    words = lambda *all: np.array(all, object)  # noqa: E731
    sets = lambda **all: [dict(zip(all, one)) for one in zip(*all.values())]  # noqa: E731
    names = n.from_array(words("cat", "dog", "naïve ox", "émeu"), "names")
    three = [words("Ab c", "ÉTÉ straße", "x"), words("the END"), words("İz ǅ", "", "tab\tend ", "the")]
    mail = [words("a.b@c.org", "no", "x@y.de"), words(""), words("q@q.q", "Ä@b.cc")]
    made = {
        "labels_of_scores": ([node("ArgMax", ["x"], ["k"], axis=1, keepdims=0), node("Gather", ["names", "k"], ["y"])], [info("x", f, ["n", 4])], [info("y", text, ["n"])], [names], sets(x=[np.eye(4, dtype=np.float32)[[2, 0, 3]], np.eye(4, dtype=np.float32)[:1], np.ones((2, 4), np.float32)])),
        "best_three": ([node("TopK", ["x", "k"], ["v", "at"]), node("Gather", ["names", "at"], ["y"])], [info("x", f, ["n", 4])], [info("y", text, ["n", 3]), info("v", f, ["n", 3])], [names, n.from_array(np.array([3], np.int64), "k")], sets(x=[np.arange(8, dtype=np.float32).reshape(2, 4), -np.ones((1, 4), np.float32), np.eye(4, dtype=np.float32)])),
        "lower": ([node("StringNormalizer", ["s"], ["y"], case_change_action="LOWER", is_case_sensitive=0, stopwords=["THE", "x"])], [info("s", text, ["n"])], [info("y", text, ["m"])], [], sets(s=three)),
        "upper_kept": ([node("StringNormalizer", ["s"], ["y"], case_change_action="UPPER", is_case_sensitive=1, stopwords=["the"])], [info("s", text, ["n"])], [info("y", text, ["m"])], [], sets(s=three)),
        "joined": ([node("StringConcat", ["a", "b"], ["t"]), node("StringConcat", ["t", "names"], ["y"])], [info("a", text, ["n", 1]), info("b", text, [1])], [info("y", text, ["n", 4])], [names], sets(a=[words("p", "q").reshape(2, 1), words("").reshape(1, 1), words("ü", "v", "w").reshape(3, 1)], b=[words("-"), words("/"), words("")])),
        "split_by_space": ([node("StringSplit", ["s"], ["y", "k"])], [info("s", text, ["n"])], [info("y", text, ["n", "m"]), info("k", i, ["n"])], [], sets(s=[words("a b  c", " d ", ""), words("one"), words("x\ty\nz", "p q")])),
        "split_by_comma": ([node("StringSplit", ["s"], ["y", "k"], delimiter=",", maxsplit=2)], [info("s", text, ["n"])], [info("y", text, ["n", "m"]), info("k", i, ["n"])], [], sets(s=[words("a,b,,c", ",d,", ""), words("one"), words("1,2,3,4,5", "p, q")])),
        "mails": ([node("RegexFullMatch", ["s"], ["y"], pattern=r"[\w.]+@[\w]+\.(com|org|de)"), node("Cast", ["y"], ["z"], to=f)], [info("s", text, ["n"])], [info("y", b, ["n"]), info("z", f, ["n"])], [], sets(s=mail)),
        "different": ([node("Unique", ["s"], ["y", "a", "b", "c"])], [info("s", text, ["n"])], [info("y", text, ["m"]), info("a", i, ["m"]), info("b", i, ["n"]), info("c", i, ["m"])], [], sets(s=[words("b", "a", "b", "ä", "B"), words("x"), words("2", "10", "2")])),
        "different_in_order": ([node("Unique", ["s"], ["y", "a", "b", "c"], sorted=0)], [info("s", text, ["n"])], [info("y", text, ["m"]), info("a", i, ["m"]), info("b", i, ["n"]), info("c", i, ["m"])], [], sets(s=[words("b", "a", "b", "ä", "B"), words("x"), words("2", "10", "2")])),
        "counts_of_pairs": ([node("TfIdfVectorizer", ["s"], ["y"], mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 3, 4], pool_strings=["a", "b", "c", "a", "b", "b", "c"], weights=[1.5, 2.0, 0.5, 3.0, 4.0])], [info("s", text, ["n", "m"])], [info("y", f, ["n", 5])], [], sets(s=[words("a", "b", "c", "c", "a", "b").reshape(2, 3), words("x").reshape(1, 1), words("b", "a", "c", "a", "b", "c").reshape(1, 6)])),
        "counts_of_numbers": ([node("TfIdfVectorizer", ["s"], ["t"], mode="IDF", min_gram_length=2, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_int64s=[5, 6, 5, 6, 7, 8], weights=[1.0, 1.0, 2.0, 3.0]), node("Mul", ["t", "t"], ["y"])], [info("s", i, ["n"])], [info("y", f, [4])], [], sets(s=[np.array([5, 6, 7, 8, 5, 6]), np.array([1, 2]), np.array([7, 8, 7, 8])])),
        "tokens": ([node("Tokenizer", ["s"], ["y"], domain="com.microsoft", mark=1, pad_value="#", mincharnum=2, tokenexp=r"[a-z]+|[0-9]+x?")], [info("s", text, ["n"])], [info("y", text, ["n", "m"])], [], sets(s=[words("ab c 12x", "hello"), words("?"), words("aa0 bb1", "12", "q7x")])),
        "parts": ([node("Tokenizer", ["s"], ["y"], domain="com.microsoft", mark=0, pad_value="", mincharnum=1, separators=["[;,] ?", " "])], [info("s", text, ["n"])], [info("y", text, ["n", "m"])], [], sets(s=[words("a, b;c d", "e"), words(";"), words("  two  words ", ",x")])),
        "characters": ([node("Tokenizer", ["s"], ["y"], domain="com.microsoft", mark=1, pad_value="_", mincharnum=1, tokenexp=".")], [info("s", text, ["n", "m"])], [info("y", text, ["n", "m", "k"])], [], sets(s=[words("ab", "é").reshape(1, 2), words("").reshape(1, 1), words("x", "yz", "").reshape(3, 1)])),
        "categories": ([node("CategoryMapper", ["s"], ["t"], domain=ml, cats_strings=["a", "b"], cats_int64s=[4, -2]), node("Add", ["t", "t"], ["u"]), node("CategoryMapper", ["u"], ["y"], domain=ml, cats_strings=["eight", "less"], cats_int64s=[8, -4])], [info("s", text, ["n"])], [info("y", text, ["n"]), info("u", i, ["n"])], [], sets(s=[words("a", "b", "?"), words("b"), words("", "a")])),
        "renamed": ([node("LabelEncoder", ["s"], ["t"], domain=ml, keys_strings=["a", "b", ""], values_strings=["ä", "b2", "none"], default_string="else"), node("LabelEncoder", ["t"], ["y"], domain=ml, keys_strings=["ä", "else"], values_floats=[0.5, 7.0], default_float=-1.0)], [info("s", text, ["n"])], [info("t", text, ["n"]), info("y", f, ["n"])], [], sets(s=[words("a", "b", "?"), words(""), words("b", "a")])),
        "written_numbers": ([node("Mul", ["x", "x"], ["t"]), node("Cast", ["t"], ["y"], to=text), node("Cast", ["k"], ["z"], to=text)], [info("x", f, ["n"]), info("k", i, ["n"])], [info("y", text, ["n"]), info("z", text, ["n"])], [], sets(x=[np.array([0.1, 1e10, -3], np.float32), np.array([np.nan], np.float32), np.array([np.inf, 12345.678], np.float32)], k=[np.array([1, -2, 3]), np.array([0]), np.array([1 << 40, 7])])),
        "read_numbers": ([node("Cast", ["s"], ["t"], to=f), node("Add", ["t", "t"], ["y"]), node("Cast", ["k"], ["z"], to=i)], [info("s", text, ["n"]), info("k", text, ["n"])], [info("y", f, ["n"]), info("z", i, ["n"])], [], sets(s=[words("1.5", "-2e3", "7"), words("NaN"), words("inf", " 4")], k=[words("1", "-20", "3"), words("0"), words("12345678901", "7")])),
        "same_or_other": ([node("Equal", ["s", "t"], ["e"]), node("Where", ["e", "s", "names"], ["y"]), node("Cast", ["e"], ["z"], to=f)], [info("s", text, [4]), info("t", text, [4])], [info("y", text, [4]), info("z", f, [4])], [names], sets(s=[words("a", "b", "c", "d"), words(*"xxxx"), words(*"aabb")], t=[words("a", "q", "c", ""), words(*"yyyy"), words(*"abab")])),
        "lists_of_texts": ([node("SplitToSequence", ["s"], ["q"], axis=0, keepdims=1), node("SequenceAt", ["q", "one"], ["y"]), node("SequenceLength", ["q"], ["k"])], [info("s", text, ["n"])], [info("y", text, ["m"]), info("k", i, [])], [n.from_array(np.array(1, np.int64), "one")], sets(s=[words("a", "b", "c"), words("d", "e"), words("é", "f")])),
        "columns_of_a_dictionary": ([node("DictVectorizer", ["d"], ["t"], domain=ml, string_vocabulary=["a", "c", "b"]), node("Mul", ["t", "t"], ["y"])], [h.make_value_info("d", h.make_map_type_proto(text, h.make_tensor_type_proto(f, [])))], [info("y", f, [1, 3])], [], sets(d=[{"a": 1.5, "b": 2.0}, {"z": 4.0, "c": 0.5}, {"b": -1.0}])),
        "shape_of_texts": ([node("Shape", ["s"], ["k"]), node("ConstantOfShape", ["k"], ["z"]), node("Add", ["z", "x"], ["y"])], [info("s", text, ["n", "m"]), info("x", f, [1])], [info("y", f, ["n", "m"]), info("k", i, [2])], [], sets(s=[np.full((2, 3), "a", object), np.full((1, 1), "", object), np.full((3, 2), "é", object)], x=[np.ones(1, np.float32)] * 3)),
    }
    return made, names


def make(arguments):
    import onnx
    from onnx import helper as h
    from skl2onnx import convert_sklearn

    arguments.out.mkdir(parents=True, exist_ok=True)
    data = Data()

    def keep(name, model, sets):
        onnx.save(model, arguments.out / f"{name}.onnx")
        (arguments.out / f"{name}.pkl").write_bytes(pickle.dumps(sets))
        print(name, sorted({node.op_type for node in model.graph.node}), flush=True)

    if arguments.what == "draw":
        rng = np.random.default_rng(arguments.seed)
        todo = {f"drawn{arguments.seed}_{place}": drawn(rng) for place in range(arguments.count)}
    else:
        todo = pipelines()
    for name, (estimator, inputs, wanted, options) in todo.items():
        if arguments.only and name not in arguments.only:
            continue
        parts = {"x": data.x, "missing": data.missing, "city": data.city.reshape(-1, 1), "kind": data.kind.reshape(-1, 1), "text": data.texts.reshape(-1, 1), "words": data.texts, "both": np.stack([data.city, data.kind], 1)}
        try:
            columns = [parts[own] for own in inputs]
            if len(columns) > 1:
                train = np.concatenate([column.astype(object) for column in columns], 1)
            elif list(inputs) == ["text"] and arguments.what == "make":
                train = data.texts
            else:
                train = columns[0]
            estimator.fit(train, getattr(data, wanted)) if wanted else estimator.fit(train)
            model = convert_sklearn(estimator, name, list(inputs.items()), target_opset={"": 18, "ai.onnx.ml": 3, "com.microsoft": 1}, options={id(estimator): options} if options else None)
            keep(name, model, [{own: one[own] for own in inputs} for one in tables(data, 11)])
        except Exception as error:  # noqa: BLE001: exporters fail in many ways.
            print(f"{name}: not exported: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}", flush=True)
    if arguments.what == "draw":
        return
    made, _ = by_hand()
    opsets = [h.make_opsetid("", 20), h.make_opsetid("ai.onnx.ml", 3), h.make_opsetid("com.microsoft", 1)]
    for name, (nodes, inputs, outputs, constants, sets) in made.items():
        if not arguments.only or name in arguments.only:
            keep(name, h.make_model(h.make_graph(nodes, name, inputs, outputs, constants), opset_imports=opsets, ir_version=9), sets)


def same(found, wanted, bound=1e-3):
    """How two results differ; nothing where they do not."""
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{type(found).__name__} for a list of {len(wanted)}"
        return next((text for text in (same(a, b, bound) for a, b in zip(found, wanted)) if text), None)
    if isinstance(wanted, dict):
        if not isinstance(found, dict) or list(found) != list(wanted):
            return f"keys {list(found)[:4] if isinstance(found, dict) else found} for {list(wanted)[:4]}"
        return same(np.array(list(found.values())), np.array(list(wanted.values())), bound)
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind == "f":
        apart = np.abs(found.astype(np.float64) - wanted)
        right = (apart <= bound * np.maximum(1, np.abs(wanted))) | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        return None if right.all() else f"numbers are {np.nanmax(apart)} apart"
    return None if (found == wanted).all() else f"{found.ravel()[:6].tolist()} for {wanted.ravel()[:6].tolist()}"


def check(arguments):
    import onnxruntime as reference

    sys.modules.pop("onnxruntime")
    import halite
    import halite.onnxruntime as ort

    warnings.simplefilter("ignore")
    ort.uninstall()
    ort.set_default_device(arguments.device)
    right = {door: 0 for door in arguments.door}
    files = sorted(path for path in arguments.out.glob("*.onnx") if not arguments.only or path.stem in arguments.only)
    for path in files:
        sets = pickle.loads(path.with_suffix(".pkl").read_bytes())
        try:
            quiet = reference.SessionOptions()
            quiet.log_severity_level = 4
            other = reference.InferenceSession(str(path), quiet)
            wanted = [other.run(None, one) for one in sets]
        except Exception as error:  # noqa: BLE001
            print(f"{path.stem}: ONNX Runtime: {str(error).splitlines()[0][:160]}", flush=True)
            continue
        for door in arguments.door:
            try:
                if door == "onnxruntime":
                    session = ort.InferenceSession(str(path))
                    found = [session.run(None, one) for one in sets]
                    ports = lambda s: [(a.name, a.type, len(a.shape)) for a in s.get_inputs() + s.get_outputs()]  # noqa: E731
                    problem = None if ports(session) == ports(other) else f"ports {ports(session)} for {ports(other)}"
                else:
                    session = halite.Session(str(path), device=arguments.device, cache=False)
                    found, problem = [list(session.run(one).values()) for one in sets], None
                problem = problem or next((text for text in (same(a, b) for a, b in zip(found, wanted)) if text), None)
            except Exception as error:  # noqa: BLE001
                problem = f"{type(error).__name__}: {str(error)[:220]}"
            right[door] += problem is None
            print(f"{path.stem} by {door}: {problem or 'the same'}", flush=True)
    for door, count in right.items():
        print(f"{door}: {count} of {len(files)} the same", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "draw", "check"])
    parser.add_argument("out", type=pathlib.Path)
    names = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--only", type=names)
    parser.add_argument("--door", type=names, default=["onnxruntime"])
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--count", type=int, default=40)
    arguments = parser.parse_args()
    {"make": make, "draw": make, "check": check}[arguments.what](arguments)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Forests, boosted trees, linear models, support vectors and what prepares features, by the converters of scikit-learn, LightGBM, XGBoost and CatBoost, for
`onnx_sizes.py check`.

    onnx_writers_classic.py FOLDER [FAMILY...] [--names PART...]
"""
import pathlib
import tempfile

import numpy as np
from onnx_writers import each, floats, main

FEATURES = 7
LINES = floats(300, FEATURES)
TWO = (LINES[:, 0] + LINES[:, 1] * LINES[:, 2] > 0).astype(int)
FOUR = np.digitize(LINES[:, 0] + 0.5 * LINES[:, 3], [-0.7, 0.2, 0.9])
NUMBERS = (LINES[:, 0] * 2 + np.sin(LINES[:, 1])).astype(np.float32)
CALLS = [[floats(lines, FEATURES)] for lines in (5, 1, 33)]


def named(name, convert):
    """A maker of the model that `convert` gives."""

    def make():
        import onnx

        model = convert()
        return lambda path: onnx.save(model, path), CALLS

    make.__name__ = name
    return make


def sklearn(folder, names):
    from skl2onnx import to_onnx
    from sklearn import base, cluster, decomposition, discriminant_analysis, ensemble, linear_model, mixture, naive_bayes, neighbors, neural_network, preprocessing, svm, tree

    def convert(model, target):
        model.fit(LINES, target)
        options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") or isinstance(model, (svm.SVC, svm.NuSVC)) else None
        return to_onnx(model, LINES[:1], options=options, target_opset=18)

    seed = {"random_state": 0}
    models = [(ensemble.RandomForestClassifier(12, max_depth=5, **seed), FOUR), (ensemble.RandomForestRegressor(12, max_depth=6, **seed), NUMBERS), (ensemble.ExtraTreesClassifier(9, **seed), TWO)]
    models += [(ensemble.GradientBoostingClassifier(n_estimators=12, **seed), FOUR), (ensemble.GradientBoostingRegressor(n_estimators=20, **seed), NUMBERS), (ensemble.AdaBoostClassifier(n_estimators=8, **seed), FOUR)]
    models += [(tree.DecisionTreeClassifier(max_depth=6), FOUR), (tree.DecisionTreeRegressor(max_depth=6), NUMBERS), (svm.SVR(), NUMBERS), (svm.OneClassSVM(), None), (svm.LinearSVC(), FOUR)]
    models += [(svm.NuSVC(nu=0.1, kernel="rbf", probability=True, **seed), FOUR), (svm.SVC(kernel="linear"), TWO)]
    models += [(linear_model.LogisticRegression(), FOUR), (linear_model.RidgeClassifier(), FOUR), (linear_model.SGDClassifier(loss="modified_huber"), FOUR), (linear_model.LassoLars(), NUMBERS)]
    models += [(naive_bayes.GaussianNB(), FOUR), (naive_bayes.BernoulliNB(), FOUR), (neighbors.KNeighborsClassifier(3), FOUR), (neural_network.MLPClassifier((8,), max_iter=20, **seed), FOUR)]
    models += [(discriminant_analysis.LinearDiscriminantAnalysis(), FOUR), (mixture.GaussianMixture(3, **seed), None), (cluster.KMeans(4, **seed), None), (decomposition.KernelPCA(3, kernel="rbf"), None)]
    models += [(preprocessing.Normalizer(norm), None) for norm in ("l1", "l2", "max")]
    models += [(preprocessing.RobustScaler(), None), (preprocessing.Binarizer(), None), (preprocessing.KBinsDiscretizer(5, encode="onehot-dense"), None), (preprocessing.PowerTransformer(), None)]
    each(folder, "sklearn", [named(f"{type(model).__name__}{getattr(model, 'norm', '')}", lambda model=model, target=target: convert(model, target)) for model, target in models], names)


def boosted(convert, models):
    from onnxmltools.convert.common.data_types import FloatTensorType

    types = [("x", FloatTensorType([None, FEATURES]))]
    return [named(name, lambda model=model, target=target, more=more: convert(model.fit(LINES, target), initial_types=types, target_opset=15, **more)) for name, model, target, more in models]


def lightgbm(folder, names):
    import lightgbm as gbm
    import onnxmltools

    few = {"n_estimators": 15, "verbose": -1}
    models = [("classes", gbm.LGBMClassifier(**few), FOUR, {"zipmap": False}), ("two", gbm.LGBMClassifier(**few), TWO, {"zipmap": False}), ("numbers", gbm.LGBMRegressor(**few), NUMBERS, {})]
    models += [("parts", gbm.LGBMRegressor(**few), NUMBERS, {"split": 5}), ("poisson", gbm.LGBMRegressor(objective="poisson", **few), np.exp(NUMBERS), {})]
    each(folder, "lightgbm", boosted(onnxmltools.convert_lightgbm, models), names)


def xgboost(folder, names):
    import onnxmltools
    import xgboost as xgb

    few = {"n_estimators": 12, "max_depth": 4}
    models = [("classes", xgb.XGBClassifier(**few), FOUR, {}), ("two", xgb.XGBClassifier(**few), TWO, {}), ("numbers", xgb.XGBRegressor(**few), NUMBERS, {}), ("forest", xgb.XGBRFClassifier(**few), TWO, {})]
    each(folder, "xgboost", boosted(onnxmltools.convert_xgboost, models), names)


def catboost(folder, names):
    import catboost as cat
    import onnx

    def convert():
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "model.onnx"
            cat.CatBoostRegressor(iterations=20, depth=5, verbose=0, allow_writing_files=False).fit(LINES, NUMBERS).save_model(str(path), format="onnx")
            return onnx.load(path)

    each(folder, "catboost", [named("numbers", convert)], names)


FAMILIES = {"sklearn": sklearn, "lightgbm": lightgbm, "xgboost": xgboost, "catboost": catboost}


if __name__ == "__main__":
    main(__doc__, FAMILIES)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XGBoost trains and predicts on the device, and the same on the processor.

    boosting.py SUBJECT

It compares both, and fails by an exception.
"""

import sys

import numpy
import xgboost

ROWS, COLUMNS, ROUNDS = 300, 6, 4


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def data(seed=1):
    """Features and a target; the same each time. A feature has fewer values than there are
    bins: the processor and the device would divide more values into other bins."""
    random = numpy.random.default_rng(seed)
    x = (random.normal(size=(ROWS, COLUMNS)) * 3).round().clip(-9, 9).astype("float32") / 3
    y = 2 * x[:, 0] - x[:, 1] + (x[:, 2] > 0) + random.normal(size=ROWS) / 10
    return x, y.astype("float32")


def train(matrix, device, **parameters):
    """The model, and its error after each round."""
    found = {}
    parameters = {"tree_method": "hist", "max_depth": 4, "max_bin": 32, "device": device,
                  **parameters}
    model = xgboost.train(parameters, matrix, num_boost_round=ROUNDS, evals=[(matrix, "train")],
                          evals_result=found, verbose_eval=False)
    (errors,) = found["train"].values()
    return model, errors


def compare(matrix, tolerance=1e-4, improves=True, **parameters):
    """Returns the two models, whose errors and predictions are the same."""
    on_device, errors = train(matrix, "cuda", **parameters)
    on_host, expected = train(matrix, "cpu", **parameters)
    check(numpy.allclose(errors, expected, atol=tolerance), f"{errors}, not {expected}")
    check(not improves or errors[-1] < errors[0], f"no better: {errors}")
    far = abs(on_device.predict(matrix) - on_host.predict(matrix)).max()
    check(far < 100 * tolerance, f"a prediction is {far} away")
    return on_device, on_host


def regression():
    compare(xgboost.QuantileDMatrix(*data(), max_bin=32))


# The device adds gradients in fixed point, which decides between splits that are equally good.
FIXED_POINT = 2e-3


def binary():
    x, y = data()
    compare(xgboost.DMatrix(x, y > 0), FIXED_POINT, objective="binary:logistic")


def classes():
    x, y = data()
    compare(xgboost.DMatrix(x, numpy.digitize(y, (-1, 1))), FIXED_POINT,
            objective="multi:softprob", num_class=3)


def ranking():
    """Ranks are as good or better with each round."""
    x, y = data()
    matrix = xgboost.DMatrix(x, numpy.digitize(y, (-1, 1)), qid=numpy.arange(ROWS) // 30)
    for device in ("cuda", "cpu"):
        _, gains = train(matrix, device, objective="rank:ndcg", eval_metric="ndcg")
        check(gains[-1] >= gains[0] > 0.5, f"{device}: {gains}")


def missing():
    x, y = data()
    x[::3, 1] = numpy.nan
    compare(xgboost.DMatrix(x, y))


def categories():
    x, y = data()
    x[:, 3] = numpy.arange(ROWS) % 7
    kinds = ["q"] * COLUMNS
    kinds[3] = "c"
    matrix = xgboost.DMatrix(x, y + x[:, 3] % 3, feature_types=kinds, enable_categorical=True)
    compare(matrix)


def weights():
    x, y = data()
    compare(xgboost.DMatrix(x, y, weight=numpy.arange(ROWS) % 5 + 1))


def quantiles():
    x, y = data()
    compare(xgboost.DMatrix(x, y), objective="reg:quantileerror", quantile_alpha=[0.25, 0.75])


def sampling():
    """Rows are chosen by random numbers of the device: only the error is compared."""
    matrix = xgboost.DMatrix(*data())
    _, errors = train(matrix, "cuda", subsample=0.5, sampling_method="gradient_based")
    check(errors[-1] < errors[0], f"no better: {errors}")


def vectors():
    """Trees whose leaves are vectors."""
    x, y = data()
    compare(xgboost.DMatrix(x, numpy.stack([y, -y], 1)), multi_strategy="multi_output_tree")


def deep():
    compare(xgboost.DMatrix(*data()), max_depth=8, grow_policy="lossguide", max_leaves=40)


def contributions():
    """Of each feature to each prediction: their sum is the prediction."""
    matrix = xgboost.DMatrix(*data())
    model, _ = compare(matrix)
    margins = model.predict(matrix, output_margin=True)
    for device in ("cuda", "cpu"):
        model.set_param({"device": device})
        parts = model.predict(matrix, pred_contribs=True)
        check(numpy.allclose(parts.sum(1), margins, atol=1e-3), f"{device}: other sums")
    model.set_param({"device": "cuda"})
    pairs = model.predict(matrix, pred_interactions=True)
    check(numpy.allclose(pairs.sum((1, 2)), margins, atol=1e-3), "interactions: other sums")


def linear():
    """A linear model by coordinate descent."""
    matrix, found = xgboost.DMatrix(*data()), []
    for device in ("cuda", "cpu"):
        model, errors = train(matrix, device, booster="gblinear", updater="coord_descent",
                              feature_selector="cyclic", verbosity=0)
        check(errors[-1] < errors[0], f"{device}: no better: {errors}")
        found.append(model.predict(matrix))
    check(numpy.allclose(*found, atol=1e-3), "other predictions")


SUBJECTS = {function.__name__: function for function in (
    regression, binary, classes, ranking, missing, categories, weights, quantiles, sampling,
    vectors, deep, contributions, linear,
)}


def main():
    (subject,) = sys.argv[1:]
    check(xgboost.build_info()["USE_CUDA"], "built without CUDA")
    try:
        SUBJECTS[subject]()
    except Failure as failure:
        sys.exit(f"{subject}: {failure}")
    print(f"{subject}: right")


if __name__ == "__main__":
    main()

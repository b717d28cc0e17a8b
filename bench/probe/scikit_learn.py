#!/usr/bin/env python3
"""`kintsugi probe` beside scikit-learn's estimators, on the same rows to train and to test on, with FORGE's data.

    bench/probe/scikit_learn.py build/app/kintsugi FORGE_FOLDER [--model FOLDER]

Regression of Fe-Pt energies in 5 folds, without and with the reference embeddings (BayesianRidge), and classification of
alloy phases, 80/10/10 (LogisticRegression on standardized features): by the shares of the elements, and with --model by
its embeddings of the formulas. Predictions must agree row by row. Needs scikit-learn (PyPI).
"""
import argparse, csv, pathlib, re, subprocess, sys, tempfile, time

import numpy as np
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PUBLISHED = {"without": 0.2207, "with": 0.2049}


def probe(command, arguments, folder):
    """The printed lines, and (row, label, prediction) of each tested row."""
    begun = time.time()
    out = subprocess.run([command, "probe", *arguments, "--predictions", folder / "p.csv"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    with open(folder / "p.csv") as f:
        rows = [(int(r["row"]) - 1, r["label"], r["predicted"]) for r in csv.DictReader(f)]
    return dict(re.findall(r"^(\w+) +(.*)$", out, re.M)), rows, time.time() - begun


def regression(o, folder):
    table = np.genfromtxt(o.forge / "FePt_lsms.csv", delimiter=",", skip_header=1)
    embeddings = {row[0]: row[1:] for row in np.genfromtxt(o.forge / "FePt_emb_matscibert.csv", delimiter=",", skip_header=1)}
    x, y = table[:, :-1], table[:, -1]
    good = True
    for name, features, more in [("without", x, []),
                                 ("with", np.hstack([x, [embeddings[c] for c in x[:, 0]]]),
                                  ["--join", o.forge / "FePt_emb_matscibert.csv", "--on", "conc"])]:
        lines, rows, seconds = probe(o.command, [o.forge / "FePt_lsms.csv", "--target", "enthalpy", "--task", "regress",
                                                 "--folds", "5", *more], folder)
        # The folds are consecutive groups of the tested rows; each is ascending.
        cuts = [i for i in range(1, len(rows)) if rows[i][0] < rows[i - 1][0]]
        worst, errors = 0, []
        for test in np.split(np.array([r[0] for r in rows]), cuts):
            train = np.setdiff1d(np.arange(len(y)), test)
            predicted = BayesianRidge().fit(features[train], y[train]).predict(features[test])
            ours = {r[0]: float(r[2]) for r in rows}
            worst = max(worst, max(abs(predicted[i] - ours[t]) for i, t in enumerate(test)))
            errors.append(np.mean((predicted - y[test]) ** 2))
        own = [np.mean((BayesianRidge().fit(features[a], y[a]).predict(features[b]) - y[b]) ** 2)
               for a, b in KFold(5, shuffle=True, random_state=1).split(features)]
        print(f"Fe-Pt {name} embeddings: {lines['test']}, {seconds:.2f} s; scikit-learn on the same folds mse "
              f"{np.mean(errors):.4f}, predictions differ by {worst:.1e}; on its own folds {np.mean(own):.4f} ± "
              f"{np.std(own):.4f}; published {PUBLISHED[name]:.4f}")
        good &= worst < 1e-6 and abs(np.mean(errors) - PUBLISHED[name]) < np.std(errors)
    return good


def composition(formulas):
    parts = [dict((e, float(n or 1)) for e, n in re.findall(r"([A-Z][a-z]?)([\d.]*)", f)) for f in formulas]
    elements = sorted({e for p in parts for e in p})
    return np.array([[p.get(e, 0) for e in elements] for p in parts])


def classification(o, folder):
    with open(o.forge / "alloys_phases.csv") as f:
        rows = list(csv.DictReader(f))
    labels = np.array([r["category"] for r in rows])
    sources = {"shares of the elements": composition([r["text"] for r in rows])}
    if o.model:
        (folder / "texts.txt").write_text("".join(r["text"] + "\n" for r in rows))
        subprocess.run([o.command, "embed", o.model, "--texts", folder / "texts.txt", "--output", folder / "e.npy"],
                       check=True, stdout=subprocess.DEVNULL)
        sources["embeddings"] = np.load(folder / "e.npy").astype(np.float64)
    good = True
    for name, x in sources.items():
        np.save(folder / "x.npy", x)
        lines, tested, seconds = probe(o.command, [folder / "x.npy", "--labels", o.forge / "alloys_phases.csv", "--target",
                                                   "category", "--task", "classify", "--split", "80/0/20", "--strength", "1"],
                                       folder)
        test = np.array([r[0] for r in tested])
        train = np.setdiff1d(np.arange(len(labels)), test)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=1, tol=1e-8, max_iter=100000)).fit(x[train], labels[train])
        same = np.mean(model.predict(x[test]) == np.array([r[2] for r in tested]))
        print(f"alloy phases by {name}, 80/20, C = 1: {lines['test']}, {seconds:.2f} s; scikit-learn accuracy "
              f"{model.score(x[test], labels[test]):.4f}, {100 * same:.1f}% of the predictions are the same")
        chosen, _, _ = probe(o.command, [folder / "x.npy", "--labels", o.forge / "alloys_phases.csv", "--target", "category",
                                         "--task", "classify", "--split", "80/10/10"], folder)
        print(f"alloy phases by {name}, 80/10/10: strength {chosen['strength']}, validate {chosen['validate']}, "
              f"test {chosen['test']}, most frequent class {chosen['constant']}")
        good &= same > 0.99
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("forge", type=pathlib.Path)
    parser.add_argument("--model", help="a run, checkpoint or Hugging Face folder, for embeddings")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        good = regression(o, folder) & classification(o, folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

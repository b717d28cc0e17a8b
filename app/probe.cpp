#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "app/outputs.h"
#include "app/standard_streams.h"
#include "app/verb.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/probe/bayesian_ridge.h"
#include "kintsugi/probe/logistic.h"
#include "kintsugi/probe/pca.h"
#include "kintsugi/probe/split.h"
#include "kintsugi/probe/table.h"

namespace kintsugi::app {
namespace {

struct ProbeOptions {
  std::string features, labels, target, task, join, on, predictions, split;
  std::vector<std::string> columns;
  int64_t folds = 0, pca = 0;
  uint64_t seed = 1;
  double strength = 0;
};

// The data of a probe: the features that are used as they are, those that principal components may replace, and the
// targets.
struct ProbeData {
  probe::Matrix own, reduced;
  std::vector<double> numbers;  // to regress
  probe::Classes classes;       // to classify
  int64_t unmatched = 0;        // rows left out, for which --join has none
  size_t rows() const { return own.rows; }
};

bool is_npy(const std::string& path) {
  return path.ends_with(".npy");
}

size_t target_of(const ProbeOptions& o, const probe::CsvTable& table) {
  return o.target.empty() ? table.names.size() - 1 : table.column(o.target);
}

std::vector<size_t> feature_columns(const ProbeOptions& o, const probe::CsvTable& table, size_t left_out) {
  std::vector<size_t> columns;
  for (const std::string& name : o.columns) columns.push_back(table.column(name));
  if (!o.columns.empty()) return columns;
  for (size_t c = 0; c < table.names.size(); ++c)
    if (c != left_out) columns.push_back(c);
  return columns;
}

// Of the rows that --join has.
void join_features(const ProbeOptions& o, const probe::CsvTable& table, ProbeData& data, probe::CsvTable& targets) {
  const probe::CsvTable other = probe::read_csv(o.join);
  const size_t key = table.column(o.on), other_key = other.column(o.on);
  const std::vector<int64_t> match = probe::matching_rows(table, key, other, other_key);
  std::vector<size_t> columns, kept, found;
  for (size_t c = 0; c < other.names.size(); ++c)
    if (c != other_key) columns.push_back(c);
  const probe::Matrix added = other.numbers(columns);
  for (size_t r = 0; r < match.size(); ++r) {
    if (match[r] < 0) {
      ++data.unmatched;
      continue;
    }
    kept.push_back(r);
    found.push_back(static_cast<size_t>(match[r]));
  }
  if (kept.empty())
    throw base::UserError("probe", "no value of column {} is in both \"{}\" and \"{}\"", base::in_quotes(o.on, 60),
                          o.features, o.join);
  data.own = probe::rows_of(data.own, kept);
  data.reduced = probe::rows_of(added, found);
  if (kept.size() == targets.rows.size()) return;
  probe::CsvTable some = {.path = targets.path, .names = targets.names};
  for (const size_t r : kept) some.rows.push_back(targets.rows[r]), some.lines.push_back(targets.lines[r]);
  targets = std::move(some);
}

ProbeData read_probe_data(const ProbeOptions& o) {
  ProbeData data;
  probe::CsvTable table, targets;
  if (is_npy(o.features)) {
    if (o.labels.empty()) throw base::UserError("probe", "name the file of the labels with --labels");
    if (!o.join.empty() || !o.columns.empty())
      throw base::UserError("probe", "\"{}\" has no names of columns, which --columns and --join need", o.features);
    data.own = probe::read_npy(o.features);
  } else {
    table = probe::read_csv(o.features);
    const size_t none = table.names.size();
    data.own = table.numbers(feature_columns(o, table, o.labels.empty() ? target_of(o, table) : none));
    if (data.own.columns == 0) throw base::UserError("probe", "\"{}\" has no columns besides the target", o.features);
  }
  targets = o.labels.empty() ? table : probe::read_csv(o.labels);
  if (targets.rows.size() != data.own.rows)
    throw base::UserError("probe", "\"{}\" has {}, and \"{}\" has {}", o.features,
                          base::counted(static_cast<int64_t>(data.own.rows), "row"), targets.path.string(),
                          base::group_digits(std::ssize(targets.rows)));
  if (!o.join.empty()) join_features(o, table, data, targets);
  const size_t target = target_of(o, targets);
  if (o.task == "classify") {
    data.classes = probe::classes_of(targets, target);
    if (data.classes.names.size() < 2)
      throw base::UserError("probe", "\"{}\": all rows have the label {}", targets.path.string(),
                            base::in_quotes(data.classes.names[0], 60));
  } else {
    const probe::Matrix numbers = targets.numbers({target});
    data.numbers = numbers.values;
  }
  return data;
}

// Features of rows to train on and of others: principal components, if any, are those of the training rows.
struct FittedFeatures {
  probe::Matrix train, validate, test;
  double kept_variance = 1;  // share of the variance that the components keep
};

FittedFeatures fit_features(const ProbeOptions& o, const ProbeData& data, const probe::Division& d, bool standardize) {
  FittedFeatures fitted;
  std::array<probe::Matrix, 3> own, reduced;
  const std::array<const std::vector<size_t>*, 3> rows = {&d.train, &d.validate, &d.test};
  const bool joins = data.reduced.rows > 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    own[i] = probe::rows_of(data.own, *rows[i]);
    if (joins) reduced[i] = probe::rows_of(data.reduced, *rows[i]);
  }
  if (o.pca > 0) {
    std::array<probe::Matrix, 3>& from = joins ? reduced : own;
    const probe::Pca pca = probe::fit_pca(from[0], static_cast<size_t>(o.pca));
    fitted.kept_variance =
        std::accumulate(pca.variances.begin(), pca.variances.end(), 0.0) / std::max(pca.all_variance, 1e-300);
    for (probe::Matrix& x : from) x = pca.apply(x);
  }
  if (joins)
    for (size_t i = 0; i < rows.size(); ++i) own[i] = probe::joined(own[i], reduced[i]);
  if (standardize) {
    const probe::Standardizer standardizer = probe::fit_standardizer(own[0]);
    for (probe::Matrix& x : own) x = standardizer.apply(x);
  }
  fitted.train = std::move(own[0]), fitted.validate = std::move(own[1]), fitted.test = std::move(own[2]);
  return fitted;
}

template <typename T>
std::vector<T> chosen(const std::vector<T>& all, const std::vector<size_t>& rows) {
  std::vector<T> some;
  for (const size_t r : rows) some.push_back(all[r]);
  return some;
}

// The mean and the standard deviation over folds.
std::string spread_text(const std::vector<double>& values, int decimals) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double square = 0;
  for (const double v : values) square += (v - mean) * (v - mean);
  const std::string text = base::format_fixed(mean, decimals);
  return values.size() < 2 ? text : text + " \u00b1 " + base::format_fixed(std::sqrt(square / count), decimals);
}

// What a probe found: metrics with a value per division, and a line per tested row.
struct Probed {
  std::vector<double> train, validate, test;
  std::vector<double> constant;  // of the test rows, by the mean or the most frequent class of the training rows
  std::vector<double> strengths;
  double kept_variance = 1;
  std::string predictions = {};
};

void add_prediction(Probed& found, size_t row, std::string_view label, std::string_view predicted) {
  found.predictions += fmt::format("{},{},{}\n", row + 1, label, predicted);
}

void regress(const ProbeOptions& o, const ProbeData& data, const probe::Division& d, Probed& found) {
  const FittedFeatures x = fit_features(o, data, d, false);
  const std::vector<double> y = chosen(data.numbers, d.train), test = chosen(data.numbers, d.test);
  const probe::BayesianRidge model = probe::fit_bayesian_ridge(x.train, y);
  const std::vector<double> predicted = model.predict(x.test);
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  found.train.push_back(probe::mean_squared_error(model.predict(x.train), y));
  if (!d.validate.empty())
    found.validate.push_back(probe::mean_squared_error(model.predict(x.validate), chosen(data.numbers, d.validate)));
  found.test.push_back(probe::mean_squared_error(predicted, test));
  found.constant.push_back(probe::mean_squared_error(std::vector<double>(test.size(), mean), test));
  found.kept_variance = x.kept_variance;
  for (size_t i = 0; i < d.test.size(); ++i)
    add_prediction(found, d.test[i], fmt::format("{}", test[i]), fmt::format("{}", predicted[i]));
}

// Without --strength, the one of several with the best accuracy on the validation rows.
void classify(const ProbeOptions& o, const ProbeData& data, const probe::Division& d, Probed& found) {
  const FittedFeatures x = fit_features(o, data, d, true);
  const size_t classes = data.classes.names.size();
  const std::vector<size_t> labels = chosen(data.classes.labels, d.train),
                            validate = chosen(data.classes.labels, d.validate),
                            test = chosen(data.classes.labels, d.test);
  std::vector<double> strengths = {o.strength > 0 ? o.strength : 1.0};
  if (o.strength == 0 && !d.validate.empty()) strengths = {0.001, 0.01, 0.1, 1, 10, 100};
  probe::LogisticModel best;
  double best_accuracy = -1, strength = 0;
  for (const double c : strengths) {
    probe::LogisticModel model = probe::fit_logistic(x.train, labels, classes, {.strength = c});
    const double reached = validate.empty() ? 0 : probe::accuracy(model.predict(x.validate), validate);
    if (reached <= best_accuracy) continue;
    best = std::move(model), best_accuracy = reached, strength = c;
  }
  const std::vector<size_t> predicted = best.predict(x.test);
  std::vector<size_t> counts(classes);
  for (const size_t label : labels) ++counts[label];
  const auto usual = static_cast<size_t>(std::ranges::max_element(counts) - counts.begin());
  found.train.push_back(probe::accuracy(best.predict(x.train), labels));
  if (!validate.empty()) found.validate.push_back(best_accuracy);
  found.test.push_back(probe::accuracy(predicted, test));
  found.constant.push_back(probe::accuracy(std::vector<size_t>(test.size(), usual), test));
  found.strengths.push_back(strength);
  found.kept_variance = x.kept_variance;
  for (size_t i = 0; i < d.test.size(); ++i)
    add_prediction(found, d.test[i], data.classes.names[test[i]], data.classes.names[predicted[i]]);
}

probe::Shares shares_of(const std::string& text) {
  const auto wrong = [&] {
    return base::UserError("probe", "--split {} is not three shares that sum to 100, such as 80/10/10",
                           base::one_line(text, 40));
  };
  std::array<int64_t, 3> shares = {};
  size_t at = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const size_t end = i < 2 ? text.find('/', at) : text.size();
    if (end == std::string::npos || end == at || end - at > 3) throw wrong();
    for (; at < end; ++at) {
      if (text[at] < '0' || text[at] > '9') throw wrong();
      shares[i] = 10 * shares[i] + (text[at] - '0');
    }
    ++at;
  }
  if (shares[0] + shares[1] + shares[2] != 100 || shares[0] == 0 || shares[2] == 0) throw wrong();
  return {shares[0], shares[1], shares[2]};
}

std::vector<probe::Division> divisions_of(const ProbeOptions& o, size_t rows) {
  const bool folds = o.folds > 0 || (o.split.empty() && o.task == "regress");
  std::vector<probe::Division> all;
  if (folds) {
    const int64_t count = o.folds > 0 ? o.folds : 5;
    if (static_cast<size_t>(count) > rows)
      throw base::UserError("probe", "--folds {} of {}", count, base::counted(static_cast<int64_t>(rows), "row"));
    all = probe::make_folds(rows, static_cast<size_t>(count), o.seed);
  } else {
    all = {probe::divide(rows, shares_of(o.split.empty() ? "80/10/10" : o.split), o.seed)};
  }
  for (const probe::Division& d : all)
    if (d.train.size() < 2 || d.test.empty())
      throw base::UserError("probe", "{} {} too few to train on some and test on others",
                            base::counted(static_cast<int64_t>(rows), "row"), rows == 1 ? "is" : "are");
  return all;
}

void print_probe(const ProbeOptions& o, const ProbeData& data, const std::vector<probe::Division>& divisions,
                 const Probed& found) {
  const auto count = [](size_t n) { return base::group_digits(static_cast<int64_t>(n)); };
  std::string features = fmt::format("{}", data.own.columns);
  if (data.reduced.rows > 0) features += fmt::format(" + {} of {}", data.reduced.columns, o.join);
  write_out("features   {}, {} x {}\n", o.features, count(data.rows()), features);
  if (data.unmatched > 0)
    write_out("left out   {}, with a {} that {} lacks\n", base::counted(data.unmatched, "row"), o.on, o.join);
  if (o.pca > 0)
    write_out("components {}, {}% of the variance\n", o.pca, base::format_fixed(100 * found.kept_variance, 1));
  if (o.task == "classify") {
    std::vector<size_t> counts(data.classes.names.size());
    for (const size_t label : data.classes.labels) ++counts[label];
    std::string classes;
    constexpr size_t kMostShown = 12;
    for (size_t k = 0; k < std::min(counts.size(), kMostShown); ++k)
      classes +=
          fmt::format("{}{} {}", k == 0 ? "" : ", ", base::one_line(data.classes.names[k], 30), count(counts[k]));
    write_out("classes    {}{}\n", classes, counts.size() > kMostShown ? ", ..." : "");
  }
  const probe::Division& d = divisions[0];
  if (divisions.size() > 1) {
    write_out("folds      {}, seed {}\n", divisions.size(), o.seed);
  } else {
    write_out("split      {} to train, {} to validate, {} to test, seed {}\n", count(d.train.size()),
              count(d.validate.size()), count(d.test.size()), o.seed);
  }
  if (!found.strengths.empty() && divisions.size() == 1) write_out("strength   {:g}\n", found.strengths[0]);
  const std::string_view metric = o.task == "classify" ? "accuracy" : "mse";
  const auto line = [&](std::string_view what, const std::vector<double>& values) {
    if (!values.empty()) write_out("{:<10} {} {}\n", what, metric, spread_text(values, 4));
  };
  line("train", found.train);
  line("validate", found.validate);
  line("test", found.test);
  line("constant", found.constant);
}

void probe_features(const ProbeOptions& o) {
  if (o.join.empty() != o.on.empty())
    throw base::UserError("probe", "--join and --on, the column that both files have, belong together");
  if (o.folds > 0 && !o.split.empty())
    throw base::UserError("probe", "--folds and --split are different; leave one out");
  if (o.task == "regress" && o.strength > 0)
    throw base::UserError("probe", "--strength applies to classification only; regression derives it from the data");
  const std::array<base::Output, 1> outputs = {{{"--predictions", o.predictions}}};
  std::vector<std::filesystem::path> inputs = {o.features};
  for (const std::string& more : {o.labels, o.join})
    if (!more.empty()) inputs.emplace_back(more);
  require_outputs("probe", outputs, inputs);
  const ProbeData data = read_probe_data(o);
  const std::vector<probe::Division> divisions = divisions_of(o, data.rows());
  Probed found;
  for (const probe::Division& d : divisions)
    o.task == "classify" ? classify(o, data, d, found) : regress(o, data, d, found);
  if (!o.predictions.empty()) base::write_output(o.predictions, "row,label,predicted\n" + found.predictions);
  print_probe(o, data, divisions, found);
}

}  // namespace

void add_probe(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("probe", "Fits a linear model to vectors, and measures it on other rows");
  const auto o = std::make_shared<ProbeOptions>();
  static constexpr std::string_view kTasks[] = {"classify", "regress"};
  verb.text("features", o->features, "A row of numbers per sample: .npy, or CSV").required();
  verb.text("--labels", o->labels, "A CSV with the target of each row; a column of the features if not given");
  verb.text("--target", o->target, "The name of the target's column; the last if not given");
  verb.word("--task", o->task, {{std::begin(kTasks), std::end(kTasks)}},
            "classify: multinomial logistic regression; regress: Bayesian ridge regression")
      .required();
  verb.texts("--columns", o->columns, "The names of the features' columns; all but the target if not given");
  verb.text("--join", o->join, "A CSV whose columns are added to the rows with the same value in column --on");
  verb.text("--on", o->on, "The name of that column in both files");
  verb.integer("--pca", o->pca, {1, 100'000},
               "Reduce the joined columns, or all if there is no --join, to this many principal components");
  verb.integer("--folds", o->folds, {2, 1000}, "Test each row once, in one of so many folds; 5 for regress");
  verb.text("--split", o->split, "Percentages to train, validate and test on; 80/10/10 for classify");
  verb.integer("--seed", o->seed, kSeeds, "Of the order in which rows are divided").show_default();
  verb.number("--strength", o->strength, {0, 1e9, true},
              "classify: the inverse of the penalty (C); chosen on the validation rows, or 1 if there are none");
  verb.text("--predictions", o->predictions, "A CSV file for the label and the prediction of each tested row");
  verb.run([o] { probe_features(*o); });
}

}  // namespace kintsugi::app

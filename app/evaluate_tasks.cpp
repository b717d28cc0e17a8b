#include "app/evaluate_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "app/outputs.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/score_texts.h"
#include "kintsugi/tasks/encode.h"
#include "kintsugi/tasks/group.h"
#include "kintsugi/tasks/results.h"

namespace kintsugi::app {
namespace {

// A task as it is asked of a model.
struct Questions {
  tasks::Task task;
  std::vector<tasks::Document> documents;
  std::vector<tasks::EncodedRequest> requests;
};

// The same on all ranks.
struct QuestionsOfGroup {
  std::string name;
  bool single = false;
  std::vector<Questions> list;
};

// The results of a model.
struct ModelResult {
  std::string name;
  std::vector<tasks::TaskResult> tasks;
};

QuestionsOfGroup read_questions(const EvaluateTasks& o, const evaluate::CheckpointModel& model) {
  const config::Model& m = model.settings().model;
  if (!model.tokenizer())
    throw base::UserError("evaluate", "\"{}\" has no tokenizer, which --task needs", model.folder().string());
  if (o.sequence > m.context)
    throw base::UserError("evaluate", "--sequence {} exceeds the model's {} positions", o.sequence, m.context);
  const tasks::Group group = tasks::load_group(o.task);
  QuestionsOfGroup all = {.name = group.name, .single = group.single, .list = {}};
  for (const tasks::Task& task : group.tasks) {
    Questions q = {.task = task, .documents = tasks::read_documents(task, o.data), .requests = {}};
    tasks::choose_documents(task, 0, q.documents);
    if (o.shots > 0) tasks::add_shots(task, tasks::read_documents(task, o.shots_data), o.shots, q.documents);
    q.requests = tasks::encode_requests(
        task, *model.tokenizer(), q.documents,
        {.context = o.sequence > 0 ? o.sequence : m.context, .vocab = m.vocab, .begin = o.begin});
    all.list.push_back(std::move(q));
  }
  return all;
}

std::string digest_of(const QuestionsOfGroup& all) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a of all ids
  size_t requests = 0;
  for (const Questions& q : all.list) {
    requests += q.requests.size();
    for (const tasks::EncodedRequest& r : q.requests)
      for (const int32_t id : r.ids) hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211u;
  }
  return fmt::format("{}: {} requests, {:016x}", all.name, requests, hash);
}

std::string with_error(double value, const std::optional<double>& error) {
  return base::format_fixed(value, 4) + (error ? " \u00b1 " + base::format_fixed(*error, 4) : "");
}

void print_heading(const evaluate::CheckpointModel& model, const QuestionsOfGroup& all, double seconds) {
  int64_t tokens = 0, cut = 0, documents = 0, requests = 0;
  for (const Questions& q : all.list) {
    documents += std::ssize(q.documents), requests += std::ssize(q.requests);
    for (const tasks::EncodedRequest& r : q.requests) tokens += std::ssize(r.ids) - 1, cut += r.cut ? 1 : 0;
  }
  write_out("checkpoint {}\ntask       {}, {}, {}, {}, {:.1f} documents/s\n", model.folder(), all.name,
            base::counted(documents, "document"), base::counted(requests, "request"), base::counted(tokens, "token"),
            static_cast<double>(documents) / seconds);
  if (cut > 0)
    write_out("truncated  {} longer than the model's context, at the beginning\n", base::counted(cut, "request"));
}

void print_metrics(const Questions& q, const tasks::TaskResult& result) {
  for (const tasks::MetricValue& metric : result.metrics)
    write_out("{:<{}} {}\n", tasks::name_of(metric.metric), q.task.kind == tasks::Kind::text ? 15 : 10,
              with_error(metric.value, metric.standard_error));
}

// A row for each metric of each task, and a column for each model.
void print_table(const QuestionsOfGroup& all, std::span<const ModelResult> models) {
  std::vector<std::vector<std::string>> rows = {{"task", "metric"}};
  for (const ModelResult& model : models) rows[0].push_back(model.name);
  for (size_t t = 0; t < all.list.size(); ++t)
    for (size_t m = 0; m < models[0].tasks[t].metrics.size(); ++m) {
      const tasks::MetricValue& first = models[0].tasks[t].metrics[m];
      std::vector<std::string>& row =
          rows.emplace_back(std::vector<std::string>{all.list[t].task.name, std::string(tasks::name_of(first.metric))});
      for (const ModelResult& model : models)
        row.push_back(with_error(model.tasks[t].metrics[m].value, model.tasks[t].metrics[m].standard_error));
    }
  if (const auto mean = all.single ? std::nullopt : tasks::mean_of_group(models[0].tasks)) {
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{all.name, std::string(tasks::name_of(mean->metric))});
    for (const ModelResult& model : models) {
      const auto of_model = tasks::mean_of_group(model.tasks);
      row.push_back(with_error(of_model->value, of_model->standard_error));
    }
  }
  std::vector<int64_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], tasks::num_characters(row[c]));
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c)
      line += row[c] + (c + 1 < row.size() ? std::string(widths[c] - tasks::num_characters(row[c]) + 2, ' ') : "");
    write_out("{}\n", line);
  }
}

// Scores the requests of all tasks together. Returns the results on the leading rank.
ModelResult evaluate_model(const EvaluateTasks& o, const std::string& path, const config::Parallel& layout,
                           comm::World& world, Progress& progress, QuestionsOfGroup& all) {
  evaluate::CheckpointModel model(path, layout, world, o.model->dtype, o.model->average);
  comm::together(model.all(), [&] { all = read_questions(o, model); });
  comm::require_same(model.all(), "evaluate", "task", digest_of(all));
  std::vector<evaluate::ScoredText> texts;
  for (const Questions& q : all.list)
    for (const tasks::EncodedRequest& r : q.requests) texts.push_back({r.ids, r.scored});
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<evaluate::Score> scores =
      evaluate::score_texts(model, texts, {.batch = o.batch, .progress = [&](int64_t done) {
                                             if (model.leads()) progress.count(done, std::ssize(texts), "requests");
                                           }});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  ModelResult result = {.name = path, .tasks = {}};
  if (!model.leads()) return result;
  warn_of_repeated(model.repeated(), "a batch", progress);
  progress.finish();
  std::string dump;
  size_t before = 0;
  for (const Questions& q : all.list) {
    const auto of_task = std::span(scores).subspan(before, q.requests.size());
    before += q.requests.size();
    result.tasks.push_back(tasks::evaluate_scores(q.task, q.documents, tasks::scores_of_requests(q.requests, of_task)));
    for (const tasks::MetricValue& metric : result.tasks.back().metrics)
      if (!std::isfinite(metric.value))
        throw base::UserError("evaluate", "{} of {} is NaN or infinity: the logits are too large",
                              tasks::name_of(metric.metric), q.task.name);
    if (!o.dump.empty()) dump += describe_documents(q.documents, result.tasks.back(), all.single ? "" : q.task.name);
  }
  if (!o.dump.empty()) base::write_output(o.dump, dump);
  print_heading(model, all, took.count());
  return result;
}

void evaluate_task_on_rank(const EvaluateTasks& o, const config::Parallel& layout, comm::World& world,
                           Progress& progress) {
  QuestionsOfGroup all;
  std::vector<ModelResult> models = {evaluate_model(o, o.model->model, layout, world, progress, all)};
  for (const std::string& path : o.also) models.push_back(evaluate_model(o, path, layout, world, progress, all));
  if (models[0].tasks.empty()) return;  // another rank leads
  if (all.single && models.size() == 1) return print_metrics(all.list[0], models[0].tasks[0]);
  print_table(all, models);
}

// A file, or those of a folder.
void add_files(const std::filesystem::path& path, std::vector<std::filesystem::path>& files) {
  files.push_back(path);
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error))
    files.push_back(it->path());
}

}  // namespace

void evaluate_tasks(const EvaluateTasks& o) {
  if (o.data.empty())
    throw base::UserError("evaluate", "--task {} needs --data, the file or folder of its documents", o.task);
  if ((o.shots > 0) != !o.shots_data.empty())
    throw base::UserError("evaluate", "--shots and --shots-data must be given together");
  if (!o.also.empty() && !o.dump.empty())
    throw base::UserError("evaluate", "--dump writes the documents of one model; leave --also out");
  const std::array<base::Output, 1> outputs = {{{"--dump", o.dump}}};
  std::vector<std::filesystem::path> inputs = {o.task};
  for (const std::string& data : {o.data, o.shots_data}) add_files(data, inputs);
  require_outputs("evaluate", outputs, inputs);
  Progress progress("evaluating");
  on_ranks(
      "evaluate", *o.model, [](const config::Parallel&) {},
      [&](const config::Parallel& layout, comm::World& world) { evaluate_task_on_rank(o, layout, world, progress); });
}

}  // namespace kintsugi::app

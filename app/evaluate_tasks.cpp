#include "app/evaluate_tasks.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "app/progress.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/score_texts.h"
#include "kintsugi/tasks/encode.h"
#include "kintsugi/tasks/results.h"

namespace kintsugi::app {
namespace {

// What is asked of the model, the same on all ranks.
struct Questions {
  tasks::Task task;
  std::vector<tasks::Document> documents;
  std::vector<tasks::EncodedRequest> requests;
};

Questions read_questions(const EvaluateTasks& o, const evaluate::CheckpointModel& model) {
  const config::Model& m = model.settings().model;
  if (!model.tokenizer())
    throw base::UserError("evaluate", "\"{}\" has no tokenizer, which --task needs", model.folder().string());
  if (o.sequence > m.context)
    throw base::UserError("evaluate", "--sequence {} exceeds the model's {} positions", o.sequence, m.context);
  Questions q = {.task = tasks::load_task(o.task), .documents = {}, .requests = {}};
  q.documents = tasks::read_documents(q.task, o.data);
  if (o.shots > 0) tasks::add_shots(q.task, tasks::read_documents(q.task, o.shots_data), o.shots, q.documents);
  q.requests =
      tasks::encode_requests(q.task.kind, *model.tokenizer(), q.documents,
                             {.context = o.sequence > 0 ? o.sequence : m.context, .vocab = m.vocab, .begin = o.begin});
  return q;
}

std::string digest_of(const Questions& q) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a of all ids
  for (const tasks::EncodedRequest& r : q.requests)
    for (const int32_t id : r.ids) hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211u;
  return fmt::format("{}: {} requests, {:016x}", q.task.name, q.requests.size(), hash);
}

void print_result(const evaluate::CheckpointModel& model, const Questions& q, const tasks::TaskResult& result,
                  double seconds) {
  int64_t tokens = 0, cut = 0;
  for (const tasks::EncodedRequest& r : q.requests) tokens += std::ssize(r.ids) - 1, cut += r.cut ? 1 : 0;
  write_out("checkpoint {}\ntask       {}, {}, {}, {}, {:.1f} documents/s\n", model.folder(), q.task.name,
            base::counted(std::ssize(q.documents), "document"), base::counted(std::ssize(q.requests), "request"),
            base::counted(tokens, "token"), static_cast<double>(q.documents.size()) / seconds);
  if (cut > 0)
    write_out("truncated  {} longer than the model's context, at the beginning\n", base::counted(cut, "request"));
  for (const tasks::MetricValue& metric : result.metrics) {
    write_out("{:<{}} {}", tasks::name_of(metric.metric), q.task.kind == tasks::Kind::text ? 15 : 10,
              base::format_fixed(metric.value, 4));
    if (metric.standard_error) write_out(" ± {}", base::format_fixed(*metric.standard_error, 4));
    write_out("\n");
  }
}

void evaluate_task_on_rank(const EvaluateTasks& o, const config::Parallel& layout, comm::World& world,
                           Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  Questions q;
  comm::together(model.all(), [&] { q = read_questions(o, model); });
  comm::require_same(model.all(), "evaluate", "task", digest_of(q));
  std::vector<evaluate::ScoredText> texts;
  for (const tasks::EncodedRequest& r : q.requests) texts.push_back({r.ids, r.scored});
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<evaluate::Score> scores =
      evaluate::score_texts(model, texts, {.batch = o.batch, .progress = [&](int64_t done) {
                                             if (model.leads()) progress.count(done, std::ssize(texts), "requests");
                                           }});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (!model.leads()) return;
  warn_of_repeated(model.repeated(), "a batch", progress);
  progress.finish();
  const tasks::TaskResult result =
      tasks::evaluate_scores(q.task, q.documents, tasks::scores_of_requests(q.requests, scores));
  if (!o.dump.empty()) base::write_output(o.dump, tasks::describe_documents(q.documents, result));
  print_result(model, q, result, took.count());
}

}  // namespace

void evaluate_tasks(const EvaluateTasks& o) {
  if (o.data.empty())
    throw base::UserError("evaluate", "--task {} needs --data, the file or folder of its documents", o.task);
  if ((o.shots > 0) != !o.shots_data.empty())
    throw base::UserError("evaluate", "--shots and --shots-data must be given together");
  const std::array<base::Output, 1> outputs = {{{"--dump", o.dump}}};
  const std::array<std::filesystem::path, 1> inputs = {o.data};
  base::refuse_inputs("evaluate", outputs, inputs);
  Progress progress("evaluating");
  on_ranks(
      "evaluate", *o.model, [](const config::Parallel&) {},
      [&](const config::Parallel& layout, comm::World& world) { evaluate_task_on_rank(o, layout, world, progress); });
}

}  // namespace kintsugi::app

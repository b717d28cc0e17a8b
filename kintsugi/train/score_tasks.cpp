#include "kintsugi/train/score_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/scorer.h"
#include "kintsugi/tasks/encode.h"
#include "kintsugi/tasks/group.h"
#include "kintsugi/tasks/results.h"
#include "kintsugi/text/declared_tokens.h"
#include "kintsugi/text/tokenizer.h"
#include "kintsugi/train/rank.h"

namespace kintsugi::train {
namespace {

std::unique_ptr<text::Tokenizer> tokenizer_of(const config::Settings& s, const std::string& json) {
  if (json.empty())
    throw base::UserError("train",
                          "evaluate.tasks needs a tokenizer, but there is no tokenizer.json next to the token files");
  return text::with_begin_of_texts(text::parse_tokenizer(json, "tokenizer.json"),
                                   config::begins_samples(s) ? s.data.first_token : -1);
}

std::filesystem::path data_of_task(const config::Evaluate& e, const std::string& name) {
  const std::filesystem::path folder = e.tasks_folder, own = folder / name;
  return std::filesystem::is_directory(own) ? own : folder;
}

}  // namespace

struct OpenTasks::One {
  std::string group;  // "": none
  tasks::Task task;
  std::vector<tasks::Document> documents;
  std::vector<tasks::EncodedRequest> requests;
};

OpenTasks::OpenTasks(const config::Settings& s, const std::string& tokenizer_json) : sequence_(s.train.sequence) {
  const auto tokenizer = tokenizer_of(s, tokenizer_json);
  for (const std::string& name : s.evaluate.tasks) {
    const tasks::Group group = tasks::load_group(name);
    for (const tasks::Task& task : group.tasks) {
      if (std::ranges::any_of(tasks_, [&](const One& other) { return other.task.name == task.name; }))
        throw base::UserError("train", "evaluate.tasks names the task {} twice", task.name);
      One one = {.group = group.single ? "" : group.name, .task = task, .documents = {}, .requests = {}};
      one.documents = tasks::read_documents(one.task, data_of_task(s.evaluate, group.name));
      tasks::choose_documents(one.task, s.evaluate.tasks_documents, one.documents);
      one.requests = tasks::encode_requests(one.task, *tokenizer, one.documents,
                                            {.context = sequence_, .vocab = s.model.vocab, .begin = false});
      tasks_.push_back(std::move(one));
    }
  }
}

OpenTasks::~OpenTasks() = default;

int64_t OpenTasks::num_requests() const {
  int64_t all = 0;
  for (const One& one : tasks_) all += std::ssize(one.requests);
  return all;
}

std::vector<std::string> OpenTasks::notes() const {
  std::vector<std::string> notes;
  for (const One& one : tasks_)
    if (const auto cut = std::ranges::count(one.requests, true, &tasks::EncodedRequest::cut); cut > 0)
      notes.push_back(fmt::format("task {}: {} of {} are longer than train.sequence {} and lose their beginning",
                                  one.task.name, base::group_digits(cut),
                                  base::counted(std::ssize(one.requests), "request"), sequence_));
  return notes;
}

std::string OpenTasks::digest() const {
  uint64_t hash = 14695981039346656037u;  // FNV-1a of all ids
  for (const One& one : tasks_)
    for (const tasks::EncodedRequest& r : one.requests)
      for (const int32_t id : r.ids) hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211u;
  return fmt::format("{} tasks, {} requests, {:016x}", tasks_.size(), num_requests(), hash);
}

std::optional<std::vector<TaskScore>> OpenTasks::score(Rank& rank,
                                                       const std::function<bool(int64_t, int64_t)>& goes_on) const {
  const config::Settings& s = rank.settings();
  evaluate::Scorer scorer(
      *rank.executor, *rank.all,
      {.step = program::Step::tasks, .batch = compile::samples_of_pass(s), .sequence = s.train.sequence});
  const int64_t all = num_requests();
  int64_t before = 0;
  std::vector<TaskScore> result;
  std::vector<tasks::TaskResult> of_group;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const One& one = tasks_[t];
    std::vector<evaluate::Score> scores;
    while (scores.size() < one.requests.size()) {
      const auto done = static_cast<int64_t>(scores.size());
      if (!goes_on(before + done, all)) return std::nullopt;
      std::vector<evaluate::ScoredText> texts;
      for (int64_t i = done; i < std::min<int64_t>(done + scorer.batch(), std::ssize(one.requests)); ++i)
        texts.push_back({one.requests[static_cast<size_t>(i)].ids, one.requests[static_cast<size_t>(i)].scored});
      for (const evaluate::Score& score : scorer.score(texts)) scores.push_back(score);
    }
    before += std::ssize(one.requests);
    of_group.push_back(
        tasks::evaluate_scores(one.task, one.documents, tasks::scores_of_requests(one.requests, scores)));
    for (const tasks::MetricValue& m : of_group.back().metrics)
      result.push_back({one.task.name, std::string(tasks::name_of(m.metric)), m.value, m.standard_error});
    if (t + 1 < tasks_.size() && !one.group.empty() && tasks_[t + 1].group == one.group) continue;
    if (const auto mean = one.group.empty() ? std::nullopt : tasks::mean_of_group(of_group))
      result.push_back({one.group, std::string(tasks::name_of(mean->metric)), mean->value, mean->standard_error});
    of_group.clear();
  }
  return result;
}

std::shared_ptr<const OpenTasks> open_tasks(const config::Settings& s, const std::string& tokenizer_json) {
  if (s.evaluate.tasks.empty()) return nullptr;
  return std::make_shared<const OpenTasks>(s, tokenizer_json);
}

}  // namespace kintsugi::train

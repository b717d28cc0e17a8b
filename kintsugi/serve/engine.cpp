#include "kintsugi/serve/engine.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"

namespace kintsugi::serve {
namespace {

using program::Step;

// The other ranks wait for rank 0's next command, and no wait may last longer than their time limit.
constexpr std::chrono::milliseconds kIdle{500};

// What one stage knows of the program.
struct Sizes {
  int64_t capacity = 0, chunk = 0;
  int64_t logits = 0;  // 1: it has them
};

Sizes sizes_here(const run::Executor& executor) {
  Sizes sizes;
  for (const program::StateInfo& s : executor.program().states)
    if (s.kind == program::StateKind::cache) sizes.capacity = s.whole.shape.size("key_seq");
  for (const program::Buffer& b : executor.program().buffers)
    if (b.input == "tokens") sizes.chunk = std::max(sizes.chunk, b.whole.size("seq"));
  sizes.logits = executor.has_output(Step::decode, "logits") ? 1 : 0;
  return sizes;
}

}  // namespace

TokenScore score_token(std::span<const float> logits, int32_t id, int64_t top) {
  base::require(id >= 0 && static_cast<size_t>(id) < logits.size(), "serve", "token {} of {} logits", id,
                logits.size());
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  const double lse = most + std::log(sum);
  TokenScore score = {.id = id, .log_probability = static_cast<double>(logits[static_cast<size_t>(id)]) - lse};
  // The first of equals first.
  const auto before = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::vector<int32_t> best;
  for (int32_t i = 0; i < static_cast<int32_t>(logits.size()) && top > 0; ++i) {
    if (std::ssize(best) == top && !before(i, best.back())) continue;
    if (std::ssize(best) == top) best.pop_back();
    best.insert(std::ranges::upper_bound(best, i, before), i);
  }
  for (const int32_t i : best)
    score.top.push_back({.id = i, .log_probability = static_cast<double>(logits[static_cast<size_t>(i)]) - lse});
  return score;
}

struct Engine::Command {
  enum Kind : int64_t { kIdle, kMake, kEnd };

  int64_t kind = kIdle, prompt = 0, max_tokens = 0, top = 0, score_prompt = 0;
  int64_t top_k = 0, vocab = 0;
  uint64_t seed = 0;
  double temperature = 0;

  static Command of(const Generation& g) {
    return {.kind = kMake,
            .prompt = std::ssize(g.prompt),
            .max_tokens = g.max_tokens,
            .top = g.top,
            .score_prompt = g.score_prompt ? 1 : 0,
            .top_k = g.sample.top_k,
            .vocab = g.sample.vocab,
            .seed = g.sample.seed,
            .temperature = g.sample.temperature};
  }
  Generation generation() const {
    return {.prompt = std::vector<int32_t>(static_cast<size_t>(prompt)),
            .max_tokens = max_tokens,
            .sample = {.temperature = temperature, .top_k = top_k, .seed = seed, .vocab = vocab},
            .top = top,
            .score_prompt = score_prompt != 0};
  }
};

Engine::Engine(run::Executor& executor, comm::Communicator& all) : executor_(executor), all_(all) {
  const Sizes mine = sizes_here(executor);
  std::vector<Sizes> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  for (const Sizes& s : every) {
    capacity_ = std::max(capacity_, s.capacity);
    chunk_ = std::max(chunk_, s.chunk);
  }
  const auto found = std::ranges::find(every, 1, &Sizes::logits);
  base::require(found != every.end(), "serve", "no rank has the logits");
  from_ = static_cast<int>(found - every.begin());
}

void Engine::run(JobQueue* queue) {
  while (true) {
    Command command;
    std::shared_ptr<Job> job;
    if (queue) {
      job = queue->pop(kIdle);
      if (job) command = Command::of(job->generation());
      if (!job && queue->closed()) command.kind = Command::kEnd;
    }
    all_.wait(all_.broadcast(std::as_writable_bytes(std::span(&command, 1)), 0));
    if (command.kind == Command::kEnd) return;
    if (command.kind == Command::kIdle) continue;
    if (job) {
      try {
        make(job->generation(), job.get());
      } catch (...) {
        job->end();
        throw;
      }
      job->end();
    } else {
      make(command.generation(), nullptr);
    }
  }
}

int64_t Engine::of_rank_0(int64_t value) {
  all_.wait(all_.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0));
  return value;
}

// One pass over `ids`, the tokens from `position` on; the rest of `columns` is padding.
void Engine::run_list(Step step, std::span<const int32_t> ids, int64_t position, int64_t columns) {
  tokens_.assign(static_cast<size_t>(columns), 0);
  std::ranges::copy(ids, tokens_.begin());
  kernels::Numbers numbers = {.position = position, .last = std::ssize(ids) - 1};
  executor_.run(step, numbers, [&](const run::Executor::Inputs& inputs) {
    if (inputs.has("tokens")) inputs.set("tokens", {tokens_, 0, columns}, 0);
  });
  step_ = step;
}

// On a rank that has the logits: those at position `row` of the last pass, [vocab].
std::span<const float> Engine::logits_row(int64_t row) {
  const tensor::View out = executor_.output(step_, "logits");  // [batch vocab], or [batch seq vocab]
  const auto vocab = static_cast<size_t>(out.shape().size("vocab"));
  row_.resize(vocab);
  const size_t first = step_ == Step::score ? static_cast<size_t>(row) * vocab : 0;
  tensor::dispatch(out.dtype(), [&]<typename T>(T) {
    std::ranges::transform(out.as<T>().subspan(first, vocab), row_.begin(), [](T x) { return static_cast<float>(x); });
  });
  return row_;
}

// The scores of ids[i] by the logits at rows[i], on every rank.
std::vector<TokenScore> Engine::shared_scores(std::span<const int32_t> ids, std::span<const int64_t> rows,
                                              int64_t top) {
  std::vector<TokenScore> scores(ids.size());
  if (all_.rank() == from_)
    for (size_t i = 0; i < ids.size(); ++i) scores[i] = score_token(logits_row(rows[i]), ids[i], top);
  if (all_.size() == 1) return scores;
  const size_t width = 1 + 2 * static_cast<size_t>(top);
  std::vector<double> packed(width * ids.size());
  if (all_.rank() == from_)
    for (size_t i = 0; i < ids.size(); ++i) {
      double* to = packed.data() + i * width;
      *to++ = *scores[i].log_probability;
      for (const TokenScore::Alternative& a : scores[i].top) *to++ = a.id, *to++ = a.log_probability;
    }
  all_.wait(all_.broadcast(std::as_writable_bytes(std::span(packed)), from_));
  for (size_t i = 0; i < ids.size(); ++i) {
    const double* at = packed.data() + i * width;
    scores[i] = {.id = ids[i], .log_probability = *at++};
    for (int64_t t = 0; t < top; ++t, at += 2)
      scores[i].top.push_back({.id = static_cast<int32_t>(at[0]), .log_probability = at[1]});
  }
  return scores;
}

// Positions after the prompt's end are padding: they write keys that the next tokens replace before they are seen. A
// chunk that would pass the caches' end begins earlier, and reads a few tokens twice.
void Engine::read_prompt(const Generation& g, Job* job) {
  const int64_t total = std::ssize(g.prompt);
  std::vector<TokenScore> scores;
  if (g.score_prompt) scores.push_back({.id = g.prompt[0]});
  for (int64_t read = 0; read < total;) {
    const int64_t begin = std::min(read, capacity_ - chunk_), count = std::min(chunk_, total - begin);
    run_list(g.score_prompt ? Step::score : Step::prefill,
             std::span(g.prompt).subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), begin, chunk_);
    if (g.score_prompt) {
      std::vector<int32_t> ids;
      std::vector<int64_t> rows;
      for (int64_t p = std::max(read, begin); p < begin + count && p + 1 < total; ++p) {
        ids.push_back(g.prompt[static_cast<size_t>(p) + 1]);
        rows.push_back(p - begin);
      }
      const std::vector<TokenScore> found = shared_scores(ids, rows, std::max<int64_t>(g.top, 0));
      scores.insert(scores.end(), found.begin(), found.end());
    }
    read = begin + count;
  }
  if (job) job->prompt_read(std::move(scores));
}

void Engine::make(const Generation& given, Job* job) {
  Generation g = given;
  all_.wait(all_.broadcast(std::as_writable_bytes(std::span(g.prompt)), 0));
  const int64_t total = std::ssize(g.prompt);
  base::require(total > 0 && total + g.max_tokens <= capacity_, "serve", "{} and {} tokens for caches of {}", total,
                g.max_tokens, capacity_);
  if (of_rank_0(job && job->cancelled() ? 1 : 0) != 0) return;
  read_prompt(g, job);
  const int64_t last = total - std::min(((total - 1) / chunk_) * chunk_, capacity_ - chunk_) - 1;  // of its chunk
  for (int64_t made = 0; made < g.max_tokens; ++made) {
    const int64_t row = made == 0 ? last : 0;
    int32_t id = 0;
    if (all_.rank() == from_) {
      const std::span<const float> logits = logits_row(row);
      const size_t ids = g.sample.vocab > 0 ? static_cast<size_t>(g.sample.vocab) : logits.size();
      id = evaluate::sample(logits.first(std::min(ids, logits.size())), g.sample, static_cast<uint64_t>(made));
    }
    all_.wait(all_.broadcast(std::as_writable_bytes(std::span(&id, 1)), from_));
    TokenScore score = {.id = id};
    if (g.top >= 0) score = shared_scores(std::span(&id, 1), std::span(&row, 1), g.top)[0];
    const bool more = job && job->add(std::move(score)) && !job->cancelled();
    if (of_rank_0(more ? 1 : 0) == 0 || made + 1 == g.max_tokens) return;
    run_list(Step::decode, std::span(&id, 1), total + made, 1);
  }
}

}  // namespace kintsugi::serve

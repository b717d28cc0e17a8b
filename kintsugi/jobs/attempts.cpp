#include "kintsugi/jobs/attempts.h"

#include <fmt/format.h>

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/jobs/append_line.h"

namespace kintsugi::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::array<Outcome, 4> kOutcomes = {Outcome::unknown, Outcome::finished, Outcome::stopped, Outcome::failed};

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::unknown:
      return "unknown";
    case Outcome::finished:
      return "finished";
    case Outcome::stopped:
      return "stopped";
    case Outcome::failed:
      return "failed";
  }
  return "";
}

std::vector<Attempt> read_attempts(const fs::path& folder) {
  constexpr base::MostBytes kMost = {size_t{64} << 20, "a list of attempts"};
  const fs::path path = folder / kAttemptsFile;
  std::error_code error;
  std::vector<Attempt> attempts;
  if (!fs::exists(path, error)) return attempts;
  const std::string text = base::read_file(path, kMost);
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // of an incomplete write
    ++line;
    const auto json = base::Json::parse("launch", path.string(), text.substr(at, end - at), line);
    at = end + 1;
    const int64_t number = json.at("attempt").whole();
    if (const auto began = json.find("began")) {
      Attempt& attempt = attempts.emplace_back();
      attempt.number = number;
      attempt.began = began->whole();
      attempt.from = json.at("from").whole();
      if (const auto job = json.find("job")) attempt.job = job->text();
      if (const auto ranks = json.find("ranks")) attempt.ranks = ranks->whole();
      if (const auto nodes = json.find("nodes")) attempt.nodes = nodes->text();
      continue;
    }
    if (attempts.empty() || attempts.back().number != number)
      throw base::UserError("launch", "{}:{}: attempt {} ends and did not begin", path.string(), line, number);
    Attempt& attempt = attempts.back();
    attempt.ended = json.at("ended").whole();
    attempt.to = json.at("to").whole();
    const std::string outcome(json.at("outcome").text());
    for (const Outcome each : kOutcomes)
      if (name_of(each) == outcome) attempt.outcome = each;
    if (const auto why = json.find("why")) attempt.why = why->text();
    if (const auto given_up = json.find("given_up")) attempt.given_up = given_up->boolean();
  }
  return attempts;
}

void add_begin(const fs::path& folder, const Attempt& a) {
  base::make_folders(folder);
  base::JsonWriter json;
  json.object([&] {
    json.key("attempt").value(a.number);
    json.key("began").value(a.began);
    json.key("from").value(a.from);
    if (!a.job.empty()) json.key("job").value(a.job);
    if (a.ranks > 0) json.key("ranks").value(a.ranks);
    if (!a.nodes.empty()) json.key("nodes").value(a.nodes);
  });
  append_line(folder / kAttemptsFile, json.text());
}

void add_end(const fs::path& folder, const Attempt& a) {
  base::JsonWriter json;
  json.object([&] {
    json.key("attempt").value(a.number);
    json.key("ended").value(a.ended);
    json.key("to").value(a.to);
    json.key("outcome").value(name_of(a.outcome));
    if (!a.why.empty()) json.key("why").value(a.why);
    if (a.given_up) json.key("given_up").value(true);
  });
  append_line(folder / kAttemptsFile, json.text());
}

std::optional<Refusal> refusal(const std::vector<Attempt>& attempts, int64_t step, int64_t max_restarts) {
  size_t first = attempts.size();
  while (first > 0 && !attempts[first - 1].given_up && attempts[first - 1].outcome != Outcome::finished) --first;
  const size_t count = attempts.size() - first;
  // The end of the last attempt may be missing: the newest checkpoint then tells its progress.
  if (count >= 2 && attempts[attempts.size() - 2].from == step && attempts.back().from == step)
    return Refusal{true, fmt::format("two attempts in a row ended without a new checkpoint, at step {}{}", step,
                                     attempts.back().why.empty() ? "" : "; the last: " + attempts.back().why)};
  if (static_cast<int64_t>(count) > max_restarts)
    return Refusal{false, fmt::format("{} restart{} were made; launch.max_restarts allows more", max_restarts,
                                      max_restarts == 1 ? "" : "s")};
  return std::nullopt;
}

}  // namespace kintsugi::jobs

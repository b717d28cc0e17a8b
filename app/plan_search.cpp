#include "app/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/fold.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "app/table.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/models/models.h"
#include "kintsugi/report/front_picture.h"
#include "kintsugi/search/search.h"
#include "kintsugi/search/why.h"

namespace kintsugi::app {
namespace {

using search::Found;
using search::Tried;
using simulate::Cluster;

constexpr int kFrontPoints = 8;

std::string bytes_text(int64_t bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes));
}

int64_t devices_of(const config::Settings& s, const SearchOptions& options, const Cluster& c) {
  const int64_t n = options.devices ? *options.devices : s.parallel.ranks > 1 ? s.parallel.ranks : c.devices();
  if (n > c.devices())
    throw base::UserError("search", "{} devices, and {} has {}: {} nodes of {}", n, c.path, c.devices(), c.nodes,
                          c.devices_per_node);
  return n;
}

int64_t limit_of(const config::Settings& s, const Cluster& c) {
  const auto device = static_cast<int64_t>(c.device.memory);
  if (s.parallel.memory_per_rank.empty()) return device;
  return std::min(device, *config::memory_size(s.parallel.memory_per_rank));
}

std::string difference(double a, double b) {
  return a == b ? "" : fmt::format("{:+.1f}%", 100 * (a / b - 1));
}

// "+1.2 GiB"
std::string difference(int64_t a, int64_t b) {
  return a == b ? "" : (a > b ? "+" : "-") + bytes_text(std::abs(a - b));
}

double utilization(const Tried& t, const config::Settings& s, const Cluster& c, int64_t devices) {
  return t.work.model / t.time.seconds / static_cast<double>(devices) /
         c.device.peak.at(tensor::dtype_from(s.train.dtype));
}

// Rows of figures, the first of them names of columns, each numbered and with its layout on a line below.
std::string table_of(const std::vector<Tried>& tried, std::vector<std::vector<std::string>> figures) {
  for (size_t row = 0; row < figures.size(); ++row)
    figures[row].insert(figures[row].begin(), row == 0 ? "" : fmt::format("{}", row));
  std::istringstream lines(table(figures));
  std::string text, line;
  std::getline(lines, line);
  text = line + "\n";
  for (size_t row = 0; std::getline(lines, line); ++row)
    text += line + "\n      " + fold(in_words(tried[row].candidate), kColumns, 6, FoldAt::commas) + "\n";
  return text;
}

std::string print_best(const Found& found, const config::Settings& s, const Cluster& c, int64_t devices) {
  std::vector<std::vector<std::string>> rows = {
      {"step", "", std::string(models::unit_of(s.model)), "each", "utilization", "memory", ""}};
  const Tried& first = found.best.front();
  const auto tokens = static_cast<double>(s.train.global_batch * s.train.sequence);
  const std::string unit = fmt::format("{}/s", models::unit_of(s.model));
  for (const Tried& t : found.best) {
    const double rate = tokens / t.time.seconds;
    rows.push_back({base::format_seconds(t.time.seconds), difference(t.time.seconds, first.time.seconds),
                    base::format_rate(rate, unit), base::format_rate(rate / static_cast<double>(devices), unit),
                    fmt::format("{:.1f}%", 100 * utilization(t, s, c, devices)), bytes_text(t.bytes),
                    difference(t.bytes, first.bytes)});
  }
  return "the fastest, and what the others cost and save against the first\n" + table_of(found.best, rows);
}

std::string print_front(const Found& found) {
  if (found.front.size() < 2) return "";
  std::vector<std::vector<std::string>> rows = {{"memory", "step", ""}};
  for (const Tried& t : found.front)
    rows.push_back({bytes_text(t.bytes), base::format_seconds(t.time.seconds),
                    difference(t.time.seconds, found.front.front().time.seconds)});
  return "the fastest with less memory\n" + table_of(found.front, rows);
}

std::string print_counts(const Found& found) {
  const search::Counts& n = found.counts;
  std::string text = base::group_digits(n.all) + " layouts: ";
  const auto add = [&](int64_t number, std::string_view what) {
    if (number > 0) text += fmt::format("{} {}, ", base::group_digits(number), what);
  };
  add(n.too_large, "need more memory");
  add(n.too_slow, found.left > 0 ? "are slower or were not simulated" : "are slower");
  add(n.refused, "do not suit the model");
  return text + fmt::format("{} were simulated", n.simulated);
}

// What is not known of those that there was no time for.
std::string print_left(const Found& found, double seconds) {
  const double first = found.best.front().time.seconds;
  const std::string least =
      fmt::format("it ended after {:g} s (--budget): those that were not simulated take at least {}", seconds,
                  base::format_seconds(found.left));
  if (found.left >= first) return least + ": none of them is faster than the first";
  return fmt::format("{}, {:.1f}% less than the first", least, 100 * (1 - found.left / first));
}

std::string picture(const Found& found, const Cluster& c, int64_t devices, int64_t limit) {
  const auto points = [](const std::vector<Tried>& list) {
    std::vector<report::TimeAndMemory> points;
    for (const Tried& t : list) points.push_back({t.time.seconds, t.bytes, in_words(t.candidate)});
    return points;
  };
  return report::front_picture(points(found.front), points(found.best), limit,
                               fmt::format("Time and memory on {} devices of {}", devices, c.name));
}

}  // namespace

void plan_search(const config::Settings& s, const SearchOptions& options) {
  const Cluster c = simulate::read_cluster(options.cluster);
  const int64_t devices = devices_of(s, options, c), limit = limit_of(s, c);
  Progress progress("searching");
  const Found found = search::search(
      s, c,
      {.space = {.devices = devices, .offload = c.storage_bandwidth > 0},
       .limit = limit,
       .threads = static_cast<int>(base::usable_cores()),
       .seconds = options.seconds,
       .front = options.svg.empty() ? 0 : kFrontPoints,
       .progress = [&](const search::Counts& n) {
         progress.tell(fmt::format("{} of {} layouts simulated", n.simulated, base::group_digits(n.all)));
       }});
  progress.finish();
  if (found.best.empty()) throw base::UserError("search", "{}", search::nothing_fits(found, c, devices, limit));
  write_out("search on {}: {} of {} {}, {} each\n", c.name, base::group_digits(devices),
            base::group_digits(c.devices()), c.device.name, bytes_text(limit));
  write_out("  {}\n", fold(print_counts(found), kColumns, 2));
  if (found.left > 0) write_out("  {}\n", fold(print_left(found, options.seconds), kColumns, 2));
  write_out("{}{}{}\n{}", print_best(found, s, c, devices), print_front(found),
            fold(search::why(found.best.front(), found.states, c, limit), kColumns, 5),
            as_toml(s, found.best.front().candidate));
  if (!options.svg.empty()) base::write_output(options.svg, picture(found, c, devices, limit));
}

}  // namespace kintsugi::app

#include "kintsugi/train/node_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/texts_of_all.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kRows = 192;
constexpr size_t kCopied = size_t{16} << 20, kWritten = size_t{4} << 20;
constexpr size_t kFewSent = size_t{64} << 10, kManySent = size_t{2} << 20;

double seconds_from(Clock::time_point begin) {
  return std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
}

double copy_bandwidth(double seconds) {
  std::vector<std::byte> from(kCopied, std::byte{1}), to(kCopied);
  const auto begin = Clock::now();
  double bytes = 0;
  do {
    std::memcpy(to.data(), from.data(), kCopied);
    from[0] = to[kCopied - 1];  // so that no copy is left out
    bytes += 2.0 * kCopied;
  } while (seconds_from(begin) < seconds);
  return bytes / seconds_from(begin);
}

// 0: there is no such folder, or it cannot be written; the run itself reports that.
double write_bandwidth(const std::filesystem::path& folder, int rank) {
  const std::filesystem::path path = folder / fmt::format("check_{}", rank);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return 0;
  const std::vector<std::byte> bytes(kWritten, std::byte{7});
  const auto begin = Clock::now();
  const bool written =
      ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && ::fsync(file) == 0;
  const double seconds = seconds_from(begin);
  ::close(file);
  ::unlink(path.c_str());
  return written ? static_cast<double>(kWritten) / seconds : 0;
}

std::byte pattern(int rank, size_t at) {
  return static_cast<std::byte>((static_cast<size_t>(rank) * 31 + at) & 0xff);
}

// Around the ring of one factor of the mesh: to the next rank, from the previous one. False if other bytes arrive.
bool measure_link(comm::Communicator& ring, std::span<const int> ranks, size_t size, double& bandwidth) {
  const int n = ring.size(), next = (ring.rank() + 1) % n, previous = (ring.rank() + n - 1) % n;
  std::vector<std::byte> sent(size), received(size);
  for (size_t i = 0; i < size; ++i) sent[i] = pattern(ranks[static_cast<size_t>(ring.rank())], i);
  ring.wait(ring.barrier());
  const auto begin = Clock::now();
  const std::vector<comm::Message> messages = {comm::Message::to(next, sent), comm::Message::from(previous, received)};
  ring.wait(ring.exchange(messages));
  bandwidth = static_cast<double>(2 * size) / seconds_from(begin);
  for (size_t i = 0; i < size; ++i)
    if (received[i] != pattern(ranks[static_cast<size_t>(previous)], i)) return false;
  return true;
}

void measure_links(comm::World& world, const mesh::Mesh& mesh, double seconds, NodeReport& report) {
  for (mesh::Factor f = 0; f < static_cast<mesh::Factor>(mesh.factors().size()); ++f) {
    const std::vector<mesh::Factor> along = {f};
    const std::vector<int> ranks = mesh.group(world.rank(), along);
    const auto ring = world.group(ranks);
    const int peer = ranks[static_cast<size_t>((ring->rank() + 1) % ring->size())];
    MeasuredLink link = {.axis = mesh.name_of(along), .peer = peer};
    for (const size_t size : {kFewSent, kManySent}) {
      if (!measure_link(*ring, ranks, size, link.bandwidth)) {
        report.correct = false;
        report.wrong = fmt::format("what it received over {}", link.axis);
      }
      // All decide alike: a slow link is measured by its first message.
      const bool slow = static_cast<double>(2 * kManySent) / link.bandwidth > seconds;
      if (comm::on_any(*ring, slow)) break;
    }
    report.links.push_back(link);
  }
}

std::string to_text(const NodeReport& r) {
  base::JsonWriter json;
  json.object([&] {
    json.key("host").value(r.host).key("correct").value(r.correct).key("wrong").value(r.wrong);
    json.key("flops").value(r.flops).key("memory").value(r.memory).key("disk").value(r.disk).key("clock").value(
        r.clock);
    json.key("links").list([&] {
      for (const MeasuredLink& l : r.links)
        json.object(
            [&] { json.key("axis").value(l.axis).key("peer").value(l.peer).key("bandwidth").value(l.bandwidth); });
    });
  });
  return json.text();
}

NodeReport report_from(const std::string& text) {
  const auto json = base::Json::parse("launch", "the report of a rank", text);
  NodeReport r = {.host = std::string(json.at("host").text()), .correct = json.at("correct").boolean()};
  r.wrong = json.at("wrong").text();
  r.flops = json.at("flops").number();
  r.memory = json.at("memory").number();
  r.disk = json.at("disk").number();
  r.clock = json.at("clock").number();
  for (const auto& l : json.at("links").list())
    r.links.push_back(
        {std::string(l.at("axis").text()), static_cast<int>(l.at("peer").whole()), l.at("bandwidth").number()});
  return r;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// One quantity of all ranks.
struct NodeRate {
  std::string_view name, unit;
  double NodeReport::*value;
};
constexpr std::array<NodeRate, 3> kCompared = {{{"arithmetic", "FLOP/s", &NodeReport::flops},
                                                {"memory", "B/s", &NodeReport::memory},
                                                {"the file system", "B/s", &NodeReport::disk}}};

std::string slower(double value, double usual, std::string_view unit) {
  return fmt::format("{}, {:.1f} times slower than the median of {}", base::format_rate(value, unit), usual / value,
                     base::format_rate(usual, unit));
}

}  // namespace

void multiply(const float* a, const float* b, float* c, int64_t n) {
  std::fill(c, c + n * n, 0.0f);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[k * n + j];
    }
}

bool multiplies_correctly(const Multiply& multiply, double seconds, double& flops) {
  constexpr int64_t n = kRows;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  std::vector<int64_t> left(n), right(n);
  uint64_t state = 1;
  const auto draw = [&](int64_t most) {  // -most .. most
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(2 * most + 1)) - most;
  };
  const auto begin = Clock::now();
  double count = 0, spent = 0;
  do {
    for (float& x : a) x = static_cast<float>(draw(3));
    for (float& x : b) x = static_cast<float>(draw(3));
    for (int64_t& x : left) x = draw(1000);
    for (int64_t& x : right) x = draw(1000);
    const auto multiplied = Clock::now();
    multiply(a.data(), b.data(), c.data(), n);
    spent += seconds_from(multiplied);
    count += 2.0 * n * n * n;
    // left' C right = (left' A) (B right), in integers.
    int64_t direct = 0, known = 0;
    for (int64_t k = 0; k < n; ++k) {
      int64_t of_a = 0, of_b = 0, of_c = 0;
      for (int64_t i = 0; i < n; ++i) {
        of_a += left[static_cast<size_t>(i)] * static_cast<int64_t>(a[static_cast<size_t>(i * n + k)]);
        of_b += static_cast<int64_t>(b[static_cast<size_t>(k * n + i)]) * right[static_cast<size_t>(i)];
        of_c += static_cast<int64_t>(c[static_cast<size_t>(k * n + i)]) * right[static_cast<size_t>(i)];
      }
      known += of_a * of_b;
      direct += left[static_cast<size_t>(k)] * of_c;
    }
    if (direct != known) return false;
  } while (seconds_from(begin) < seconds);
  flops = count / spent;
  return true;
}

std::vector<std::string> judge_nodes(std::span<const NodeReport> reports, double seconds) {
  for (size_t r = 0; r < reports.size(); ++r)
    if (!reports[r].correct)
      throw comm::SharedError("launch", "rank {} on {} computes wrong results: {} is not right; use another node", r,
                              reports[r].host, reports[r].wrong);
  for (size_t r = 1; r < reports.size(); ++r)
    if (const double ahead = reports[r].clock - reports[0].clock; std::abs(ahead) > kClockSeconds)
      throw comm::SharedError("launch",
                              "the clock of {} (rank {}) is {:.0f} s {} that of {}; set both by NTP: chronyc makestep",
                              reports[r].host, r, std::abs(ahead), ahead > 0 ? "ahead of" : "behind", reports[0].host);
  std::vector<std::string> lines;
  std::string summary;
  for (const auto& [name, unit, value] : kCompared) {
    std::vector<double> all;
    for (const NodeReport& r : reports)
      if (r.*value > 0) all.push_back(r.*value);
    const double usual = median(all);
    if (usual > 0) summary += fmt::format(", {} {}", name, base::format_rate(usual, unit));
    for (size_t r = 0; r < reports.size(); ++r)
      if (const double mine = reports[r].*value; mine > 0 && mine * kSlow <= usual)
        lines.push_back(
            fmt::format("warning: rank {} on {}: {} at {}", r, reports[r].host, name, slower(mine, usual, unit)));
  }
  std::map<std::string, std::vector<double>> links;
  for (const NodeReport& r : reports)
    for (const MeasuredLink& l : r.links) links[l.axis].push_back(l.bandwidth);
  for (const auto& [axis, all] : links) {
    const double usual = median(all);
    summary += fmt::format(", {} links {}", axis, base::format_rate(usual, "B/s"));
    for (size_t r = 0; r < reports.size(); ++r)
      for (const MeasuredLink& l : reports[r].links)
        if (l.axis == axis && l.bandwidth * kSlow <= usual)
          lines.push_back(fmt::format("warning: the {} link from rank {} on {} to rank {} on {}: {}", axis, r,
                                      reports[r].host, l.peer, reports[static_cast<size_t>(l.peer)].host,
                                      slower(l.bandwidth, usual, "B/s")));
  }
  lines.insert(lines.begin(), fmt::format("checks: {} in {}{}", base::counted(std::ssize(reports), "rank"),
                                          base::format_duration(seconds), summary));
  return lines;
}

std::vector<std::string> check_nodes(comm::World& world, const config::Settings& s, const std::string& host) {
  const auto begin = Clock::now();
  const auto all = comm::group_of_all(world);
  const mesh::Mesh mesh = plan::plan_from(s.parallel).mesh;
  if (mesh.ranks() != world.size()) return {};  // the run itself refuses it
  const auto links = static_cast<double>(mesh.factors().size());
  const double each = std::min(0.15, s.launch.check_seconds / (4 + 4 * links));
  NodeReport mine = {.host = host};
  all->wait(all->barrier());
  mine.clock = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  mine.correct = multiplies_correctly(multiply, each, mine.flops);
  if (!mine.correct) mine.wrong = fmt::format("a product of {} x {} matrices", kRows, kRows);
  all->wait(all->barrier());
  mine.memory = copy_bandwidth(each);
  all->wait(all->barrier());
  mine.disk = write_bandwidth(std::filesystem::path(s.train.folder) / ".launch", world.rank());
  measure_links(world, mesh, each, mine);
  std::vector<NodeReport> reports;
  for (const std::string& text : comm::texts_of_all(*all, to_text(mine))) reports.push_back(report_from(text));
  std::vector<std::string> lines = judge_nodes(reports, seconds_from(begin));
  if (world.rank() != 0) lines.clear();
  return lines;
}

}  // namespace kintsugi::train

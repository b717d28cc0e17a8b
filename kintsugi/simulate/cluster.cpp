#include "kintsugi/simulate/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/toml_reader.h"
#include "kintsugi/simulate/cluster_figures.h"
#include "kintsugi/simulate/read_measured.h"

namespace kintsugi::simulate {
namespace {

using base::UserError;
using config::Raw;

constexpr std::string_view kTopologies[] = {"switch", "rail", "fat tree", "dragonfly"};

// "name:12"
std::string where(std::string_view name, int line) {
  return fmt::format("{}:{}", name, line);
}

std::string range_text(const Figure& f) {
  return fmt::format("from {} to {}", to_string(f.range.least, f.measure), to_string(f.range.most, f.measure));
}

// The likely meaning of a number without a unit: the unit that puts it nearest the middle of the range.
std::string likely(double number, const Figure& f) {
  const std::string_view units[] = {"GB/s", "TFLOP/s", "us", "GB", "W"};
  for (const std::string_view unit : units) {
    const std::string text = fmt::format("{:g} {}", number, unit);
    const auto value = quantity(text, f.measure);
    if (value && *value >= f.range.least && *value <= f.range.most) return fmt::format("; did you mean \"{}\"?", text);
  }
  return "";
}

// Another measure in which the text would be a figure.
std::string other_unit(std::string_view text, const Figure& f) {
  for (const Measure m :
       {Measure::bytes, Measure::bytes_per_second, Measure::flops_per_second, Measure::seconds, Measure::watts}) {
    if (m == f.measure || !quantity(text, m)) continue;
    if (m == Measure::bytes && f.measure == Measure::bytes_per_second)
      return fmt::format("; did you mean \"{}/s\"?", text);
    if (m == Measure::bytes_per_second && f.measure == Measure::bytes)
      return fmt::format("; did you mean \"{}\"?", text.substr(0, text.size() - 2));
    return "";
  }
  return "";
}

// Link bandwidth may be given in bits, memory bandwidth may not.
void refuse_bits(const Figure& f, const Raw& raw, const std::string& at) {
  const size_t bits = raw.type == Raw::Type::text ? raw.text.find("b/s") : std::string::npos;
  if (f.section != "device" || bits == std::string::npos) return;
  std::string bytes = raw.text;
  bytes[bits] = 'B';
  throw UserError("cluster", "{}: {}.{} is {}, in bits; did you mean \"{}\"?", at, f.section, f.key, raw.shown(),
                  bytes);
}

double read_figure(const Figure& f, const Raw& raw, const std::string& at) {
  refuse_bits(f, raw, at);
  const bool plain = f.measure == Measure::count || f.measure == Measure::share || f.measure == Measure::price;
  const bool is_number = raw.type == Raw::Type::integer || raw.type == Raw::Type::number;
  const double number = raw.type == Raw::Type::integer ? static_cast<double>(raw.integer) : raw.number;
  std::optional<double> value;
  if (plain && is_number) value = number;
  if (!plain && raw.type == Raw::Type::text) value = quantity(raw.text, f.measure);
  if (!value)
    throw UserError("cluster", "{}: {}.{} is {}{}; write it as {}{}", at, f.section, f.key, raw.shown(),
                    !plain && is_number ? ", without a unit" : "", example(f.measure),
                    is_number && !plain           ? likely(number, f)
                    : raw.type == Raw::Type::text ? other_unit(raw.text, f)
                                                  : "");
  const bool whole = f.measure != Measure::count || *value == std::floor(*value);
  if (!(*value >= f.range.least && *value <= f.range.most && whole))
    throw UserError("cluster", "{}: {}.{} is {}, out of range; it must be {}{}", at, f.section, f.key, raw.shown(),
                    f.measure == Measure::count ? "a whole number " : "", range_text(f));
  return *value;
}

Tile read_tile(const Raw& raw, const std::string& at) {
  Tile tile;
  const char* const end = raw.text.data() + raw.text.size();
  const auto rows = std::from_chars(raw.text.data(), end, tile.rows);
  const bool cut = rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x';
  const auto columns = cut ? std::from_chars(rows.ptr + 1, end, tile.columns) : std::from_chars_result{};
  if (raw.type != Raw::Type::text || !cut || columns.ec != std::errc{} || columns.ptr != end || tile.rows < 1 ||
      tile.columns < 1 || tile.rows > 4096 || tile.columns > 4096)
    throw UserError("cluster", "{}: a tile of products.tiles is {}; write it as \"256x128\"", at, raw.shown());
  return tile;
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  Cluster read(std::string_view text) {
    for (const config::Entry& e : config::read_toml(text, name_)) read(e);
    require_all();
    return std::move(cluster_);
  }

 private:
  void read(const config::Entry& e) {
    const std::string at = where(name_, e.line);
    if (e.key.empty()) {
      if (e.value.type != Raw::Type::table)
        throw UserError("cluster", "{}: {} is outside any section", at, base::in_quotes(e.section));
      return;
    }
    for (const Figure& f : figures())
      if (f.section == e.section && f.key == e.key) {
        f.place(cluster_) = read_figure(f, e.value, at);
        seen_.insert({e.section, e.key});
        return;
      }
    for (const ClusterText& t : texts())
      if (t.section == e.section && t.key == e.key) {
        if (e.value.type != Raw::Type::text || e.value.text.empty())
          throw UserError("cluster", "{}: {}.{} is {}; it is a text", at, e.section, e.key, e.value.shown());
        t.place(cluster_) = e.value.text;
        check_topology(at);
        return;
      }
    if (e.section == "measured") return read_measured(e, name_, cluster_.measured);
    if (e.section == "products" && e.key == "tiles") {
      for (const Raw& item : e.value.items) cluster_.products.tiles.push_back(read_tile(item, at));
      if (cluster_.products.tiles.empty())
        throw UserError("cluster", "{}: products.tiles is {}; it is a list as [\"256x128\", \"128x128\"]", at,
                        e.value.shown());
      return;
    }
    std::vector<std::string> known = {"products.tiles"};
    for (const Figure& f : figures()) known.push_back(fmt::format("{}.{}", f.section, f.key));
    for (const ClusterText& t : texts()) known.push_back(fmt::format("{}.{}", t.section, t.key));
    const std::string key = fmt::format("{}.{}", e.section, e.key);
    throw UserError("cluster", "{}: unknown key {}; did you mean {}?", at, base::one_line(key),
                    base::nearest(key, known));
  }

  void check_topology(const std::string& at) const {
    if (std::ranges::find(kTopologies, cluster_.network.topology) == std::end(kTopologies))
      throw UserError("cluster", "{}: network.topology is {}; it is one of {}", at,
                      base::in_quotes(cluster_.network.topology), fmt::join(kTopologies, ", "));
  }

  bool needs(Needed needed) const {
    return needed == Needed::always || (needed == Needed::several_devices && cluster_.devices_per_node > 1) ||
           (needed == Needed::several_nodes && cluster_.nodes > 1);
  }

  void require_all() {
    for (const Figure& f : figures())
      if (needs(f.needed) && !seen_.contains({std::string(f.section), std::string(f.key)}))
        throw UserError("cluster", "{}: {}.{} is missing; write it as {} = {}", name_, f.section, f.key, f.key,
                        example(f.measure));
    if (cluster_.device.peak.empty())
      throw UserError("cluster", "{}: [peak] has no figure; write it as bf16 = {}", name_,
                      example(Measure::flops_per_second));
    if (cluster_.products.tiles.empty())
      throw UserError("cluster", "{}: products.tiles is missing; write it as tiles = [\"256x128\", \"128x128\"]",
                      name_);
    if (cluster_.network.taper < 1 && cluster_.network.nodes_per_part == 0)
      throw UserError("cluster", "{}: network.taper needs network.nodes_per_part, the nodes under one switch", name_);
    if (cluster_.device.name.empty()) cluster_.device.name = "device";
    if (cluster_.name.empty()) cluster_.name = name_;
    cluster_.path = name_;
  }

  std::string name_;
  Cluster cluster_;
  std::set<std::pair<std::string, std::string>> seen_;
};

}  // namespace

double Cluster::slowest_of(int64_t ranks) const {
  if (device.spread == 0 || ranks < 2) return 1;
  const auto n = static_cast<double>(ranks);
  const double share = (n - 0.375) / (n + 0.25);
  // The quantile of the normal distribution, by bisection.
  double least = 0, most = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? least : most) = middle;
  }
  return 1 + device.spread * least;
}

double Cluster::peak(tensor::DType dtype) const {
  const auto found = device.peak.find(dtype);
  if (found != device.peak.end()) return found->second;
  throw base::UserError("cluster", "{}: peak.{} is missing, and the run's products are in {}", path, name_of(dtype),
                        name_of(dtype));
}

double Cluster::slowdown(bool in_node, bool over_network) const {
  return std::max({1.0, in_node ? node.slowdown : 1, over_network ? network.link.slowdown : 1});
}

Cluster parse_cluster(std::string_view text, std::string_view name) {
  return Reader(name).read(text);
}

Cluster read_cluster(const std::filesystem::path& path) {
  return parse_cluster(base::read_file(path), path.string());
}

}  // namespace kintsugi::simulate

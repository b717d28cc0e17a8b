#include "kintsugi/simulate/write_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kintsugi/simulate/cluster_figures.h"
#include "kintsugi/simulate/read_measured.h"

namespace kintsugi::simulate {
namespace {

std::string value_text(double value, Measure measure) {
  switch (measure) {
    case Measure::count:
    case Measure::share:
    case Measure::price:
      return fmt::format("{:.4g}", value);
    default:
      return fmt::format("\"{}\"", to_string(value, measure));
  }
}

}  // namespace

std::string to_toml(const Cluster& cluster) {
  Cluster written = cluster, defaults;
  std::string text, section;
  const auto begin = [&](std::string_view name) {
    if (section == name) return;
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", name);
    section = name;
  };
  for (const Figure& f : figures()) {
    if (section != f.section)
      for (const ClusterText& t : texts())
        if (t.section == f.section && t.place(written) != t.place(defaults)) {
          begin(t.section);
          text += fmt::format("{} = \"{}\"\n", t.key, t.place(written));
        }
    const double value = f.place(written);
    const bool needed = f.needed == Needed::always || (f.needed == Needed::several_devices && cluster.devices() > 1) ||
                        (f.needed == Needed::several_nodes && cluster.nodes > 1);
    if (!needed && value == f.place(defaults)) continue;
    begin(f.section);
    text += fmt::format("{} = {}\n", f.key, value_text(value, f.measure));
    if (f.section != "products" || f.key != "start") continue;
    std::vector<std::string> tiles;
    for (const Tile& tile : cluster.products.tiles) tiles.push_back(fmt::format("\"{}x{}\"", tile.rows, tile.columns));
    text += fmt::format("tiles = [{}]\n", fmt::join(tiles, ", "));
  }
  return text + to_toml(cluster.measured);
}

}  // namespace kintsugi::simulate

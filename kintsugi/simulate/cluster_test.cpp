#include "kintsugi/simulate/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::simulate::cluster_test {

const std::string kText = R"([cluster]
name = "two nodes"
nodes = 2
devices_per_node = 4
[device]
units = 108
memory = "80 GB"
memory_bandwidth = "2039 GB/s"
[peak]
bf16 = "312 TFLOP/s"
[products]
share = 0.8
depth = 96
start = "5 us"
tiles = ["256x128"]
[attention]
forward = 0.6
backward = 0.5
[node]
bandwidth = "230 GB/s"
start = "40 us"
step = "3.4 us"
[network]
bandwidth = "200 Gb/s"
start = "40 us"
step = "14 us"
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_cluster(text, "c.toml");
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Cluster, IsReadFromAFile) {
  const Cluster c = parse_cluster(with(kText, "[peak]", "cache_bandwidth = \"5.4 TB/s\"\n[peak]"), "c.toml");
  EXPECT_EQ(c.devices(), 8);
  EXPECT_EQ(c.device.memory, 80e9);
  EXPECT_EQ(c.device.cache_bandwidth, 5.4e12);
  EXPECT_EQ(c.network.link.bandwidth, 25e9);
  EXPECT_EQ(c.device.peak.at(tensor::DType::bf16), 312e12);
  EXPECT_EQ(c.products.tiles, (std::vector<Tile>{{256, 128}}));
}

TEST(Cluster, SaysWhatIsWrong) {
  const std::pair<std::pair<std::string, std::string>, std::string> cases[] = {
      {{"bandwidth = \"230 GB/s\"", "bandwidth = \"0 GB/s\""}, "c.toml:20: node.bandwidth is \"0 GB/s\", out of range"},
      {{"bandwidth = \"230 GB/s\"", "bandwidth = 230"},
       "node.bandwidth is 230, without a unit; write it as \"200 GB/s\"; did you mean \"230 GB/s\"?"},
      {{"bandwidth = \"230 GB/s\"", "bandwidth = \"230 GB\""}, "did you mean \"230 GB/s\"?"},
      {{"memory_bandwidth = \"2039 GB/s\"", "memory_bandwidth = \"2039 Gb/s\""},
       "device.memory_bandwidth is \"2039 Gb/s\", in bits; did you mean \"2039 GB/s\"?"},
      {{"memory = \"80 GB\"", "memory = \"80 GB/s\""}, "did you mean \"80 GB\"?"},
      {{"bandwidth = \"230 GB/s\"\n", ""}, "c.toml: node.bandwidth is missing"},
      {{"share = 0.8", "share = 80"}, "products.share is 80, out of range; it must be from 0.01 to 1"},
      {{"nodes = 2", "nodes = 1.5"}, "a whole number"},
      {{"nodes = 2", "nodes = 0"}, "cluster.nodes is 0"},
      {{"depth = 96", "deepth = 96"}, "unknown key products.deepth; did you mean products.depth?"},
      {{"256x128", "256"}, "write it as \"256x128\""},
      {{"bf16 = \"312 TFLOP/s\"", ""}, "[peak] has no figure"},
      {{"step = \"14 us\"", "step = \"14 us\"\ntopology = \"ring\""},
       "c.toml:27: network.topology is \"ring\"; it is one of switch, rail"},
      {{"step = \"14 us\"", "step = \"14 us\"\ntaper = 0.5"}, "network.taper needs network.nodes_per_part"},
  };
  for (const auto& [change, expected] : cases) {
    const std::string error = error_of(with(kText, change.first, change.second));
    EXPECT_NE(error.find(expected), error.npos) << error << "\n" << expected;
    EXPECT_EQ(error.find('\n'), error.npos) << error;
  }
}

// The expected largest of n normal deviations: 0.56 of 2, 1.42 of 8, 2.51 of 100 (tables).
TEST(Cluster, ItsSlowestDeviceIsSlowerTheMoreThereAre) {
  Cluster c;
  EXPECT_EQ(c.slowest_of(1000), 1);
  c.device.spread = 0.01;
  EXPECT_EQ(c.slowest_of(1), 1);
  EXPECT_NEAR(c.slowest_of(2), 1.0056, 3e-4);
  EXPECT_NEAR(c.slowest_of(8), 1.0142, 2e-4);
  EXPECT_NEAR(c.slowest_of(100), 1.0251, 2e-4);
}

TEST(Cluster, OfOneDeviceNeedsNoLinks) {
  std::string text = kText.substr(0, kText.find("[node]"));
  text = with(with(text, "nodes = 2", "nodes = 1"), "devices_per_node = 4", "devices_per_node = 1");
  EXPECT_EQ(parse_cluster(text, "c.toml").devices(), 1);
}

// The files distributed with the program; the pages that they cite exist.
TEST(Cluster, FilesAreRead) {
  const std::filesystem::path source = tests::source_folder();
  const std::regex page("docs/[a-z/-]+\\.md");
  int found = 0;
  for (const char* const folder : {"clusters", "bench/published"})
    for (const auto& entry : std::filesystem::directory_iterator(source / folder)) {
      if (entry.path().extension() != ".toml") continue;
      EXPECT_GT(read_cluster(entry.path()).devices(), 0) << entry.path();
      const std::string text = base::read_file(entry.path());
      for (auto cited = std::sregex_iterator(text.begin(), text.end(), page); cited != std::sregex_iterator(); ++cited)
        EXPECT_TRUE(std::filesystem::exists(source / cited->str())) << entry.path() << " cites " << cited->str();
      ++found;
    }
  EXPECT_GE(found, 9);
}

}  // namespace kintsugi::simulate::cluster_test

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "kintsugi/base/file.h"
#include "kintsugi/config/keys_help.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::models::named_sizes_test {

double millions(const config::NamedSize& size) {
  const std::vector<std::string> sets = {"model.name=" + std::string(size.name), "train.sequence=8"};
  config::Resolved r = config::resolve(config::read_text("", "run.toml", catalog(), sets), 1);
  graph::StateTable states;
  build_forward(r.settings, states);
  double count = 0;
  for (const graph::State& state : states)
    if (state.kind == graph::StateKind::weight) count += static_cast<double>(state.type.shape.elements());
  return count / 1e6;
}

// Parameters in millions, as published.
TEST(NamedSizes, HaveTheirPublishedParameters) {
  const std::map<std::string_view, double> published = {{"gpt2", 124},
                                                        {"gpt2-medium", 355},
                                                        {"gpt2-large", 774},
                                                        {"gpt2-xl", 1558},
                                                        {"gpt3-125m", 125},
                                                        {"gpt3-350m", 356},
                                                        {"gpt3-760m", 760},
                                                        {"gpt3-1.3b", 1316},
                                                        {"gpt3-2.7b", 2652},
                                                        {"gpt3-6.7b", 6658},
                                                        {"gpt3-13b", 12853},
                                                        {"gpt3-175b", 174600},
                                                        {"megatron-1.2b", 1210},
                                                        {"megatron-2.5b", 2500},
                                                        {"megatron-4.2b", 4200},
                                                        {"megatron-8.3b", 8300},
                                                        {"megatron-1.7b", 1700},
                                                        {"megatron-3.6b", 3600},
                                                        {"megatron-7.5b", 7500},
                                                        {"megatron-18b", 18400},
                                                        {"megatron-39b", 39100},
                                                        {"megatron-76b", 76100},
                                                        {"megatron-145b", 145600},
                                                        {"megatron-310b", 310100},
                                                        {"megatron-530b", 529600},
                                                        {"megatron-1t", 1008000},
                                                        {"llama-7b", 6738},
                                                        {"llama-13b", 13016},
                                                        {"llama-33b", 32529},
                                                        {"llama-65b", 65286},
                                                        {"llama2-7b", 6738},
                                                        {"llama2-13b", 13016},
                                                        {"llama2-70b", 68977},
                                                        {"llama3-8b", 8030},
                                                        {"llama3-70b", 70554},
                                                        {"tinyllama-1.1b", 1100},
                                                        {"stories260k", 0.26},
                                                        {"stories15m", 15.19},
                                                        {"stories42m", 41.7},
                                                        {"stories110m", 109.5},
                                                        {"megatron-22b", 22000},
                                                        {"llama3.1-405b", 405850},
                                                        {"pythia-70m", 70.4},
                                                        {"pythia-160m", 162.3},
                                                        {"pythia-410m", 405.3},
                                                        {"pythia-1b", 1011.8},
                                                        {"pythia-1.4b", 1414.6},
                                                        {"pythia-2.8b", 2775.2},
                                                        {"pythia-6.9b", 6857.3},
                                                        {"pythia-12b", 11846.1},
                                                        {"gptneox-20b", 20554.6},
                                                        {"forge-1.4b", 1440},
                                                        {"forge-13b", 13100},
                                                        {"forge-22b", 22400},
                                                        {"gptj-6b", 6050.9},
                                                        {"mistral-7b", 7241.7},
                                                        {"qwen2-0.5b", 494},
                                                        {"qwen2-1.5b", 1543.7},
                                                        {"qwen2-7b", 7615.6},
                                                        {"qwen2-72b", 72706.2},
                                                        {"qwen3-0.6b", 596},
                                                        {"qwen3-1.7b", 1720.6},
                                                        {"qwen3-4b", 4022.5},
                                                        {"qwen3-8b", 8190.7},
                                                        {"qwen3-14b", 14768.3},
                                                        {"qwen3-32b", 32762.1},
                                                        {"olmo2-7b", 7298.6},
                                                        {"olmo2-13b", 13716.2},
                                                        {"smollm3-3b", 3075.1},
                                                        {"phi3-mini", 3821.1},
                                                        {"gemma3-1b", 999.9},
                                                        {"bert-base", 110},
                                                        {"bert-large", 336}};
  for (const config::NamedSize& size : named_sizes()) {
    ASSERT_TRUE(published.contains(size.name)) << size.name;
    EXPECT_NEAR(millions(size) / published.at(size.name), 1.0, 0.03) << size.name;
  }
  EXPECT_EQ(catalog().size("gpt5"), nullptr);
}

TEST(NamedSizes, ThePageHasThem) {
  const std::filesystem::path page = std::filesystem::path(__FILE__).parent_path() / "../../docs/configuration.md";
  const std::string text = base::read_file(page);
  for (const std::string& table : {config::markdown_sizes(catalog()), config::markdown_families(catalog()),
                                   config::markdown_optimizers(catalog())})
    EXPECT_NE(text.find(table), std::string::npos) << "docs/configuration.md should hold:\n" << table;
}

}  // namespace kintsugi::models::named_sizes_test

// Small folders of every family, and results of transformers (both by bench/families/goldens.py): logits, loss and the
// norm of each gradient, on one rank and on several.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/exchange/config_json.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/inspect.h"
#include "tests/layouts.h"

namespace kintsugi::tests::families_test {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(std::string_view family) {
  return fs::path(__FILE__).parent_path() / "families" / family;
}

struct Expected {
  train::Samples samples;
  double loss = 0;
  std::vector<double> logits;
  std::map<std::string, double> norms;
};

Expected expected_of(const fs::path& folder) {
  const fs::path file = folder / "expected.json";
  const base::Json json = base::Json::parse("test", file.string(), base::read_file(file));
  Expected e;
  const auto append = [&](std::string_view name, std::vector<int32_t>& to) {
    if (!json.has(name)) return;
    for (const base::Json& sample : json.at(name).list())
      for (const base::Json& number : sample.list()) to.push_back(static_cast<int32_t>(number.whole(-1)));
  };
  append("ids", e.samples.ids);
  append("labels", e.samples.labels);
  append("types", e.samples.types);
  append("class", e.samples.classes);
  e.samples.count = static_cast<int64_t>(json.at("ids").list().size());
  e.samples.sequence = static_cast<int64_t>(e.samples.ids.size()) / e.samples.count;
  e.loss = json.at("loss").number();
  for (const base::Json& x : json.at("logits").list()) e.logits.push_back(x.number());
  for (const base::Json& norm : json.at("gradient_norms").members()) e.norms[std::string(norm.key())] = norm.number();
  return e;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

void expect_close(const train::Inspection& found, const Expected& e, const config::Model& model) {
  ASSERT_EQ(found.logits.values.size(), e.logits.size());
  double largest = 0, difference = 0;
  const size_t vocab = e.logits.size() / e.samples.ids.size();
  for (size_t i = 0; i < e.logits.size(); ++i) {
    if (e.samples.ids[i / vocab] < 0) continue;  // padding: each side has its own
    largest = std::max(largest, std::abs(e.logits[i]));
    difference = std::max(difference, std::abs(found.logits.values[i] - e.logits[i]));
  }
  EXPECT_LT(difference / largest, 1e-5);
  EXPECT_NEAR(found.loss / e.loss, 1.0, 1e-6);
  const auto gradients = train::as_in_folder(found.gradients, model);
  EXPECT_EQ(gradients.size(), e.norms.size());
  double top = 0;
  for (const auto& [name, norm] : e.norms) top = std::max(top, norm);
  for (const auto& [name, norm] : e.norms) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    EXPECT_NEAR(norm_of(gradients.at(name).values), norm, 1e-4 * std::max(norm, 1e-3 * top)) << name;
  }
}

}  // namespace

class Families : public testing::TestWithParam<std::string> {};

TEST_P(Families, LogitsLossAndGradientsOfTransformers) {
  const fs::path folder = folder_of(GetParam());
  const Expected expected = expected_of(folder);
  const exchange::SavedModel saved = exchange::open_model(folder, *comm::self_communicator());
  for (const std::string layout : {"", "data=2 zero=3", "tensor=2", "pipe=2", "context=2"}) {
    SCOPED_TRACE(layout);
    config::Settings s = saved.settings();
    EXPECT_EQ(s.model.family, GetParam());
    s.parallel.threads = 1;
    if (!layout.empty()) set_layout(s, layout);
    const train::Inspection found = train::inspect(s, expected.samples, [&](run::Executor& executor) {
      checkpoint::load_states(executor, *saved.weights, checkpoint::Load::weights);
    });
    expect_close(found, expected, s.model);
  }
}

// An exported model is read back as the same model.
TEST_P(Families, ConfigJsonRoundTrip) {
  const std::string text = base::read_file(folder_of(GetParam()) / "config.json");
  const exchange::FolderConfig config = exchange::read_config("config.json", text);
  const std::string again = exchange::write_config(config.model, config.dtype);
  EXPECT_EQ(exchange::read_config("again", again).model, config.model) << again;
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const models::Family& family : models::families())
    // bench/images/torch_twins.py compares image networks with torchvision's.
    if (!family.hugging_face.model_types.empty() && !family.config.reads_images) list.emplace_back(family.config.name);
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace kintsugi::tests::families_test

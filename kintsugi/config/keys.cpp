#include "kintsugi/config/keys.h"

#include <fmt/format.h>

#include "kintsugi/config/key_rows.h"

namespace kintsugi::config {
namespace {

std::vector<Key> list() {
  std::vector<Key> all;
  for (const auto& section : {model_keys, data_keys, train_keys, lora_keys, dpo_keys, grpo_keys, parallel_keys,
                              checkpoint_keys, launch_keys, evaluate_keys})
    for (Key& key : section()) all.push_back(std::move(key));
  return all;
}

}  // namespace

std::string Key::full_name() const {
  return fmt::format("{}.{}", section, name);
}

const std::vector<Key>& keys() {
  static const std::vector<Key> kKeys = list();
  return kKeys;
}

const std::vector<std::string_view>& sections() {
  static const std::vector<std::string_view> kSections = {"model", "data",     "train",      "lora",   "dpo",
                                                          "grpo",  "parallel", "checkpoint", "launch", "evaluate"};
  return kSections;
}

std::string_view describe_section(std::string_view section) {
  if (section == "model") return "the network";
  if (section == "data") return "what it learns from";
  if (section == "train") return "how it learns";
  if (section == "lora") return "low-rank adapters (LoRA), trained instead of the weights";
  if (section == "dpo") return "preferences (train.method \"dpo\")";
  if (section == "grpo") return "rewards (train.method \"grpo\")";
  if (section == "parallel") return "what it runs on";
  if (section == "launch") return "how kintsugi launch supervises the run";
  if (section == "checkpoint") return "what is saved";
  return "evaluation tasks during training";
}

}  // namespace kintsugi::config

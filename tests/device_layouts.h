// The layouts in which small models of several ranks train on the emulated device.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "kintsugi/models/models.h"
#include "tests/layouts.h"

namespace kintsugi::tests {

struct DeviceLayout {
  std::string family, dtype, layout;
};

inline void PrintTo(const DeviceLayout& l, std::ostream* out) {
  *out << l.family << " " << l.dtype << " " << l.layout;
}

inline const std::vector<DeviceLayout>& device_layouts() {
  static const std::vector<DeviceLayout> list = {
      {"gpt", "fp32", "data=2"},
      {"gpt", "fp32", "data=2 zero=1"},
      {"llama", "fp32", "data=2 zero=2"},
      {"llama", "bf16", "data=2 zero=3"},
      {"gpt", "fp32", "tensor=2"},
      {"llama", "fp32", "tensor=2 sequence_parallel"},
      {"gpt", "fp32", "context=2"},
      {"llama", "fp32", "context=2 method=ring"},
      {"gpt", "bf16", "context=4 method=ring"},
      {"llama", "fp32", "context=2 method=ulysses"},
      {"gpt", "fp32", "pipe=2 schedule=gpipe"},
      {"llama", "fp32", "pipe=2 schedule=1f1b"},
      {"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"},
      {"gpt", "fp32", "pipe=2 schedule=zero_bubble"},
      {"llama", "fp32", "pipe=2 data=2 tensor=2"},
      {"gpt", "fp16", "data=2 tensor=2 zero=2"},
      {"llama", "bf16", "context=2 tensor=2 zero=1"},
      {"gpt", "fp32", "data=4 zero=3 shard_group=2"},
      {"gpt", "fp32", "data=2 context=2 zero=1"},
      {"llama", "fp32", "data=2 tensor=2 zero=3 sequence_parallel"},
      {"gpt", "bf16", "data=2 wire=bf16"},
      {"llama", "fp32", "pipe=2 tensor=2 zero=1"},
      {"gpt", "fp32", "data=2 tensor=2 context=2 method=ring"},
      {"gpt", "fp32", "data=2 reproducible=4"},
      {"llama", "fp32", "data=2 zero=3 reproducible=2"},
      {"mixtral", "bf16", "expert=2"},
      {"gpt_oss", "fp32", "expert=2 data=2 zero=1"},
      {"lenet", "fp32", "space=2"},
      {"lenet", "fp32", "space=2 data=2 zero=1"},
      {"lenet", "fp32", "pipe=2 schedule=1f1b"},
      {"lenet", "fp32", "tensor=2 data=2 zero=3"},
  };
  return list;
}

// Small images of the sizes that a family can read.
inline void set_image(config::Model& m) {
  if (const int64_t fixed = models::family(m.family).config.layers; fixed > 0) m.layers = fixed;
  m.image_channels = 3;
  m.image_mean = {0.485, 0.456, 0.406};
  m.image_deviation = {0.25};
  m.image_height = m.image_width = 32;
  if (m.family == "lenet") m.image_height = 24, m.image_width = 20;
  if (m.family.starts_with("resnet")) m.image_height = 16, m.image_width = 8;
  if (m.family == "alexnet") m.image_height = m.image_width = 64;
  if (m.family == "unet") m.image_height = 48, m.image_width = 16, m.embed = 2;
  if (m.family == "cosmoflow") m.image_depth = 32, m.image_dtype = "fp32";
  if (m.family == "vit") m.image_height = 12, m.image_width = 8, m.patch = 4, m.drop_path = 0.2;
  if (m.objective == "fields") m.class_token = false;
}

inline config::Settings settings_of(const DeviceLayout& l) {
  config::Settings s = small_model(l.family, l.dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.parallel.device = "cpu";
  set_layout(s, "device=emulated " + l.layout);
  s.model.layers = std::max<int64_t>(2, s.parallel.pipe * s.parallel.chunks);
  if (models::reads_images(s.model)) set_image(s.model);
  if (s.model.experts > 0) {
    s.model.experts = 4, s.model.experts_per_token = 2;
    s.train.balance = "loss";
  }
  s.train.micro_batch /= config::data_ranks(s.parallel);
  return s;
}

}  // namespace kintsugi::tests

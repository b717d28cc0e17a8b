#include "kintsugi/exchange/image_processor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::exchange {
namespace {

using base::Json;

constexpr double kByte = 1.0 / 255.0;

bool reads_bytes(const config::Model& model) {
  return model.image_dtype == "uint8";
}

// One number per channel.
std::vector<double> per_channel(const std::vector<double>& numbers, double standard, int64_t channels) {
  if (static_cast<int64_t>(numbers.size()) == channels) return numbers;
  return std::vector<double>(static_cast<size_t>(channels), numbers.empty() ? standard : numbers.front());
}

bool says(const Json& root, std::string_view key, bool absent) {
  const std::optional<Json> given = root.find(key);
  return given && !given->is_null() ? given->boolean() : absent;
}

// A number, or one per channel, divided by `unit`.
std::vector<double> read_numbers(const Json& given, int64_t channels, double unit, bool above_zero) {
  std::vector<double> numbers;
  const auto add = [&](const Json& item) {
    if (above_zero && item.number() <= 0.0) item.fail("\"{}\" holds {}; it must be above 0", given.key(), item.shown());
    numbers.push_back(item.number() / unit);
  };
  if (given.is_list()) {
    for (const Json& item : given.list()) add(item);
  } else {
    add(given);
  }
  const auto count = static_cast<int64_t>(numbers.size());
  if (count != 1 && count != channels)
    given.fail("\"{}\" has {} numbers, and config.json says that images have {} channel{}", given.key(), count,
               channels, channels == 1 ? "" : "s");
  return numbers;
}

// Stores `numbers` unless the model has the same ones already; all `standard` is the model's default. Equal numbers are
// stored as one.
void store(const Json& place, std::string_view key, const std::vector<double>& numbers, double standard,
           int64_t channels, std::vector<double>& model) {
  const std::vector<double> given = per_channel(numbers, standard, channels);
  if (!model.empty() && per_channel(model, standard, channels) != given)
    place.fail("\"{}\" differs from that of config.json; make them equal, or remove one", key);
  if (!model.empty() || given == per_channel({}, standard, channels)) return;
  model = std::ranges::count(numbers, numbers.front()) == std::ssize(numbers) ? std::vector<double>{numbers.front()}
                                                                              : numbers;
}

}  // namespace

void read_image_processor(std::string_view name, std::string_view text, config::Model& model) {
  const Json root = Json::parse("model", name, text);
  if (!root.is_object()) root.refuse("an object");
  for (const std::string_view key : {"do_flip_channel_order", "rescale_offset", "offset"})
    if (says(root, key, false)) root.at(key).fail("\"{}\" is true, which is not supported; remove it", key);
  const bool bytes = reads_bytes(model);
  double unit = bytes ? 1.0 / kByte : 1.0;  // of theirs per unit of ours
  if (says(root, "do_rescale", true)) {
    const std::optional<Json> factor = root.find("rescale_factor");
    const double theirs = factor && !factor->is_null() ? factor->number() : kByte;
    if (theirs <= 0.0) factor->refuse("a number above 0");
    unit *= theirs;
  }
  if (std::abs(unit - 1.0) < 1e-6) unit = 1.0;  // written with fewer digits
  std::vector<double> mean = {0.0}, deviation = {1.0 / unit};
  const bool normalizes = says(root, "do_normalize", true);
  if (normalizes) {
    mean = read_numbers(root.at("image_mean"), model.image_channels, unit, false);
    deviation = read_numbers(root.at("image_std"), model.image_channels, unit, true);
  }
  const auto place = [&](std::string_view key) { return normalizes ? root.at(key) : root; };
  store(place("image_mean"), "image_mean", mean, bytes ? 0.5 : 0.0, model.image_channels, model.image_mean);
  store(place("image_std"), "image_std", deviation, bytes ? 0.5 : 1.0, model.image_channels, model.image_deviation);
}

void read_image_size(std::string_view name, std::string_view text, config::Model& model) {
  const Json root = Json::parse("model", name, text);
  if (!root.is_object()) root.refuse("an object");
  for (const std::string_view key : {"crop_size", "size"}) {
    const std::optional<Json> size = root.find(key);
    if (!size || size->is_null() || (key == "crop_size" && !says(root, "do_center_crop", true))) continue;
    const auto pixels = [](const Json& n) { return n.whole(1, 1'000'000); };
    if (size->is_number()) {
      model.image_height = model.image_width = pixels(*size);
    } else if (const std::optional<Json> edge = size->find("shortest_edge"); edge && !edge->is_null()) {
      model.image_height = model.image_width = pixels(*edge);
    } else {
      model.image_height = pixels(size->at("height"));
      model.image_width = pixels(size->at("width"));
    }
    return;
  }
}

std::string write_image_processor(const config::Model& model) {
  base::JsonWriter out(2);
  const auto numbers = [&](std::string_view key, const std::vector<double>& given) {
    out.key(key).list([&] {
      for (const double x : per_channel(given, 0.5, model.image_channels)) out.value(x);
    });
  };
  out.object([&] {
    out.key("image_processor_type").value("ViTImageProcessor");
    out.key("do_resize").value(true);
    out.key("size").object([&] {
      out.key("height").value(model.image_height);
      out.key("width").value(model.image_width);
    });
    out.key("resample").value(int64_t{2});  // bilinear
    out.key("do_rescale").value(true);
    out.key("rescale_factor").value(kByte);
    out.key("do_normalize").value(true);
    numbers("image_mean", model.image_mean);
    numbers("image_std", model.image_deviation);
  });
  return out.text() + "\n";
}

}  // namespace kintsugi::exchange

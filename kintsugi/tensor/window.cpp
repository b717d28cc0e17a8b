#include "kintsugi/tensor/window.h"

#include <fmt/format.h>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::tensor {

std::string kernel_dim(std::string_view dim) {
  return fmt::format("kernel_{}", dim);
}

std::vector<DimWindow> windows_of(const Attributes& attributes) {
  std::vector<DimWindow> windows;
  const std::string* dims = nullptr;
  for (const auto& [name, value] : attributes.list())
    if (name == "window") dims = std::get_if<std::string>(&value);  // attention has a number of that name
  if (!dims) return windows;
  for (const std::string& dim : words(*dims)) {
    const Window w = {.kernel = attributes.integer(kernel_dim(dim)),
                      .stride = attributes.integer_or("stride_" + dim, 1),
                      .dilation = attributes.integer_or("dilation_" + dim, 1),
                      .low = attributes.integer_or("low_" + dim, 0),
                      .high = attributes.integer_or("high_" + dim, 0)};
    base::require(w.kernel >= 1 && w.stride >= 1 && w.dilation >= 1, "attributes", "no window: \"{}\"",
                  to_string(attributes));
    windows.push_back({dim, w});
  }
  return windows;
}

void set_windows(Attributes& attributes, const std::vector<DimWindow>& windows) {
  std::string dims;
  for (const DimWindow& w : windows) dims += (dims.empty() ? "" : " ") + w.dim;
  attributes.set("window", dims);
  for (const auto& [dim, w] : windows) {
    const auto set = [&](const std::string& name, int64_t value, int64_t otherwise) {
      if (value != otherwise || attributes.has(name)) attributes.set(name, value);
    };
    attributes.set(kernel_dim(dim), w.kernel);
    set("stride_" + dim, w.stride, 1);
    set("dilation_" + dim, w.dilation, 1);
    set("low_" + dim, w.low, 0);
    set("high_" + dim, w.high, 0);
  }
}

std::array<std::array<int64_t, 2>, 2> OutputPart::ranges(int64_t length) const {
  if (outer) return {{{0, begin}, {end, length}}};
  return {{{begin, end}, {end, end}}};
}

std::optional<OutputPart> output_part(const Attributes& attributes) {
  if (!attributes.has("part")) return std::nullopt;
  const OutputPart part = {.dim = attributes.text("part_dim"),
                           .begin = attributes.integer("part_begin"),
                           .end = attributes.integer("part_end"),
                           .outer = attributes.text("part") == "outer"};
  base::require(part.begin >= 0 && part.begin <= part.end, "attributes", "no part: \"{}\"", to_string(attributes));
  return part;
}

void set_output_part(Attributes& attributes, const OutputPart& part) {
  attributes.set("part", part.outer ? "outer" : "inner");
  attributes.set("part_dim", part.dim);
  attributes.set("part_begin", part.begin);
  attributes.set("part_end", part.end);
}

}  // namespace kintsugi::tensor

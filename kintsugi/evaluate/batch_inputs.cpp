#include "kintsugi/evaluate/batch_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "kintsugi/tensor/dims.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::evaluate {
namespace {

using samples::Part;
using samples::Parts;

// The part of an input: its type and shape per sample.
Part part_of(const program::Buffer& input) {
  Part part = {.name = input.input, .dtype = input.type.dtype};
  for (const tensor::Dim& dim : input.whole)
    if (dim.name != tensor::kSamples) part.shape.push_back(dim.size);
  return part;
}

std::string listed(const Parts& parts) {
  std::vector<std::string> texts;
  for (const Part& part : parts) texts.push_back(to_string(part));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// One padding element in its dtype: the first bytes.
std::array<std::byte, 8> padding_of(tensor::DType dtype, double value) {
  std::array<std::byte, 8> bytes = {};
  const auto put = [&](auto x) { std::ranges::copy(std::as_bytes(std::span(&x, 1)), bytes.begin()); };
  if (tensor::is_floating(dtype))
    tensor::dispatch(dtype, [&]<typename T>(T) { put(static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value))); });
  else if (dtype == tensor::DType::u8)
    put(static_cast<uint8_t>(value));
  else if (dtype == tensor::DType::u16)
    put(static_cast<uint16_t>(value));
  else if (dtype == tensor::DType::i32)
    put(static_cast<int32_t>(value));
  else
    put(static_cast<int64_t>(value));
  return bytes;
}

}  // namespace

void require_inputs(std::span<const program::Program> stages, program::Step step, const Parts& parts) {
  std::set<std::string> read;
  for (const program::Program& p : stages)
    for (const program::Call& call : p.list(step).calls)
      for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions)
        for (const program::BufferId id : i.ins) {
          const program::Buffer& b = p.buffer(p.root(id));
          if (b.input.empty() || !read.insert(b.input).second) continue;
          const Part needed = part_of(b);
          const auto part = std::ranges::find(parts, needed.name, &Part::name);
          base::require(part != parts.end() && part->dtype == needed.dtype && part->shape == needed.shape, "run",
                        "{} reads {}, and a batch holds {}", name_of(step), to_string(needed), listed(parts));
        }
  for (const Part& part : parts)
    base::require(part.optional || read.contains(part.name), "run", "{} does not read {} of a batch", name_of(step),
                  to_string(part));
}

void set_inputs(const run::Executor::Inputs& inputs, const samples::BatchView& batch, int64_t first) {
  for (const samples::PartView& part : batch.parts()) {
    if (!inputs.has(part.name)) continue;
    const std::array<std::byte, 8> padding = padding_of(part.dtype, part.padding);
    const auto size = static_cast<size_t>(tensor::size_of(part.dtype));
    inputs.set(part.name, {part.dtype, batch.bytes(part), first, part.elements, std::span(padding).first(size)});
  }
}

}  // namespace kintsugi::evaluate

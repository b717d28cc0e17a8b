#include "kintsugi/lower/order/split_interior.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kintsugi/program/halo.h"
#include "kintsugi/program/order.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using tensor::OutputPart;
using tensor::Window;

namespace {

constexpr std::string_view kHaloPlace = "halo_place";

bool is_placed(const Program& p, const Instruction& i) {
  return i.kind == Kind::compute && i.kernel == kHaloPlace && i.cuts.exchanges && i.ins.size() == 2 &&
         p.buffer(i.outs[0]).same_as == program::kNoBuffer && p.root(i.ins[0]) != i.outs[0];
}

// [output position]: whether its window covers no received row on any rank.
std::vector<bool> inner_positions(const Program& p, const Instruction& place, const Window& w, int64_t outputs) {
  const int64_t own = p.buffer(place.ins[0]).type.shape.size(place.cuts.dim);
  std::vector<bool> inner(static_cast<size_t>(outputs), true);
  for (const int rank : p.mesh.group(0, place.cuts.factors)) {
    const tensor::DimIndex placed = program::halo_rows(p.mesh, place.cuts, rank).placed;
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t k = 0; k < w.kernel; ++k)
        if (placed[o * w.stride - w.low + k * w.dilation] >= own) inner[static_cast<size_t>(o)] = false;
  }
  return inner;
}

// The longest range of inner positions.
std::pair<int64_t, int64_t> longest(const std::vector<bool>& inner) {
  std::pair<int64_t, int64_t> best = {0, 0};
  for (size_t begin = 0; begin < inner.size();) {
    size_t end = begin;
    while (end < inner.size() && inner[end]) ++end;
    if (static_cast<int64_t>(end - begin) > best.second - best.first)
      best = {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
    begin = end + 1;
  }
  return best;
}

class InteriorSplitter {
 public:
  InteriorSplitter(Program& p, const kernels::KernelSet& kernels, const InteriorRule& rule)
      : p_(p), kernels_(kernels), rule_(rule) {}

  void run(program::Body& body) {
    std::vector<Instruction>& list = body.instructions;
    for (size_t at = 0; at < list.size(); ++at) {
      if (!is_placed(p_, list[at])) continue;
      const std::optional<size_t> reader = first_reader(list, at);
      if (!reader) continue;
      if (const auto part = inner_part(list[at], list[*reader])) split(list, at, *reader, *part);
    }
  }

 private:
  // The first instruction that touches the placed block, if it reads it and nothing before it overwrites what
  // halo_place reads.
  std::optional<size_t> first_reader(const std::vector<Instruction>& list, size_t place) const {
    const Instruction& made = list[place];
    for (size_t at = place + 1; at < list.size(); ++at) {
      if (program::touches(p_, list[at].outs, made.outs)) return std::nullopt;
      if (program::touches(p_, list[at].ins, made.outs)) return at;
      if (program::touches(p_, list[at].outs, made.ins)) return std::nullopt;
    }
    return std::nullopt;
  }

  bool can(std::string_view kind, std::string_view name) const {
    return kernels_.has(kind) && kernels_.find(kind).can(kernels::Capability::parts, name);
  }

  std::optional<OutputPart> inner_part(const Instruction& place, const Instruction& reader) const {
    const std::string& dim = place.cuts.dim;
    const std::vector<tensor::DimWindow> windows = tensor::windows_of(reader.attributes);
    const auto w = std::ranges::find(windows, dim, &tensor::DimWindow::dim);
    if (reader.kind != Kind::compute || reader.kernel != "convolution" || w == windows.end() ||
        reader.ins.size() != 2 || reader.ins[0] != place.outs[0] || reader.windowed.ins != 1 ||
        reader.outs.size() != 1 || reader.accumulate != 0)
      return std::nullopt;
    if (!can(kHaloPlace, "") || !can(reader.kernel, w == windows.begin() ? kernels::kFirstDim : ""))
      return std::nullopt;
    const tensor::Shape& y = p_.buffer(reader.outs[0]).type.shape;
    const int64_t outputs = y.size(dim), positions = y.elements() / std::max<int64_t>(y[y.rank() - 1].size, 1);
    if (positions < rule_.fewest_positions ||
        reader.cost.flops < (p_.on_device ? rule_.fewest_device_flops : rule_.fewest_flops))
      return std::nullopt;
    auto [begin, end] = longest(inner_positions(p_, place, w->window, outputs));
    begin += begin % 2;
    if (end < outputs) end -= end % 2;
    if (2 * (end - begin) < outputs || end - begin == outputs) return std::nullopt;
    return OutputPart{.dim = dim, .begin = begin, .end = end};
  }

  void split(std::vector<Instruction>& list, size_t place, size_t reader, const OutputPart& part) const {
    Instruction received = list[place], outer = list[reader];
    Instruction &own = list[place], &inner = list[reader];
    const double moved = 2.0 * static_cast<double>(p_.buffer(own.ins[1]).bytes());
    received.attributes.set("place", "received");
    received.attributes.set("rows", p_.buffer(own.ins[0]).type.shape.size(part.dim));
    received.ins[0] = received.outs[0];
    received.completes = 1;
    received.cost.memory_bytes = moved;
    own.attributes.set("place", "own");
    own.ins.resize(1);
    own.absent.ins |= 0b10u;
    own.begins = 1;
    own.cost.memory_bytes -= moved;
    outer.completes = 1;
    inner.begins = 1;
    set_part(inner, part);
    set_part(outer, {.dim = part.dim, .begin = part.begin, .end = part.end, .outer = true});
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(reader) + 1, {std::move(received), std::move(outer)});
  }

  // Both read the weights.
  void set_part(Instruction& i, const OutputPart& part) const {
    const int64_t outputs = p_.buffer(i.outs[0]).type.shape.size(part.dim);
    const double share = static_cast<double>(part.positions(outputs)) / static_cast<double>(outputs),
                 weights = static_cast<double>(p_.buffer(i.ins[1]).bytes());
    i.cost.flops *= share;
    i.cost.memory_bytes = weights + share * (i.cost.memory_bytes - weights);
    set_output_part(i.attributes, part);
  }

  Program& p_;
  const kernels::KernelSet& kernels_;
  const InteriorRule& rule_;
};

}  // namespace

void split_interior(Program& p, const kernels::KernelSet& kernels, const InteriorRule& rule) {
  InteriorSplitter splitter(p, kernels, rule);
  for (program::Body& body : p.bodies) splitter.run(body);
}

}  // namespace kintsugi::lower

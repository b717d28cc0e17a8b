#include "kintsugi/bind/bound_kernel.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/overlap.h"
#include "kintsugi/kernels/stochastic.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/tensor/dims.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::bind {

using program::BufferId;
using program::Instruction;
using tensor::View;

namespace {

void bind_indices(const program::Program& p, const program::Body& body, const Instruction& i, int rank,
                  BoundKernel& b) {
  if (i.cuts.exchanges) {
    const program::HaloRows rows = program::halo_rows(p.mesh, i.cuts, rank);
    const bool packs = b.outs[0].shape().has(tensor::kHalo);
    b.indices.push_back({i.cuts.dim, packs ? rows.packed : rows.placed});
    return;
  }
  if (!i.cuts.dim.empty()) {  // stack, unstack: the index of each part, or the rank's own index
    const bool all = b.outs[0].shape().has(tensor::kPart) || b.ins[0].shape().has(tensor::kPart);
    for (int member : all ? p.mesh.group(rank, i.cuts.factors) : std::vector<int>{rank})
      b.indices.push_back({i.cuts.dim, mesh::local_index(p.mesh, i.cuts.dim, i.cuts.length, i.cuts.factors, member,
                                                         i.cuts.halo ? &*i.cuts.halo : nullptr)});
    return;
  }
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(i.attributes);
  const auto add = [&](BufferId id, bool windowed) {
    for (const tensor::Dim& d : p.buffer(id).type.shape) {
      const bool by_input = windowed && std::ranges::find(windows, d.name, &tensor::DimWindow::dim) != windows.end();
      const bool known = std::ranges::any_of(
          b.indices, [&](const kernels::NamedIndex& n) { return n.dim == d.name && n.windowed == by_input; });
      if (!known) b.indices.push_back({d.name, p.index(id, d.name, rank), by_input});
    }
  };
  for (size_t k = 0; k < i.ins.size(); ++k) add(i.ins[k], (i.windowed.ins >> k) & 1u);
  for (size_t k = 0; k < i.outs.size(); ++k) add(i.outs[k], (i.windowed.outs >> k) & 1u);
  for (size_t d = 0; d < b.indices.size(); ++d)
    if (!body.position_dim.empty() && b.indices[d].dim == body.position_dim) {
      b.seq = static_cast<int>(d);
      b.seq_begin = b.indices[d].index.segments().front().global;
    }
}

// The places in the operands of the weights that an operation on a bucket updates.
std::vector<kernels::StatePlace> places_of(const program::Program& p, const Instruction& i, int rank) {
  std::vector<kernels::StatePlace> places;
  if (!i.attributes.has("states")) return places;
  const int64_t from = p.index(i.ins[0], tensor::kFlat, rank).segments().front().global;
  for (const std::string& name : tensor::words(i.attributes.text("states"))) {
    const program::StateInfo* s = p.state(name);
    base::require(s != nullptr && s->in_bucket, "bind", "{} of \"{}\", which is in no bucket", i.kernel, name);
    kernels::StatePlace place = {.key = kernels::name_hash(name), .first = s->first - from, .index = {}};
    for (const tensor::Dim& d : s->whole.shape)
      place.index.push_back(mesh::local_index(p.mesh, d.name, d.size, s->layout.of(d.name), rank));
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

std::byte* address_of(const program::Program& p, BufferId id, const program::CallList& list, int slot, int rank,
                      std::byte* memory) {
  const BufferId root = p.root(id);
  const program::Buffer& of = p.buffer(root);
  base::require(of.region != program::Region::file, "bind", "\"{}\" is in the file", of.name);
  const int64_t begin = of.region == program::Region::state ? 0 : p.state_bytes;
  return memory + begin + p.offset(root, list, slot) + p.begin(id, rank);
}

BoundKernel bind_kernel(const program::Program& p, const program::Body& body, const Instruction& i,
                        const kernels::KernelSet& kernels, int rank,
                        const std::function<std::byte*(BufferId)>& address) {
  BoundKernel b;
  const auto view_of = [&](BufferId id) { return View{address(id), p.buffer(id).type}; };
  for (BufferId id : i.ins) b.ins.push_back(view_of(id));
  for (BufferId id : i.outs) b.outs.push_back(view_of(id));
  b.kernel = &kernels.find(i.kernel);
  bind_indices(p, body, i, rank, b);
  const auto by_position = [&](const tensor::OperandList& names, uint32_t absent, std::vector<View>& views) {
    base::require(names.allows(views.size(), absent), "bind", "{} of {} operands, which takes {}", i.kernel,
                  views.size(), to_string(names));
    views = tensor::by_position(std::span<const View>(views), absent, View());
  };
  by_position(b.kernel->ins, i.absent.ins, b.ins);
  by_position(b.kernel->outs, i.absent.outs, b.outs);
  b.accumulate = tensor::bits_by_position(i.accumulate, i.absent.outs);
  b.places = places_of(p, i, rank);
  if (i.workspace != program::kNoBuffer) b.workspace = bytes_of(view_of(i.workspace));
  return b;
}

bool touch(std::span<const View> views, std::span<const std::byte> bytes) {
  return std::ranges::any_of(views, [&](const View& v) { return base::overlap(bytes_of(v), bytes); });
}

bool touch(std::span<const View> these, std::span<const View> those) {
  return std::ranges::any_of(those, [&](const View& v) { return touch(these, bytes_of(v)); });
}

}  // namespace kintsugi::bind

#include "kintsugi/program/program.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {

std::string_view name_of(Region region) {
  switch (region) {
    case Region::state:
      return "state";
    case Region::arena:
      return "arena";
    case Region::file:
      return "file";
  }
  throw base::InternalError("program", "no region {}", static_cast<int>(region));
}

std::string_view name_of(Work work) {
  switch (work) {
    case Work::forward:
      return "forward";
    case Work::backward:
      return "backward";
    case Work::weight:
      return "weight";
    case Work::reduce:
      return "reduce";
    case Work::update:
      return "update";
    case Work::evaluate:
      return "evaluate";
    case Work::sample:
      return "sample";
    case Work::tasks:
      return "tasks";
    case Work::prefill:
      return "prefill";
    case Work::prefill_quarter:
      return "prefill_quarter";
    case Work::score:
      return "score";
    case Work::decode:
      return "decode";
    case Work::decode_half:
      return "decode_half";
    case Work::decode_quarter:
      return "decode_quarter";
    case Work::decode_one:
      return "decode_one";
  }
  throw base::InternalError("program", "no work {}", static_cast<int>(work));
}

bool generates(Work work) {
  return work >= Work::prefill;
}

std::string_view name_of(Step step) {
  switch (step) {
    case Step::train:
      return "train";
    case Step::evaluate:
      return "evaluate";
    case Step::sample:
      return "sample";
    case Step::tasks:
      return "tasks";
    case Step::prefill:
      return "prefill";
    case Step::prefill_quarter:
      return "prefill_quarter";
    case Step::score:
      return "score";
    case Step::decode:
      return "decode";
    case Step::decode_half:
      return "decode_half";
    case Step::decode_quarter:
      return "decode_quarter";
    case Step::decode_one:
      return "decode_one";
  }
  throw base::InternalError("program", "no step {}", static_cast<int>(step));
}

std::string_view name_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::in_streams:
      return "in streams";
    case Exchange::through_host:
      return "through the host";
  }
  throw base::InternalError("program", "no exchange {}", static_cast<int>(exchange));
}

const CallList* Program::find(Step step) const {
  for (const CallList& l : lists)
    if (l.step == step) return &l;
  return nullptr;
}

const CallList& Program::list(Step step) const {
  const CallList* found = find(step);
  base::require(found != nullptr, "program", "no list of calls \"{}\"", name_of(step));
  return *found;
}

const StateInfo* Program::state(std::string_view name) const {
  for (const StateInfo& s : states)
    if (s.name == name) return &s;
  return nullptr;
}

BufferId Program::root(BufferId id) const {
  while (buffer(id).same_as != kNoBuffer) id = buffer(id).same_as;
  return id;
}

int64_t Program::begin(BufferId id, int rank) const {
  int64_t at = 0;
  for (; buffer(id).same_as != kNoBuffer; id = buffer(id).same_as)
    at += buffer(id).shift + mesh.position(rank, buffer(id).part) * buffer(id).bytes();
  return at;
}

bool Program::is_part(BufferId id) const {
  for (; buffer(id).same_as != kNoBuffer; id = buffer(id).same_as)
    if (!buffer(id).part.empty()) return true;
  return false;
}

bool Program::overlap(BufferId a, BufferId b) const {
  if (root(a) != root(b)) return false;
  if (is_part(a) || is_part(b)) return true;
  const int64_t a_begin = begin(a, 0), b_begin = begin(b, 0);
  return a_begin < b_begin + buffer(b).bytes() && b_begin < a_begin + buffer(a).bytes();
}

int64_t Program::offset(BufferId id, const CallList& list, int slot) const {
  const Buffer& b = buffer(id);
  if (b.segment < 0) return b.offset;
  return b.offset + list.slots[static_cast<size_t>(slot)][static_cast<size_t>(b.segment)];
}

int64_t Program::in_file(BufferId id, int64_t micro_batch, int rank) const {
  const Buffer& b = buffer(root(id));
  const int64_t place = b.copies > 0 ? std::max<int64_t>(0, micro_batch) % b.copies : 0;
  return b.offset + place * whole_pages(b.bytes()) + begin(id, rank);
}

tensor::DimIndex Program::index(BufferId id, std::string_view dim, int rank) const {
  const Buffer& b = buffer(id);
  const int i = b.whole.find(dim);
  if (i < 0) return tensor::DimIndex(b.type.shape.size(dim));
  if (!b.ring.empty()) {
    const std::vector<int> group = mesh.group(rank, b.ring);
    const int64_t place = mesh.position(rank, b.ring) + b.turn;
    // Only the dims that travel along the ring have the other rank's index.
    const std::vector<mesh::Factor>& along = b.layout.of(dim);
    if (!along.empty() && std::find(b.ring.begin(), b.ring.end(), along.front()) != b.ring.end())
      rank = group[static_cast<size_t>(place) % group.size()];
  }
  return mesh::local_index(mesh, dim, b.whole[static_cast<size_t>(i)].size, b.layout.of(dim), rank, b.layout.halo(dim));
}

double Program::flops(Step step) const {
  double n = 0;
  for_each_instruction(*this, list(step), [&](const VisitedCall&, size_t, const Instruction& i) { n += i.cost.flops; });
  return n;
}

}  // namespace kintsugi::program

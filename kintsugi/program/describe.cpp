#include "kintsugi/program/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kintsugi::program {

bool reduces(const Instruction& i) {
  return i.kernel == "all_reduce" || i.kernel == "reduce_scatter";
}

bool is_message(const Instruction& i) {
  return i.kernel == "send" || i.kernel == "receive";
}

bool is_copy(const Instruction& i) {
  return i.kernel == "fetch" || i.kernel == "store";
}

BufferId value_of(const Instruction& i) {
  if (!i.ins.empty()) return i.ins[0];
  return i.outs.empty() ? kNoBuffer : i.outs[0];
}

std::string list_of(const std::vector<int>& ranks) {
  if (ranks.size() <= 8) return fmt::format("{}", fmt::join(ranks, " "));
  return fmt::format("{} {} {} ... {} ({} ranks)", ranks[0], ranks[1], ranks[2], ranks.back(), ranks.size());
}

std::string describe(const Program& p, const Instruction& i, int rank) {
  const BufferId value = value_of(i);
  std::string text = i.kernel;
  if (reduces(i)) text += " " + i.reduction;
  if (value != kNoBuffer) {
    const Buffer& b = p.buffer(value);
    text += fmt::format(" of #{} \"{}\"", value, b.name);
    if (!i.ins.empty() && !i.outs.empty()) text += fmt::format(" into #{}", i.outs[0]);
    text += fmt::format(", {} bytes of {},", b.bytes(), tensor::name_of(b.type.dtype));
  }
  if (is_copy(i)) return text + (i.kernel == "fetch" ? " from the file" : " to the file");
  text += fmt::format(" over {}", i.group.empty() ? "nothing" : p.mesh.name_of(i.group));
  const std::vector<int> ranks = p.mesh.group(rank, i.group);
  if (!is_message(i)) return text + ", ranks " + list_of(ranks);
  if (i.peer < 0 || i.peer >= static_cast<int64_t>(ranks.size())) return text + fmt::format(", place {}", i.peer);
  return text + fmt::format(", {} rank {}", i.kernel == "send" ? "to" : "from", ranks[static_cast<size_t>(i.peer)]);
}

std::string describe(const Program& p, const Call& call) {
  const std::string& body = p.bodies[static_cast<size_t>(call.body)].name;
  return call.micro_batch < 0 ? body : fmt::format("{}, micro-batch {}", body, call.micro_batch);
}

}  // namespace kintsugi::program

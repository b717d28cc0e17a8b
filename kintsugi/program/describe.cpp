#include "kintsugi/program/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kintsugi::program {

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
  std::string text(name_of(i));
  if (reduces(i)) text += fmt::format(" {}", name_of(i.reduction));
  if (value != kNoBuffer) {
    const Buffer& b = p.buffer(value);
    text += fmt::format(" of #{} \"{}\"", value, b.name);
    if (!i.ins.empty() && !i.outs.empty()) text += fmt::format(" into #{}", i.outs[0]);
    text += fmt::format(", {} bytes of {},", b.bytes(), tensor::name_of(b.type.dtype));
  }
  if (is_copy(i)) return text + (i.copy == Copy::fetch ? " from the file" : " to the file");
  text += fmt::format(" over {}", i.group.empty() ? "nothing" : p.mesh.name_of(i.group));
  const std::vector<int> ranks = p.mesh.group(rank, i.group);
  if (!is_message(i)) return text + ", ranks " + list_of(ranks);
  if (i.peer < 0 || i.peer >= static_cast<int64_t>(ranks.size())) return text + fmt::format(", place {}", i.peer);
  return text + fmt::format(", {} rank {}", i.collective == Collective::send ? "to" : "from",
                            ranks[static_cast<size_t>(i.peer)]);
}

std::string describe(const Program& p, const Call& call) {
  const std::string& body = p.bodies[static_cast<size_t>(call.body)].name;
  return call.micro_batch < 0 ? body : fmt::format("{}, micro-batch {}", body, call.micro_batch);
}

}  // namespace kintsugi::program

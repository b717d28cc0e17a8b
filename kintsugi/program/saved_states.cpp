#include "kintsugi/program/saved_states.h"

#include <set>
#include <string_view>

namespace kintsugi::program {

std::vector<const StateInfo*> saved_states(const Program& p) {
  std::set<std::string_view> with_master;
  for (const StateInfo& s : p.states)
    if (s.is_master()) with_master.insert(s.weight);
  std::vector<const StateInfo*> list;
  for (const StateInfo& s : p.states)
    if (s.saved && !s.replica && !with_master.contains(s.name)) list.push_back(&s);
  return list;
}

int64_t checkpoint_bytes(std::span<const Program> stages) {
  int64_t bytes = 0;
  for (const Program& p : stages)
    for (const StateInfo* s : saved_states(p))
      bytes += s->whole.shape.elements() * size_of(p.buffer(s->buffer).type.dtype);
  return bytes;
}

}  // namespace kintsugi::program

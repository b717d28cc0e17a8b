#include "kintsugi/program/program.h"

#include "kintsugi/base/error.h"

namespace kintsugi::program {

std::string_view name_of(Region region) {
  return region == Region::state ? "state" : "arena";
}

const CallList& Program::list(std::string_view name) const {
  for (const CallList& l : lists)
    if (l.name == name) return l;
  throw base::InternalError("program", "no list of calls \"{}\"", name);
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

double Program::flops(std::string_view name) const {
  double n = 0;
  for (const Call& call : list(name).calls)
    for (const Instruction& i : bodies[static_cast<size_t>(call.body)].instructions) n += i.flops;
  return n;
}

}  // namespace kintsugi::program

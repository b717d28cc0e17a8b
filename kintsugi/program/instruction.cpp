#include "kintsugi/program/instruction.h"

#include "kintsugi/base/error.h"

namespace kintsugi::program {

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::shift:
      return "shift";
    case Collective::halo:
      return "halo";
    case Collective::send:
      return "send";
    case Collective::receive:
      return "receive";
  }
  throw base::InternalError("program", "no collective {}", static_cast<int>(collective));
}

std::string_view name_of(Copy copy) {
  switch (copy) {
    case Copy::fetch:
      return "fetch";
    case Copy::store:
      return "store";
  }
  throw base::InternalError("program", "no copy {}", static_cast<int>(copy));
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::max:
      return "max";
  }
  throw base::InternalError("program", "no reduction {}", static_cast<int>(reduction));
}

namespace {

// The kind that this instruction starts, or waits for.
Kind started(const Instruction& i) {
  return i.kind == Kind::wait ? i.awaited : i.kind;
}

}  // namespace

bool is_message(const Instruction& i) {
  return started(i) == Kind::collective && (i.collective == Collective::send || i.collective == Collective::receive);
}

bool reduces(const Instruction& i) {
  return started(i) == Kind::collective &&
         (i.collective == Collective::all_reduce || i.collective == Collective::reduce_scatter);
}

bool is_copy(const Instruction& i) {
  return started(i) == Kind::copy;
}

std::string_view name_of(const Instruction& i) {
  switch (started(i)) {
    case Kind::compute:
      return i.kernel;
    case Kind::collective:
      return name_of(i.collective);
    case Kind::copy:
      return name_of(i.copy);
    case Kind::wait:
      break;
  }
  throw base::InternalError("program", "a wait for a wait");
}

Instruction wait_for(Instruction i) {
  i.awaited = i.kind;
  i.kind = Kind::wait;
  i.cost = {};
  return i;
}

}  // namespace kintsugi::program

#include "kintsugi/lower/partition/split.h"

#include "kintsugi/base/error.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::kNoBuffer;
using program::Program;

namespace {

// Copies the part of one stage.
class StagePart {
 public:
  StagePart(const Program& all, int stage) : all_(all), stage_(stage), now_(all.buffers.size(), kNoBuffer) {
    made_.mesh = all.mesh;
    made_.stage = stage;
    made_.on_device = all.on_device;
  }

  Program run() {
    for (const Body& body : all_.bodies)
      if (body.stage == stage_) made_.bodies.push_back(copy(body));
    for (program::StateInfo s : all_.states) {
      if (now_[static_cast<size_t>(s.buffer)] == kNoBuffer) continue;  // on another stage
      s.buffer = copy(s.buffer);
      if (s.reduced != kNoBuffer) s.reduced = copy(s.reduced);
      made_.states.push_back(std::move(s));
    }
    return std::move(made_);
  }

 private:
  BufferId copy(BufferId id) {
    BufferId& now = now_[static_cast<size_t>(id)];
    if (now != kNoBuffer) return now;
    program::Buffer b = all_.buffer(id);
    if (b.same_as != kNoBuffer) b.same_as = copy(b.same_as);
    made_.buffers.push_back(std::move(b));
    return now = static_cast<BufferId>(made_.buffers.size()) - 1;
  }

  Body copy(const Body& body) {
    Body b = body;
    if (b.work == program::Work::update) b.name = name_of(b.work);
    for (Instruction& i : b.instructions) {
      for (BufferId& id : i.ins) id = copy(id);
      for (BufferId& id : i.outs) id = copy(id);
    }
    return b;
  }

  const Program& all_;
  int stage_;
  std::vector<BufferId> now_;  // [buffer of all stages]: its new id
  Program made_;
};

}  // namespace

std::vector<Program> split_by_stage(Program all, int stages) {
  std::vector<Program> list;
  if (stages == 1) {
    list.push_back(std::move(all));
    return list;
  }
  for (int stage = 0; stage < stages; ++stage) list.push_back(StagePart(all, stage).run());
  return list;
}

}  // namespace kintsugi::lower

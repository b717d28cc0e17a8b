#include "kintsugi/profile/blocks.h"

#include <algorithm>
#include <map>

#include "kintsugi/program/walk.h"

namespace kintsugi::profile {

using program::Instruction;
using program::Kind;
using program::Program;

namespace {

constexpr int64_t kParts = 2000;     // per step: shorter intervals are merged
constexpr size_t kMostBlocks = 512;  // per queue

bool same_kind(const Block& a, const Block& b) {
  return a.work == b.work && a.chunk == b.chunk && a.micro_batch == b.micro_batch && a.waited_for == b.waited_for;
}

// Appends a block, or extends the last.
void append(QueueBlocks& queue, const Block& block, double gap) {
  std::vector<Block>& blocks = queue.blocks;
  if (!blocks.empty() && same_kind(blocks.back(), block) && block.begin - blocks.back().end <= gap)
    blocks.back().end = std::max(blocks.back().end, block.end);
  else if (blocks.size() < kMostBlocks)
    blocks.push_back(block);
  else
    ++queue.left_out;
}

class Blocks {
 public:
  Blocks(const Program& p, const StepTimes& times) : p_(p), times_(times), short_(times.whole.length() / kParts) {
    queues_.push_back({.queue = "compute"});
  }

  void add_inputs(const Interval& inputs) {
    if (inputs.length() > short_)
      append(queues_[0], {.work = "inputs", .begin = seconds(inputs.begin), .end = seconds(inputs.end)}, gap());
  }

  void add(const program::VisitedCall& call, const Instruction& i, const InstructionTimes& t, const Wait& wait) {
    Block work = {.work = std::string(name_of(call.body.work)),
                  .chunk = call.body.chunk,
                  .micro_batch = call.call.micro_batch,
                  .begin = seconds(t.begin),
                  .end = seconds(t.progressed)};
    if (wait.waited_for >= 0 && wait.until - t.begin > short_) {
      append(queues_[0],
             {.work = "waiting", .waited_for = wait.waited_for, .begin = work.begin, .end = seconds(wait.until)},
             gap());
      work.begin = seconds(wait.until);
    }
    const bool waits = i.kind == Kind::wait;
    if (waits && t.end - wait.until > short_) work.work = "transfer", work.micro_batch = -1, work.chunk = 0;
    append(queues_[0], work, gap());
    if (!waits || (program::is_message(i) && i.collective == program::Collective::send)) return;
    transfers_[program::is_copy(i) ? "file" : p_.mesh.name_of(i.group)].push_back(
        {.work = std::string(tensor::name_of(i.phase)), .begin = seconds(wait.last_came), .end = seconds(t.end)});
  }

  std::vector<QueueBlocks> take() {
    for (auto& [axes, blocks] : transfers_) {
      std::ranges::stable_sort(blocks, {}, &Block::begin);
      QueueBlocks& queue = queues_.emplace_back(QueueBlocks{.queue = axes});
      double end = 0;
      for (Block& block : blocks) {
        if (block.end <= end) continue;
        if (queue.blocks.empty() || !same_kind(queue.blocks.back(), block)) block.begin = std::max(block.begin, end);
        end = block.end;
        append(queue, block, gap());
      }
    }
    return std::move(queues_);
  }

 private:
  double seconds(int64_t time) const { return 1e-9 * static_cast<double>(time - times_.whole.begin); }
  double gap() const { return 1e-9 * static_cast<double>(short_); }

  const Program& p_;
  const StepTimes& times_;
  int64_t short_;
  std::vector<QueueBlocks> queues_;
  std::map<std::string, std::vector<Block>> transfers_;  // [axes]
};

}  // namespace

std::vector<QueueBlocks> blocks_of(const Program& p, const StepTimes& times, std::span<const Wait> waits) {
  Blocks blocks(p, times);
  size_t n = 0;
  program::for_each_instruction(p, p.list(times.step), [&](const auto& call, size_t at, const Instruction& i) {
    if (at == 0) blocks.add_inputs(times.inputs[call.position]);
    blocks.add(call, i, times.instructions[n], waits[n]);
    ++n;
  });
  return blocks.take();
}

}  // namespace kintsugi::profile

#include "kintsugi/report/timeline.h"

#include <algorithm>
#include <map>

#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/report/measured_pictures.h"

namespace kintsugi::report {
namespace {

using profile::Block;
using profile::RankProfile;
using simulate::Span;

// A stage waits between kernels.
void add_waits(std::vector<Block>& blocks, double end) {
  std::ranges::stable_sort(blocks, {}, &Block::begin);
  std::vector<Block> waits;
  double at = 0;
  const auto wait_until = [&](double begin) {
    if (begin > at) waits.push_back({.work = "waiting", .begin = at, .end = begin});
  };
  for (const Block& block : blocks) {
    wait_until(block.begin);
    at = std::max(at, block.end);
  }
  wait_until(end);
  blocks.insert(blocks.end(), waits.begin(), waits.end());
}

Block kernels_of(const program::Program& p, const program::Call& call, const Span& span) {
  const program::Body& body = p.bodies[static_cast<size_t>(call.body)];
  return {.work = std::string(name_of(body.work)),
          .chunk = body.chunk,
          .micro_batch = call.micro_batch,
          .begin = span.begin,
          .end = span.end};
}

// Merges blocks that are at most `gap` apart.
std::vector<Block> joined(std::vector<Block> blocks, double gap) {
  std::ranges::stable_sort(blocks, {}, &Block::begin);
  std::vector<Block> list;
  for (const Block& block : blocks)
    if (list.empty() || block.begin > list.back().end + gap)
      list.push_back(block);
    else
      list.back().end = std::max(list.back().end, block.end);
  return list;
}

RankProfile row_of(const program::Program& p, program::Step step, const simulate::Simulated& simulated) {
  constexpr double kGap = 1e-3;                 // of the step: invisible below
  std::map<size_t, Block> calls;                // including their waits
  std::map<int, std::vector<Block>> transfers;  // by axis
  for (const Span& span : simulated.spans) {
    if (span.axis >= 0 && (span.stage == p.stage || span.to == p.stage))
      transfers[span.axis].push_back({.work = "simulated", .begin = span.begin, .end = span.end});
    if (span.axis >= 0 || span.stage != p.stage) continue;
    const auto [call, first] = calls.try_emplace(span.call, kernels_of(p, p.list(step).calls[span.call], span));
    if (!first) call->second.end = std::max(call->second.end, span.end);
  }
  std::vector<Block> kernels;
  for (const auto& [number, block] : calls) kernels.push_back(block);
  add_waits(kernels, simulated.seconds);
  RankProfile row = {.rank = p.stage, .stage = p.stage, .seconds = simulated.seconds};
  row.queues.push_back({.queue = "compute", .blocks = std::move(kernels)});
  for (auto& [axis, blocks] : transfers)
    row.queues.push_back({.queue = simulated.axes[static_cast<size_t>(axis)],
                          .blocks = joined(std::move(blocks), kGap * simulated.seconds)});
  return row;
}

}  // namespace

std::string timeline(const std::vector<program::Program>& stages, program::Step step,
                     const simulate::Simulated& simulated) {
  profile::StepProfile profile = {.ranks = static_cast<int>(stages.size())};
  for (const program::Program& p : stages) profile.of_ranks.push_back(row_of(p, step, simulated));
  return run_schedule_picture(profile, "stage");
}

}  // namespace kintsugi::report

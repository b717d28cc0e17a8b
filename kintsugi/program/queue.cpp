#include "kintsugi/program/queue.h"

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::program {
namespace {

Queue queue_of(Kind kind, const Instruction& i) {
  switch (kind) {
    case Kind::compute:
    case Kind::wait:
      return {};
    case Kind::copy:
      return {.kind = QueueKind::copy};
    case Kind::collective:
      return {.kind = QueueKind::channel, .group = i.group, .channel = i.channel, .peer = i.peer};
  }
  throw base::InternalError("program", "no kind of instruction {}", static_cast<int>(kind));
}

}  // namespace

Queue queue_of(const Instruction& i) {
  return queue_of(i.kind, i);
}

Queue awaited_queue(const Instruction& i) {
  base::require(i.kind == Kind::wait, "program", "{} waits for nothing", name_of(i));
  return queue_of(i.awaited, i);
}

std::vector<int> members(const mesh::Mesh& mesh, const Queue& channel, int rank) {
  std::vector<int> group = mesh.group(rank, channel.group);
  if (channel.peer < 0) return group;
  group = {rank, group[static_cast<size_t>(channel.peer)]};
  std::sort(group.begin(), group.end());
  return group;
}

Queues queues_of(const Program& p) {
  std::set<Queue> found;
  found.insert(Queue{});
  for (const Body& body : p.bodies)
    for (const Instruction& i : body.instructions) found.insert(queue_of(i));
  Queues queues = {.all = {found.begin(), found.end()}, .of = {}, .awaited = {}};
  const auto position = [&](const Queue& queue) {
    const auto at = std::lower_bound(queues.all.begin(), queues.all.end(), queue);
    base::require(at != queues.all.end() && *at == queue, "program", "a wait for a queue that does nothing");
    return static_cast<int>(at - queues.all.begin());
  };
  for (const Body& body : p.bodies) {
    std::vector<int>&of = queues.of.emplace_back(), &awaited = queues.awaited.emplace_back();
    for (const Instruction& i : body.instructions) {
      of.push_back(position(queue_of(i)));
      awaited.push_back(i.kind == Kind::wait ? position(awaited_queue(i)) : -1);
    }
  }
  return queues;
}

}  // namespace kintsugi::program

// One launch order on all ranks: in layouts that train on a device, communicators never wait for each other; and if an
// operation of one rank is moved, verify_ranks rejects exactly the programs that would deadlock on devices that start
// operations in enqueue order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_ranks.h"
#include "kintsugi/program/walk.h"
#include "tests/device_layouts.h"

namespace kintsugi::tests::launch_order_test {
namespace {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;

// The operations that a rank's device starts, and its waits for messages.
struct Item {
  std::tuple<std::vector<int>, std::string> communicator;  // ranks, and the channel of messages
  std::string what;                                        // on which all members agree
  bool message = false, waits = false;
  std::pair<int, int64_t> event;  // and micro-batch
};

std::vector<Item> items_of(const Program& p, program::Step step, int rank) {
  std::vector<Item> items;
  for_each_instruction(p, p.list(step), [&](const auto& call, size_t, const Instruction& i) {
    const bool message = program::is_message(i);
    if (i.kind != Kind::collective && !(i.kind == Kind::wait && message)) return;
    program::Instruction start = i;
    start.kind = Kind::collective;
    const program::Buffer& value = p.buffer(program::value_of(i));
    items.push_back({{members(p.mesh, program::queue_of(start), rank), i.channel},
                     fmt::format("{} {} {} {}", message ? "message" : fmt::format("{} #{}", name_of(i), i.outs[0]),
                                 value.name, value.bytes(), call.call.micro_batch),
                     message,
                     i.kind == Kind::wait,
                     {i.event, call.call.micro_batch}});
  });
  return items;
}

// Whether devices that start operations in this order complete all of them.
bool ends(const std::vector<const Program*>& programs, program::Step step) {
  struct Operation {
    std::map<int, std::string> started;  // by rank: what
  };
  std::map<std::pair<std::tuple<std::vector<int>, std::string>, size_t>, Operation> all;
  struct Rank {
    std::vector<Item> items;
    size_t next = 0;
    std::map<std::tuple<std::vector<int>, std::string>, size_t> started;  // of each communicator
    std::map<std::pair<int, int64_t>, size_t> number;                     // of a message in its communicator
    bool holds = false;                                                   // a collective that has not ended
  };
  std::vector<Rank> ranks;
  for (size_t r = 0; r < programs.size(); ++r)
    ranks.push_back({items_of(*programs[r], step, static_cast<int>(r)), 0, {}, {}, false});
  const auto ended = [&](const Item& i, size_t number) {
    const Operation& o = all[{i.communicator, number}];
    if (o.started.size() < std::get<0>(i.communicator).size()) return false;
    for (const auto& [rank, what] : o.started)
      if (what != o.started.begin()->second) return false;
    return true;
  };
  const auto moves = [&](int r) {
    Rank& rank = ranks[static_cast<size_t>(r)];
    if (rank.next == rank.items.size()) return false;
    const Item& i = rank.items[rank.next];
    size_t& count = rank.started[i.communicator];
    if (i.waits && !ended(i, rank.number.at(i.event))) return false;
    if (!i.waits && !rank.holds) {
      if (count > 0 && !ended(i, count - 1)) return false;
      rank.number[i.event] = count;
      all[{i.communicator, count++}].started[r] = i.what;
      rank.holds = !i.message;
    }
    if (rank.holds && !ended(i, count - 1)) return false;
    rank.holds = false;
    ++rank.next;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r)
      while (moves(r)) moved = true;
  }
  for (const Rank& rank : ranks)
    if (rank.next < rank.items.size()) return false;
  return true;
}

bool all_end(const std::vector<const Program*>& programs) {
  for (const program::CallList& list : programs[0]->lists)
    if (!ends(programs, list.step)) return false;
  return true;
}

class LaunchOrder : public testing::TestWithParam<DeviceLayout> {};

// Moves an operation of one rank to another place in its body.
TEST_P(LaunchOrder, IsOneOnAllRanks) {
  const config::Settings s = settings_of(GetParam());
  const std::vector<Program> stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  std::vector<Program> copies;  // so that each rank is run
  std::vector<const Program*> programs;
  for (int rank = 0; rank < stages[0].mesh.ranks(); ++rank)
    copies.push_back(stages[static_cast<size_t>(stages[0].mesh.stage_of(rank))]);
  for (const Program& p : copies) programs.push_back(&p);
  const auto error_of_all = [&] { return error_of([&] { program::verify_ranks(programs); }); };
  ASSERT_EQ(error_of_all(), "no error");
  EXPECT_TRUE(all_end(programs));

  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int refused = 0, passed = 0;
  for (int trial = 0; trial < 400 && refused + passed < 24; ++trial) {
    const size_t rank = below(copies.size());
    Program p = copies[rank];
    Body& body = p.bodies[below(p.bodies.size())];
    std::vector<Instruction>& list = body.instructions;
    std::vector<size_t> at;
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].kind != Kind::compute) at.push_back(i);
    if (at.size() < 2) continue;
    const size_t from = at[below(at.size())], to = at[below(at.size())];
    const Instruction moved = list[from];
    if (from == to || moved.kind != Kind::collective) continue;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(from));
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(to), moved);
    if (error_of([&] { program::verify(p); }) != "no error") continue;
    programs[rank] = &p;
    const std::string text = error_of_all();
    // An error of a single rank is a separate case: a value that is read while it is written.
    if (text.find(" waits for rank ") != std::string::npos || text == "no error") {
      EXPECT_EQ(text == "no error", all_end(programs)) << body.name << " " << from << " to " << to << ": " << text;
      ++(text == "no error" ? passed : refused);
      // The error names both instructions.
      if (text != "no error" && text.find("has ended") == std::string::npos) {
        EXPECT_NE(text.find(" at instruction "), text.rfind(" at instruction ")) << text;
      }
    }
    programs[rank] = &copies[rank];
  }
  fmt::print("{} refused, {} pass\n", refused, passed);
  EXPECT_GT(refused + passed, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, LaunchOrder, testing::ValuesIn(device_layouts()));

}  // namespace
}  // namespace kintsugi::tests::launch_order_test

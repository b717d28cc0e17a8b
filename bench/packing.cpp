// How far the packing of buffers is from the lower bound, and how long it takes: the programs of examples/ and of
// larger models, on one rank and in layouts, their evaluation, and generation. Beside it the greedy packing by size.
// What a program keeps in segments, since several micro-batches are under way, is packed here with an offset of its own
// for each micro-batch, and shown beside what the program plans; a second table says how that was found: the count of
// ticks, the placement, and the bytes of temporaries in holes of segments.
//
//   packing ["data=2 zero=3" ...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/lower/memory/pack.h"
#include "kintsugi/lower/memory/slots.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "tests/layouts.h"

namespace {

using namespace kintsugi;
using lower::Item;
using program::BufferId;

config::Settings base_of(const std::string& family, int64_t layers, int64_t embed, int64_t heads, int64_t kv_heads) {
  config::Settings s;
  s.model = models::defaults_of(family);
  s.model.layers = layers;
  s.model.embed = embed;
  s.model.heads = heads;
  s.model.kv_heads = kv_heads;
  s.model.ffn = 4 * embed;
  s.parallel.threads = 1;
  return s;
}

config::Settings model(const std::string& name) {
  config::Settings s;
  if (name == "examples/quick") {
    s = base_of("llama", 4, 192, 6, 6);
    s.model.ffn = 512;
    s.model.vocab = 4096;
    s.train.global_batch = s.train.micro_batch = 8;
    s.train.sequence = 256;
  } else if (name == "examples/shakespeare_char") {
    s = base_of("gpt", 4, 128, 4, 4);
    s.model.vocab = 65;
    config::set_biases(s.model, false);
    s.model.activation = "gelu";
    s.train.global_batch = s.train.micro_batch = 12;
    s.train.sequence = 64;
  } else if (name == "gpt of 100 million") {
    s = base_of("gpt", 12, 768, 12, 12);
    s.model.vocab = 20000;
    s.train.global_batch = s.train.micro_batch = 16;
    s.train.sequence = 256;
  } else if (name == "gpt of 175 billion") {
    s = base_of("gpt", 96, 12288, 96, 96);
    s.model.vocab = 51200;
    s.train.dtype = "bf16";
    s.train.global_batch = 64;
    s.train.micro_batch = 1;
    s.train.sequence = 2048;
  } else {
    s = base_of("llama", 32, 1024, 16, 4);
    s.model.ffn = 2816;
    s.model.vocab = 32000;
    s.train.dtype = "bf16";
    s.train.global_batch = s.train.micro_batch = 4;
    s.train.sequence = 1024;
  }
  s.model.context = s.train.sequence;
  return s;
}

// Of the arena, from the first to the last use. With consecutive micro-batches, the last one suffices: it has
// everything that others have, in the same buffers.
std::vector<Item> items_of(const program::Program& p, const program::CallList& list) {
  const bool several = lower::interleaves(list);
  int64_t last = 0;
  for (const program::Call& call : list.calls) last = std::max(last, call.micro_batch);
  std::map<std::pair<BufferId, int64_t>, lower::Interval> live;  // by root and micro-batch
  std::vector<std::pair<BufferId, int64_t>> outputs;
  int at = 0;
  for (const program::Call& call : list.calls) {
    if (!several && call.micro_batch >= 0 && call.micro_batch != last) continue;
    const int64_t m = call.micro_batch < 0 ? last : call.micro_batch;
    const auto touch = [&](BufferId id) {
      if (id == program::kNoBuffer) return;
      const BufferId root = p.root(id);
      const program::Buffer& b = p.buffer(root);
      if (b.region != program::Region::arena) return;
      const int first = b.input.empty() || several ? at : 0;
      live.try_emplace({root, m}, lower::Interval{first, at}).first->second.end = at;
      if (!b.output.empty()) outputs.emplace_back(root, m);
    };
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
      for (BufferId b : i.ins) touch(b);
      for (BufferId b : i.outs) touch(b);
      touch(i.workspace);
      ++at;
    }
  }
  for (const auto& key : outputs) live[key].end = at;
  std::vector<Item> items;
  for (const auto& [key, interval] : live) items.push_back({p.aligned(p.buffer(key.first).bytes()), {interval}});
  return items;
}

// Largest first, each at the lowest offset that is free while it is live.
int64_t by_size(const std::vector<Item>& items) {
  std::vector<size_t> order(items.size()), placed;  // placed: by offset
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return items[a].bytes > items[b].bytes; });
  std::vector<int64_t> offsets(items.size(), 0);
  int64_t top = 0;
  for (size_t i : order) {
    int64_t offset = 0;
    for (size_t j : placed) {
      const lower::Interval &a = items[i].live[0], &b = items[j].live[0];
      if (a.end < b.begin || b.end < a.begin) continue;
      if (offsets[j] >= offset + items[i].bytes) break;
      offset = std::max(offset, offsets[j] + items[j].bytes);
    }
    offsets[i] = offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), offset, [&](int64_t o, size_t j) { return o < offsets[j]; }), i);
    top = std::max(top, offset + items[i].bytes);
  }
  return top;
}

double above(int64_t bytes, int64_t bound) {
  return bound == 0 ? 0.0 : 100.0 * (static_cast<double>(bytes) / static_cast<double>(bound) - 1.0);
}

struct Worst {
  double greedy = 0, packed = 0, planned = 0, milliseconds = 0;
};

void show(const std::string& name, const program::Program& p, Worst& worst) {
  for (const program::CallList& list : p.lists) {
    const std::vector<Item> items = items_of(p, list);
    const auto start = std::chrono::steady_clock::now();
    const lower::Packing packing = lower::pack(items);
    const double ms = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double greedy = above(by_size(items), packing.lower_bound),
                 packed = above(packing.bytes, packing.lower_bound),
                 planned = above(list.arena_bytes, packing.lower_bound);
    fmt::print("{:64} {:8} {:6} {:10.1f} {:8.2f} {:8.2f} {:8.2f} {:8.1f}\n", name, name_of(list.step), items.size(),
               static_cast<double>(packing.lower_bound) / (1 << 20), greedy, packed, planned, ms);
    std::fflush(stdout);
    worst = {std::max(worst.greedy, greedy), std::max(worst.packed, packed), std::max(worst.planned, planned),
             std::max(worst.milliseconds, ms)};
  }
}

// How the slots of each list with several micro-batches in flight were planned.
void show_slots(const std::string& name, const program::Program& p) {
  for (const program::CallList& list : p.lists) {
    if (!lower::interleaves(list)) continue;
    const lower::ListLiveness liveness = lower::liveness_of(p, list);
    const auto start = std::chrono::steady_clock::now();
    const lower::SlotPlan plan = lower::best_slot_plan(p, list, liveness);
    const double ms = 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    int64_t in_holes = 0;
    for (const lower::Segment& s : plan.segments.list)
      for (BufferId b : s.in_holes) in_holes += p.aligned(p.buffer(b).bytes());
    fmt::print("{:64} {:5} {:6} {:8} {:10} {:10.1f} {:10.1f} {:8.2f} {:8.1f}\n", name, p.stage,
               plan.segments.grain.ticks, name_of(plan.placement.method), plan.placement.instances.size(),
               static_cast<double>(in_holes) / (1 << 20), static_cast<double>(list.arena_bytes) / (1 << 20),
               above(list.arena_bytes, list.lower_bound_bytes), ms);
    std::fflush(stdout);
  }
}

void show_pipelines() {
  fmt::print("\n{:64} {:>5} {:>6} {:8} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "pipeline", "stage", "ticks", "placed",
             "instances", "MiB holes", "MiB arena", "% above", "ms");
  const auto show = [](const std::string& name, config::Settings s, const std::string& layout) {
    tests::set_layout(s, layout);
    const auto kernels = compile::kernels_of(s);
    for (const program::Program& p : compile::compile({.settings = s, .kernels = *kernels}))
      show_slots(fmt::format("{} {}", name, layout), p);
  };
  for (const char* name : {"gpt of 100 million", "llama of 32 layers"})
    for (const char* layout : {"pipe=4 schedule=gpipe", "pipe=4", "pipe=4 schedule=interleaved chunks=2",
                               "pipe=4 schedule=zero_bubble", "pipe=4 schedule=zero_bubble recompute=selective"}) {
      config::Settings s = model(name);
      s.train.micro_batch = 1;
      s.train.global_batch = 16;
      show(name, s, layout);
    }
  const char* large = "gpt of 175 billion";
  show(large, model(large), "pipe=8 tensor=8 schedule=interleaved chunks=3");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> layouts(argv + 1, argv + argc);
  if (layouts.empty())
    layouts = {"",
               "data=2",
               "data=2 zero=1",
               "data=2 zero=2",
               "data=2 zero=3",
               "data=4 zero=3",
               "tensor=2",
               "tensor=2 sequence_parallel",
               "context=2 method=ring",
               "context=2 method=ulysses",
               "data=2 tensor=2 zero=3",
               "data=2 tensor=2 context=2 zero=3 sequence_parallel"};
  fmt::print("{:64} {:8} {:>6} {:>10} {:>26} {:>8}\n", "", "", "", "bound", "% above the bound", "");
  fmt::print("{:64} {:8} {:>6} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "program", "list", "items", "MiB", "by size",
             "packed", "planned", "ms");
  Worst worst;
  for (const char* name : {"examples/quick", "examples/shakespeare_char", "gpt of 100 million", "llama of 32 layers"}) {
    for (const std::string& layout : layouts) {
      config::Settings s = model(name);
      tests::set_layout(s, layout);
      s.train.micro_batch /= s.parallel.data;
      const auto kernels = compile::kernels_of(s);
      for (const program::Program& p : compile::compile({.settings = s, .kernels = *kernels}))
        show(fmt::format("{} {}", name, layout), p, worst);
    }
    config::Settings s = model(name);
    tests::set_layout(s, "");
    const auto kernels = compile::kernels_of(s);
    const models::Graphs g = models::build_generation(s, 1, 64, s.train.sequence);
    const lower::Source source = {
        .states = *g.states, .passes = {{program::Work::prefill, &*g.prefill}, {program::Work::decode, &*g.decode}}};
    const plan::Plan plan = compile::plan_of(s);
    for (const program::Program& p : lower::lower(source, {.plan = plan, .kernels = *kernels, .threads = 1}))
      show(fmt::format("{} generation", name), p, worst);
  }
  fmt::print("{:64} {:8} {:6} {:10} {:8.2f} {:8.2f} {:8.2f} {:8.1f}\n", "worst", "", "", "", worst.greedy, worst.packed,
             worst.planned, worst.milliseconds);
  if (argc == 1) show_pipelines();
}

// A step allocates nothing. This program replaces malloc with one that counts calls and records callers, so it is a
// separate executable, for glibc.
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/print.h"
#include "tests/small_model.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

struct Allocation {
  size_t bytes = 0;
  int depth = 0;
  std::array<void*, 16> stack = {};
};

std::atomic<bool> counting{false};
std::atomic<size_t> counted{0};
std::array<Allocation, 4096> allocations;
thread_local bool looking = false;  // backtrace may allocate itself

[[gnu::always_inline]] inline void note(size_t bytes) {
  if (!counting.load(std::memory_order_relaxed) || looking) return;
  looking = true;
  const size_t at = counted.fetch_add(1);
  if (at < allocations.size()) {
    allocations[at].bytes = bytes;
    allocations[at].depth = backtrace(allocations[at].stack.data(), static_cast<int>(allocations[at].stack.size()));
  }
  looking = false;
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note(bytes);
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, size_t alignment, size_t bytes) {
  note(bytes);
  *to = __libc_memalign(alignment, bytes);
  return *to ? 0 : ENOMEM;
}

}  // extern "C"

namespace kintsugi::tests::allocation_test {
namespace {

// The file name of the object that contains an address.
std::string object_of(void* address) {
  Dl_info info = {};
  if (!::dladdr(address, &info) || !info.dli_fname) return "?";
  const std::string_view name = info.dli_fname;
  return std::string(name.substr(name.rfind('/') + 1));
}

// Whether an address is in one of the functions above, which the linker exports to the libraries by name.
bool is_interposed(void* address) {
  Dl_info info = {};
  if (!::dladdr(address, &info) || !info.dli_sname) return false;
  for (const char* name : {"malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"})
    if (std::strcmp(info.dli_sname, name) == 0) return true;
  return false;
}

// The first caller outside of those and the C and C++ libraries. All of Kintsugi is in the executable.
std::string caller_of(const Allocation& a, const std::string& self) {
  for (int i = 0; i < a.depth; ++i) {
    void* const address = a.stack[static_cast<size_t>(i)];
    const std::string object = object_of(address);
    if (object.starts_with("libc.") || object.starts_with("libstdc++") || object.starts_with("ld-linux") ||
        is_interposed(address))
      continue;
    return object == self ? "ours" : object;
  }
  return "?";
}

struct Count {
  size_t calls = 0;
  size_t bytes = 0;
};

template <typename F>
std::map<std::string, Count> count(F&& f) {
  counted = 0;
  counting = true;
  f();
  counting = false;
  EXPECT_LE(counted, allocations.size());
  std::map<std::string, Count> callers;
  const std::string self = object_of(reinterpret_cast<void*>(&object_of));
  for (size_t i = 0; i < std::min(counted.load(), allocations.size()); ++i) {
    const std::string caller = caller_of(allocations[i], self);
    callers[caller].calls += 1;
    callers[caller].bytes += allocations[i].bytes;
    // Input for addr2line, if there are unwanted allocations.
    if (caller == "ours" && callers[caller].calls <= 20)
      ::backtrace_symbols_fd(allocations[i].stack.data(), allocations[i].depth, 2);
  }
  return callers;
}

}  // namespace

// Machine::step looks up states by name, outside of the measured step.
void run_step(Machine& machine, int64_t number) {
  kernels::Numbers numbers = {.seed = 1, .step = number, .learning_rate = 1e-3};
  machine.executor.run(program::Step::train, numbers,
                       [&](const run::Executor::Inputs& inputs) { machine.fill(number, inputs); });
}

class InAStep : public testing::Test {
 protected:
  InAStep() {
    void* warm[4];
    backtrace(warm, 4);  // loads what it needs
  }
};

// The counter works: it detects allocations made here, on every thread.
TEST_F(InAStep, AllocationsAreSeen) {
  base::ThreadTeam team(2);
  const auto callers = count([&] { team.run([](int) { ::operator delete(::operator new(100)); }); });
  ASSERT_TRUE(callers.contains("ours"));
  EXPECT_EQ(callers.at("ours").calls, 2u);
  EXPECT_EQ(callers.at("ours").bytes, 200u);
}

TEST_F(InAStep, NothingIsAllocatedByUs) {
  for (const std::string family : {"gpt", "llama"})
    for (const std::string dtype : {"fp32", "bf16", "fp16"}) {
      config::Settings s = small_model(family, dtype);
      s.parallel.device = "cpu";
      s.parallel.threads = 2;
      s.data.reset_at_document = true;
      Machine machine(s);
      run_step(machine, 0);  // libraries make what they keep
      const auto callers = count([&] { run_step(machine, 1); });
      for (const auto& [caller, c] : callers)
        fmt::print("{} {}: {} allocates {} times, {} bytes in a step\n", family, dtype, caller, c.calls, c.bytes);
      EXPECT_FALSE(callers.contains("ours"));
      EXPECT_FALSE(callers.contains("?"));

      kernels::Numbers numbers;
      const auto fill = [&](const run::Executor::Inputs& inputs) { machine.fill(0, inputs); };
      machine.executor.run(program::Step::evaluate, numbers, fill);
      EXPECT_FALSE(count([&] { machine.executor.run(program::Step::evaluate, numbers, fill); }).contains("ours"));
    }
}

// Nor while the step is profiled.
TEST_F(InAStep, NothingIsAllocatedForARecorder) {
  config::Settings s = small_model("gpt", "fp32");
  s.parallel.device = "cpu";
  Machine machine(s);
  run_step(machine, 0);
  profile::Recorder recorder(machine.executor.program(), program::Step::train);
  machine.executor.recorder = &recorder;
  EXPECT_FALSE(count([&] { run_step(machine, 1); }).contains("ours"));
  EXPECT_GT(recorder.times().whole.length(), 0);
}

// Nor with offloaded states and activations.
TEST_F(InAStep, NothingIsAllocatedWithOffload) {
  config::Settings s = small_model("gpt", "bf16");
  s.model.layers = 4;
  s.model.embed = 128;
  s.model.context = s.train.sequence = 64;
  s.train.micro_batch = 4;
  s.train.global_batch = 8;
  s.parallel.device = "cpu";
  s.parallel.threads = 2;
  s.parallel.offload = "all";
  Machine machine(s);
  run_step(machine, 0);
  const auto callers = count([&] { run_step(machine, 1); });
  EXPECT_FALSE(callers.contains("ours"));
  EXPECT_FALSE(callers.contains("?"));
  size_t stores = 0;
  const program::Program& p = machine.executor.program();
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions)
      stores += i.kind == program::Kind::copy && i.copy == program::Copy::store;
  EXPECT_GT(stores, 20u);  // more than optimizer state alone
}

// The printed memory equals the allocated memory, to the byte.
TEST_F(InAStep, TheArenaIsThePrintedPeak) {
  for (const std::string family : {"gpt", "llama"})
    for (const std::string dtype : {"fp32", "bf16", "fp64"}) {
      config::Settings s = small_model(family, dtype);
      s.parallel.device = "cpu";
      const Machine machine(s);
      const program::Program& p = machine.executor.program();
      EXPECT_EQ(machine.executor.allocated_bytes(), p.bytes());
      const std::string text = program::print_totals(p);
      const size_t at = text.find("  peak ");
      ASSERT_NE(at, std::string::npos) << text;
      EXPECT_EQ(std::stoll(text.substr(at + 7)), machine.executor.allocated_bytes()) << text;
      int64_t arena = 0;
      for (const program::CallList& list : p.lists) arena = std::max(arena, list.arena_bytes);
      EXPECT_EQ(p.bytes(), p.state_bytes + arena);
    }
}

}  // namespace kintsugi::tests::allocation_test

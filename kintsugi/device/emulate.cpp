#include "kintsugi/device/emulate.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/thread_team.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// The thread sanitizer sees a fiber as a thread, ordered only by barriers. This file itself is compiled without it,
// which this macro indicates (bench/gpu/sanitizers.sh).
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(const void* begin, size_t bytes);
extern "C" void __tsan_write_range(void* begin, size_t bytes);
#endif

namespace kintsugi::device::emulate {

#if defined(__SANITIZE_ADDRESS__)
void forbid(const void* begin, size_t bytes) {
  __asan_poison_memory_region(begin, bytes);
}
void allow(const void* begin, size_t bytes) {
  __asan_unpoison_memory_region(begin, bytes);
}
#else
void forbid(const void*, size_t) {}
void allow(const void*, size_t) {}
#endif

namespace {

constexpr size_t kStack = 128 << 10;  // bytes per fiber; untouched pages take no memory
constexpr size_t kMostShared = 228 << 10;

#if defined(KINTSUGI_FIBERS_ARE_THREADS)
void comes_before(void* point) {
  __tsan_release(point);
}
void comes_after(void* point) {
  __tsan_acquire(point);
}
void reads(const void* begin, size_t bytes) {
  __tsan_read_range(begin, bytes);
}
void writes(void* begin, size_t bytes) {
  __tsan_write_range(begin, bytes);
}
#else
void comes_before(void*) {}
void comes_after(void*) {}
void reads(const void*, size_t) {}
void writes(void*, size_t) {}
#endif

#if defined(__x86_64__)
// Saves the callee-saved registers on the current stack, and resumes `to`.
extern "C" void kintsugi_switch_fiber(void** from, void* to);
asm(R"(
.text
.type kintsugi_switch_fiber, @function
kintsugi_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kintsugi_switch_fiber, . - kintsugi_switch_fiber
)");
#endif

struct Block;
void fiber_main();

// Where a fiber or the scheduler resumes.
struct Context {
#if defined(__x86_64__)
  void* at = nullptr;
#else
  ucontext_t at;
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  const void* bottom = nullptr;
  size_t size = 0;
#endif
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
  void* fiber = nullptr;
#endif
};

// An asynchronous copy and the group it belongs to.
struct Copy {
  void* to;
  const void* from;
  int group;
};

struct Fiber {
  Context context;
  std::byte* stack = nullptr;
  Now now;
  bool ended = false;
  bool waits = false;
  Gathering what = Gathering::barrier;
  std::vector<Copy> copies;  // pending
  int groups = 0;            // number of committed groups of copies
  bool waited = false;       // for the preceding kernels
};

// Threads that synchronize: a block, or one of its warps.
struct Group {
  int first = 0, count = 0, here = 0;
  Gathering what = Gathering::barrier;
  std::vector<void*> own;
  char points[2] = {};  // synchronization points of barriers: each follows the last but one, so two suffice
  int passed = 0;
};

// State of a system thread that runs blocks.
struct Block {
  Block() : fibers(kMostThreads), shared(kMostShared) {
    stacks = static_cast<std::byte*>(::mmap(nullptr, kStack * kMostThreads, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (stacks == MAP_FAILED)
      throw base::UserError("device",
                            "cannot allocate {} of address space for the threads of an emulated block; raise the limit "
                            "(ulimit -v), or use parallel.device = \"cpu\"",
                            base::format_bytes(kStack * kMostThreads));
    for (size_t i = 0; i < kMostThreads; ++i) fibers[i].stack = stacks + kStack * i;
  }
  ~Block() {
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
    for (const Fiber& f : fibers)
      if (f.context.fiber != nullptr) __tsan_destroy_fiber(f.context.fiber);
#endif
    ::munmap(stacks, kStack * kMostThreads);
  }

  std::byte* stacks = nullptr;
  std::vector<Fiber> fibers;
  std::vector<std::byte> shared;
  Context scheduler;
  int count = 0;
  int running = 0;
  const void* kernel = nullptr;
  const std::function<void()>* body = nullptr;
  Group all;
  std::vector<Group> warps;
  int warp = 32;
  Order order = Order::first_to_last;
  bool released = false;  // all threads leave a barrier: start again from the first in order
  bool begun = false;
  char begins = 0, ends = 0;  // ordering of accesses between turns
};

// Blocks that run in turns, each from one cluster barrier to the next. A turn is ordered after the previous one, since
// blocks share their statically sized memory.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;  // may hold more than `count`
  size_t count = 0;
};

thread_local Block* block_now = nullptr;
thread_local Cluster* cluster_now = nullptr;

Fiber& running() {
  return block_now->fibers[static_cast<size_t>(block_now->running)];
}

void go(Context& from, Context& to, [[maybe_unused]] bool ends) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake, to.bottom, to.size);
#endif
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
  __tsan_switch_to_fiber(to.fiber, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__x86_64__)
  kintsugi_switch_fiber(&from.at, to.at);
#else
  ::swapcontext(&from.at, &to.at);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}

// Ends the program, reporting which thread did what.
[[noreturn]] void report(const Now& n, const std::string& what) {
  fmt::print(stderr, "[device] kernel: block ({} {} {}): thread ({} {} {}) {}\n", n.block.x, n.block.y, n.block.z,
             n.thread.x, n.thread.y, n.thread.z, what);
  std::fflush(stderr);
  std::abort();
}

void to_scheduler(bool ends) {
  go(running().context, block_now->scheduler, ends);
}

void fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block_now->scheduler.bottom, &block_now->scheduler.size);
#endif
  comes_after(&block_now->begins);
  (*block_now->body)();
  comes_before(&block_now->ends);
  // They could write to shared memory that belongs to another block by then.
  if (const size_t copies = running().copies.size(); copies > 0)
    report(running().now, fmt::format("ended without a wait for {} copies", copies));
  running().ended = true;
  to_scheduler(true);
  std::abort();
}

void begin(Fiber& f) {
  f.ended = f.waits = f.waited = false;
  f.copies.clear();
  f.groups = 0;
#if defined(__SANITIZE_ADDRESS__)
  allow(f.stack + kStack / 2, kStack / 2);  // left by frames that never returned
  f.context.bottom = f.stack;
  f.context.size = kStack;
#endif
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
  if (f.context.fiber == nullptr) f.context.fiber = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
  auto** top = reinterpret_cast<void**>(f.stack + kStack - 64);
  *--top = nullptr;  // as after a call: the stack is aligned to 16, minus a return address
  *--top = reinterpret_cast<void*>(&fiber_main);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  f.context.at = top;
#else
  ::getcontext(&f.context.at);
  f.context.at.uc_stack.ss_sp = f.stack;
  f.context.at.uc_stack.ss_size = kStack;
  f.context.at.uc_link = nullptr;
  ::makecontext(&f.context.at, fiber_main, 0);
#endif
}

// Whether all threads of a block synchronize.
bool of_block(Gathering what) {
  return what == Gathering::barrier || what == Gathering::cluster_barrier;
}

const char* name_of(Gathering what) {
  switch (what) {
    case Gathering::barrier:
      return "__syncthreads";
    case Gathering::cluster_barrier:
      return "a barrier of the cluster";
    case Gathering::warp_barrier:
      return "a barrier of the warp";
    case Gathering::exchange:
      return "a shuffle";
    case Gathering::mma:
      return "a matrix product";
    case Gathering::load_matrices:
      return "a load of matrices";
  }
  return "?";
}

[[noreturn]] void diverged(const Fiber& waiting, const Fiber& other) {
  const Index& o = other.now.thread;
  report(waiting.now, fmt::format("waits in {}, which thread ({} {} {}) {}; all threads must reach it",
                                  name_of(waiting.what), o.x, o.y, o.z,
                                  other.ended ? "never reached before its end"
                                              : fmt::format("does not reach: it waits in {}", name_of(other.what))));
}

[[noreturn]] void report_cluster(const Now& one, std::string_view what, const Block& other) {
  const Index& o = other.fibers[0].now.block;
  report(one, fmt::format("{} block ({} {} {}) of its cluster, which {}", what, o.x, o.y, o.z,
                          other.begun ? "has ended" : "has not begun"));
}

// Deadlock: reports the first thread that waits, and a thread of its group that waits for something else or has exited.
[[noreturn]] void report_stuck(const Block& b) {
  for (int i = 0; i < b.count; ++i) {
    const Fiber& f = b.fibers[static_cast<size_t>(i)];
    if (f.ended) continue;
    const bool whole = of_block(f.what);
    const int first = whole ? 0 : i / b.warp * b.warp, last = whole ? b.count : std::min(b.count, first + b.warp);
    for (int j = first; j < last; ++j) {
      const Fiber& other = b.fibers[static_cast<size_t>(j)];
      if (other.ended || other.what != f.what) diverged(f, other);
    }
  }
  std::abort();
}

// Runs a thread until it waits or exits; false if it can do neither.
bool run_thread(Block& b, int i) {
  Fiber& f = b.fibers[static_cast<size_t>(i)];
  if (f.ended || f.waits) return false;
  b.running = i;
  go(b.scheduler, f.context, false);
  return true;
}

// Runs a warp until none of its threads can proceed; false if none did.
bool run_warp(Block& b, const Group& warp) {
  bool any = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < warp.count && !b.released; ++i)
      moved |= run_thread(b, warp.first + (b.order == Order::first_to_last ? i : warp.count - 1 - i));
    any |= moved;
    if (b.released) break;
  }
  return any;
}

// Runs all threads of a block with that many bytes of dynamic shared memory until they have exited, or wait for other
// blocks. Returns false if they wait.
bool run_block(Block& b, size_t shared) {
  block_now = &b;
  if (!b.begun) {
    b.begun = true;
    std::fill_n(b.shared.begin(), shared, std::byte{0xFF});  // NaN
    for (int i = 0; i < b.count; ++i) begin(b.fibers[static_cast<size_t>(i)]);
  }
  comes_before(&b.begins);
  const size_t warps = b.warps.size();
  for (bool moved = true; moved;) {
    moved = false;
    b.released = false;
    for (size_t w = 0; w < warps && !b.released; ++w)
      moved |= run_warp(b, b.warps[b.order == Order::first_to_last ? w : warps - 1 - w]);
  }
  int ended = 0, waiting = 0;
  for (int i = 0; i < b.count; ++i) {
    const Fiber& f = b.fibers[static_cast<size_t>(i)];
    ended += f.ended, waiting += !f.ended && f.what == Gathering::cluster_barrier;
  }
  if (ended != b.count && waiting != b.count) report_stuck(b);
  comes_after(&b.ends);
  return ended == b.count;
}

void run_cluster(Cluster& c, size_t shared) {
  cluster_now = &c;
  const auto block = [&](size_t i) -> Block& {
    return *c.blocks[c.blocks[0]->order == Order::first_to_last ? i : c.count - 1 - i];
  };
  while (true) {
    std::vector<const Block*> ended, waiting;
    for (size_t i = 0; i < c.count; ++i) (run_block(block(i), shared) ? ended : waiting).push_back(&block(i));
    block_now = nullptr;
    if (waiting.empty()) return;
    if (!ended.empty()) report_cluster(waiting[0]->fibers[0].now, "waits in a barrier for", *ended[0]);
    for (size_t i = 0; i < c.count; ++i)
      for (int t = 0; t < block(i).count; ++t) block(i).fibers[static_cast<size_t>(t)].waits = false;
  }
}

base::ThreadTeam& team() {
  static base::ThreadTeam team(static_cast<int>(std::min(2u, std::max(1u, std::thread::hardware_concurrency()))));
  return team;
}

Cluster& own_cluster(size_t blocks) {
  thread_local Cluster own;
  while (own.blocks.size() < blocks) own.blocks.push_back(std::make_unique<Block>());
  own.count = blocks;
#if defined(KINTSUGI_FIBERS_ARE_THREADS)
  for (const auto& block : own.blocks) block->scheduler.fiber = __tsan_get_current_fiber();
#endif
  return own;
}

}  // namespace

const Now& now() {
  return running().now;
}

void wait_for_kernels_before() {
  running().waited = true;
}
// On a device the next kernel would run concurrently with kernels that produce its inputs.
void let_next_begin() {
  if (!running().waited) report(running().now, "lets the next kernel begin and has not waited for the kernels before");
}
void require_wait() {
  if (!running().waited) report(running().now, "ended and has not waited for the kernels before");
}

int own_lane() {
  return block_now->running % 32;
}

const void* kernel_now() {
  return block_now->kernel;
}

namespace {

void copy_16(void* to, const void* from) {
  reads(from, 16);
  writes(to, 16);
  std::memcpy(to, from, 16);
}

}  // namespace

void copy_async_16(void* to, const void* from) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    report(running().now, fmt::format("copies 16 bytes from {} to {}, of which one does not begin at a multiple of 16",
                                      fmt::ptr(from), fmt::ptr(to)));
  if (block_now->order == Order::first_to_last) {
    copy_16(to, from);
  } else {
    running().copies.push_back({to, from, running().groups});
  }
}
void copy_async_commit() {
  ++running().groups;
}
void copy_async_wait(int newest) {
  Fiber& f = running();
  std::erase_if(f.copies, [&](const Copy& c) {
    if (c.group >= f.groups - newest) return false;
    copy_16(c.to, c.from);
    return true;
  });
}

void gather(Gathering what, void* own, Act act) {
  Block& b = *block_now;
  Fiber& f = running();
  const bool whole = what == Gathering::barrier;
  Group& g = whole ? b.all : b.warps[static_cast<size_t>(b.running / b.warp)];
  f.what = what;
  f.waits = true;
  if (g.here > 0 && g.what != what) {
    for (int i = 0; i < g.count; ++i) {
      const Fiber& other = b.fibers[static_cast<size_t>(g.first + i)];
      if (&other != &f && other.waits && other.what == g.what) diverged(other, f);
    }
  }
  g.what = what;
  g.own[static_cast<size_t>(b.running - g.first)] = own;
  char* const point = what == Gathering::barrier || what == Gathering::warp_barrier ? &g.points[g.passed % 2] : nullptr;
  if (point != nullptr) comes_before(point);
  if (++g.here == g.count) {
    if (act != nullptr) act(g.own.data(), g.count);
    g.here = 0;
    if (point != nullptr) ++g.passed;
    for (int i = 0; i < g.count; ++i) b.fibers[static_cast<size_t>(g.first + i)].waits = false;
    b.released |= whole;
  }
  to_scheduler(false);  // all continue in order, this one included
  if (point != nullptr) comes_after(point);
}

void wait_for_cluster() {
  Fiber& f = running();
  f.what = Gathering::cluster_barrier;
  f.waits = true;
  comes_before(&block_now->ends);
  to_scheduler(false);
  comes_after(&block_now->begins);
}

void* of_block_in_cluster(void* own, unsigned block) {
  const Now& n = now();
  base::require(block < cluster_now->count, "device", "block {} of a cluster of {}", block, cluster_now->count);
  Block& b = *cluster_now->blocks[block];
  if (!b.begun || b.fibers[0].ended) report_cluster(n, "wants the memory of", b);
  return b.shared.data() + (static_cast<std::byte*>(own) - n.shared);
}

uint32_t lanes_equal(int x, const Place& place) {
  struct Slot {
    int given;
    uint32_t equal;
  } slot{x, 0};
  if (left_out(place)) return 1u << (running().now.thread.x % 32);
  gather(Gathering::exchange, &slot, [](void** own, int count) {
    for (int i = 0; i < count; ++i)
      for (int j = i / 32 * 32; j < std::min(count, i / 32 * 32 + 32); ++j) {
        auto *a = static_cast<Slot*>(own[i]), *b = static_cast<Slot*>(own[j]);
        if (a->given == b->given) a->equal |= 1u << (j % 32);
      }
  });
  return slot.equal;
}

void load_matrices(uint32_t (&r)[4], const void* row, bool transposed) {
  struct Slot {
    uint32_t* r;
    const uint16_t* row;
    bool transposed;
  } slot{r, static_cast<const uint16_t*>(row), transposed};
  reads(row, 16);
  gather(Gathering::load_matrices, &slot, [](void** own, int count) {
    for (int i = 0; i < count; ++i) {
      const auto at = [&](int matrix, int y, int x) {
        return static_cast<uint32_t>(static_cast<Slot*>(own[i / 32 * 32 + matrix * 8 + y])->row[x]);
      };
      auto* s = static_cast<Slot*>(own[i]);
      const int y = i % 32 / 4, x = i % 4 * 2;
      for (int m = 0; m < 4; ++m)
        s->r[m] = s->transposed ? at(m, x, y) | at(m, x + 1, y) << 16 : at(m, y, x) | at(m, y, x + 1) << 16;
    }
  });
}

void run(Grid<Size> grid, Size threads, size_t shared, const void* kernel, const std::function<void()>& body) {
  const auto count = static_cast<int>(threads.x * threads.y * threads.z);
  const Size blocks = grid.blocks;
  const int64_t clusters = static_cast<int64_t>(blocks.x) * blocks.y * blocks.z / grid.cluster;
  const auto prepare = [&](Block& b) {
    b.count = count;
    b.kernel = kernel;
    b.body = &body;
    b.warp = warp();
    b.order = order();
    b.all = Group{.first = 0, .count = count, .own = std::vector<void*>(static_cast<size_t>(count))};
    b.warps.clear();
    for (int first = 0; first < count; first += b.warp) {
      const int lanes = std::min(b.warp, count - first);
      b.warps.push_back(Group{.first = first, .count = lanes, .own = std::vector<void*>(static_cast<size_t>(lanes))});
    }
    allow(b.shared.data(), kMostShared);
    forbid(b.shared.data() + shared, kMostShared - shared);
  };
  const auto set_block = [&](Block& b, uint64_t n) {
    b.begun = false;
    for (int t = 0; t < count; ++t) {
      const auto u = static_cast<unsigned>(t);
      b.fibers[static_cast<size_t>(t)].now = {
          .thread = {u % threads.x, u / threads.x % threads.y, u / threads.x / threads.y},
          .block = {static_cast<unsigned>(n % blocks.x), static_cast<unsigned>(n / blocks.x % blocks.y),
                    static_cast<unsigned>(n / blocks.x / blocks.y)},
          .threads = threads,
          .blocks = blocks,
          .shared = b.shared.data()};
    }
  };
  const auto run_clusters = [&](base::Range r, int) {
    Cluster& c = own_cluster(grid.cluster);
    for (size_t rank = 0; rank < c.count; ++rank) prepare(*c.blocks[rank]);
    for (int64_t i = r.begin; i < r.end; ++i) {
      for (size_t rank = 0; rank < c.count; ++rank)
        set_block(*c.blocks[rank], static_cast<uint64_t>(i) * grid.cluster + rank);
      run_cluster(c, shared);
    }
  };
  constexpr int64_t kFew = 4;  // clusters; waking another thread does not pay for fewer
  if (clusters < kFew) return run_clusters({0, clusters}, 0);
  static std::mutex one;  // several ranks in one process share the threads
  const std::lock_guard lock(one);
  team().for_shares(clusters, 1, run_clusters);
}

}  // namespace kintsugi::device::emulate

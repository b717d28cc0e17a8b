// Offload in whole models: equal bits, memory saved to the byte, and refused configurations.
#include "kintsugi/lower/order/offload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_communication.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/same_bits.h"
#include "tests/small_run.h"

namespace kintsugi::tests::offload_test {
namespace {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using program::Region;

config::Settings with(config::Settings s, const std::string& layout, const std::string& offload) {
  set_layout(s, layout);
  s.train.micro_batch /= s.parallel.data;
  s.parallel.offload = offload;
  return s;
}

std::vector<Program> programs_of(const config::Settings& s) {
  return compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
}

// Three steps.
Bits run(const config::Settings& s) {
  return bits_of(s, 3);
}

const Body& body(const Program& p, std::string_view name) {
  for (const Body& b : p.bodies)
    if (b.name == name) return b;
  throw base::InternalError("test", "no body {}", name);
}

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

class OffloadBits : public testing::TestWithParam<Case> {};

TEST_P(OffloadBits, AreThoseOfMemory) {
  const auto& [family, dtype, layout] = GetParam();
  config::Settings s = offload_model(family, dtype);
  if (family == "mixtral") s.model.experts = 4, s.train.balance = "loss";
  const Bits plain = run(with(s, layout, "none"));
  for (const char* offload : {"optimizer", "activations", "all"})
    EXPECT_EQ(other_bits(run(with(s, layout, offload)), plain), "") << offload;
}

INSTANTIATE_TEST_SUITE_P(All, OffloadBits,
                         testing::Values(Case{"gpt", "fp32", ""}, Case{"llama", "bf16", "recompute=full"},
                                         Case{"llama", "fp32", "data=2 zero=1"}, Case{"gpt", "bf16", "data=2 zero=3"},
                                         Case{"llama", "bf16", "pipe=2"}, Case{"gpt", "fp32", "tensor=2"},
                                         Case{"mixtral", "fp32", "expert=2 recompute=light"},
                                         Case{"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"},
                                         Case{"llama", "fp32", "pipe=2 schedule=zero_bubble recompute=full"}),
                         [](const auto& info) {
                           std::string name = info.param.family + " " + info.param.dtype + " " + info.param.layout;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// A bucket processed in pieces.
TEST(OffloadPieces, HaveTheBitsOfTheWhole) {
  for (const char* dtype : {"fp32", "bf16"}) {
    config::Settings s = offload_model("gpt", dtype);
    s.model.layers = 1;
    s.model.vocab = 9001;
    s.train.sequence = s.model.context = 8;
    s.train.micro_batch = 1;
    s.train.global_batch = 2;
    s.parallel.threads = 2;
    const Bits plain = run(with(s, "", "none"));
    const config::Settings offloaded = with(s, "", "optimizer");
    EXPECT_EQ(other_bits(run(offloaded), plain), "");
    const Program p = programs_of(offloaded)[0];
    size_t updates = 0, moments = 0;
    for (const Instruction& i : body(p, "update").instructions) updates += i.kernel == "adamw";
    for (const Instruction& i : body(programs_of(with(s, "", "none"))[0], "update").instructions)
      moments += i.kernel == "adamw";
    EXPECT_EQ(updates, moments + 1);  // 9001 x 128 elements are two pieces
  }
}

// The largest optimizer state that one operation uses.
int64_t largest_unit(const Program& plain) {
  int64_t most = 0;
  for (const Instruction& i : body(plain, "update").instructions) {
    int64_t bytes = 0;
    for (BufferId b : i.outs)
      for (const program::StateInfo& state : plain.states)
        if (state.kind == program::StateKind::optimizer && state.buffer == b && state.first == 0)
          bytes += plain.aligned(plain.buffer(b).bytes());
    most = std::max(most, bytes);
  }
  return most;
}

// In every kind of layout, all optimizer state is in the file, and the memory of states shrinks by exactly that.
TEST(OffloadMemory, OfStatesToTheByte) {
  for (const char* layout : {"", "data=2 zero=1", "data=2 zero=3", "tensor=2", "pipe=2", "data=2 tensor=2 zero=2"})
    for (const char* dtype : {"fp32", "bf16"}) {
      const std::vector<Program> plain = programs_of(with(offload_model("gpt", dtype), layout, "none")),
                                 less = programs_of(with(offload_model("gpt", dtype), layout, "optimizer"));
      for (size_t stage = 0; stage < plain.size(); ++stage) {
        std::set<BufferId> buffers;
        for (const program::StateInfo& state : less[stage].states) {
          const bool in_file = less[stage].buffer(state.buffer).region == Region::file;
          EXPECT_EQ(in_file, state.kind == program::StateKind::optimizer) << state.name;
          if (in_file) buffers.insert(state.buffer);
        }
        int64_t bytes = 0, pages = 0;
        for (BufferId b : buffers) {
          bytes += less[stage].aligned(less[stage].buffer(b).bytes());
          pages += program::whole_pages(less[stage].buffer(b).bytes());
        }
        EXPECT_GT(bytes, 0);
        EXPECT_EQ(plain[stage].state_bytes - less[stage].state_bytes, bytes) << layout;
        EXPECT_EQ(less[stage].file_bytes, pages) << layout;
        EXPECT_EQ(plain[stage].file_bytes, 0);
        // Staging buffers fit where activations were, up to fragmentation.
        const int64_t staged = 3 * largest_unit(plain[stage]);
        if (plain[stage].arena_bytes >= staged) {
          EXPECT_EQ(less[stage].list(program::Step::train).lower_bound_bytes,
                    plain[stage].list(program::Step::train).lower_bound_bytes)
              << layout;
          EXPECT_LE(less[stage].arena_bytes, plain[stage].arena_bytes * 1005 / 1000) << layout;
        } else {
          EXPECT_LE(less[stage].arena_bytes, staged) << layout;
        }
      }
    }
}

// Bytes that forward keeps for backward, in the file (per micro-batch) and in the arena.
struct Carried {
  int64_t file = 0, arena = 0;
};

Carried carried(const Program& p) {
  Carried c;
  std::set<BufferId> written;
  for (const Instruction& i : body(p, "forward").instructions)
    for (BufferId b : i.outs) written.insert(p.root(b));
  std::set<BufferId> read;
  for (const Instruction& i : body(p, "backward").instructions)
    for (BufferId b : i.ins)
      if (written.contains(p.root(b)) && read.insert(p.root(b)).second) {
        const Region region = p.buffer(p.root(b)).region;
        if (region == Region::arena) c.arena += p.buffer(p.root(b)).bytes();
        if (region == Region::file) c.file += p.buffer(p.root(b)).bytes();
      }
  return c;
}

// Each additional layer adds to the file, and to the arena only what is too small to be offloaded.
TEST(OffloadMemory, OfActivationsToTheByte) {
  config::Settings s = offload_model("gpt", "fp32");
  std::vector<Program> plain, moved;
  for (const int64_t layers : {6, 8}) {
    s.model.layers = layers;
    plain.push_back(programs_of(with(s, "", "none"))[0]);
    moved.push_back(programs_of(with(s, "", "activations"))[0]);
  }
  // Per layer, in blocks of batch x seq x embed: norms 2, query, attention, both residuals; key and value, with two of
  // four heads, half a block each; both sides of the activation 1.5 each. Attention statistics stay in memory: 4 KiB.
  const int64_t block = 4 * s.train.micro_batch * s.train.sequence * s.model.embed;
  const int64_t statistics = 4 * s.train.micro_batch * s.train.sequence * s.model.heads;
  const int64_t layer = 6 * block + 2 * (block / 2) + 2 * (block * 3 / 2);
  EXPECT_EQ(carried(moved[1]).file - carried(moved[0]).file, 2 * layer);
  EXPECT_EQ(carried(moved[1]).arena - carried(moved[0]).arena, 2 * statistics);
  EXPECT_EQ(carried(plain[1]).arena - carried(plain[0]).arena, 2 * (layer + statistics));
  EXPECT_EQ(moved[1].file_bytes - moved[0].file_bytes, 2 * layer);
  const auto bound = [](const Program& p) { return p.list(program::Step::train).lower_bound_bytes; };
  EXPECT_EQ(bound(plain[1]) - bound(plain[0]), 2 * (layer + statistics));
  EXPECT_EQ(bound(moved[1]) - bound(moved[0]), 2 * statistics);
  EXPECT_EQ(moved[1].state_bytes, plain[1].state_bytes);
}

// The file has as many slots as micro-batches in flight: fewer on later stages.
TEST(OffloadMemory, PlacesOfAPipeline) {
  const std::vector<Program> stages = programs_of(with(offload_model("llama", "fp32"), "pipe=4", "activations"));
  for (size_t stage = 0; stage < 3; ++stage) {
    std::set<int64_t> copies;
    for (const program::Buffer& b : stages[stage].buffers)
      if (b.region == Region::file) copies.insert(b.copies);
    EXPECT_EQ(copies, std::set<int64_t>{static_cast<int64_t>(4 - stage)}) << stage;
  }
}

// Damage to a program with everything offloaded, on one rank and on a stage with several micro-batches in flight.
class OffloadDamage : public testing::Test {
 protected:
  OffloadDamage() : p(programs_of(with(offload_model("gpt", "fp32"), "pipe=2 schedule=gpipe", "all"))[0]) {}

  std::vector<Instruction>& list(std::string_view name) {
    for (Body& b : p.bodies)
      if (b.name == name) return b.instructions;
    throw base::InternalError("test", "no body {}", name);
  }
  size_t find(std::string_view name, Kind kind, std::string_view kernel, size_t from = 0) {
    for (size_t i = from; i < list(name).size(); ++i)
      if (list(name)[i].kind == kind && name_of(list(name)[i]) == kernel) return i;
    throw base::InternalError("test", "no {} in {}", kernel, name);
  }
  Instruction take(std::string_view name, size_t at) {
    Instruction i = list(name)[at];
    list(name).erase(list(name).begin() + static_cast<std::ptrdiff_t>(at));
    return i;
  }
  std::string communication() {
    return error_of([&] { program::verify_communication(p, 0); });
  }
  std::string alone() {
    return error_of([&] { program::verify(p); });
  }
  std::string place(std::string_view name, size_t at) {
    const Instruction& i = list(name)[at];
    return fmt::format("[verify] internal error: train: rank 0 at instruction {} of {} ({})", at, name,
                       i.kind == Kind::compute ? i.kernel : describe(p, i, 0));
  }
  std::string operand(BufferId b) { return fmt::format("#{} \"{}\"", b, p.buffer(b).name); }

  Program p;
  BufferId lost = program::kNoBuffer;
};

TEST_F(OffloadDamage, None) {
  EXPECT_EQ(communication(), "no error");
  EXPECT_EQ(alone(), "no error");
}

TEST_F(OffloadDamage, AWaitForAFetchIsLost) {
  const Instruction wait = take("update", find("update", Kind::wait, "fetch"));
  const size_t start = find("update", Kind::copy, "fetch");
  ASSERT_EQ(list("update")[start].event, wait.event);
  const size_t user = find("update", Kind::compute, "adamw");
  EXPECT_EQ(communication(), fmt::format("{} reads {}, which instruction {} ({}) still makes", place("update", user),
                                         operand(wait.outs[0]), start, describe(p, list("update")[start], 0)));
}

TEST_F(OffloadDamage, AWaitForAStoreIsLost) {
  const size_t start = find("forward.0", Kind::copy, "store");
  size_t wait = start;
  while (list("forward.0")[wait].kind != Kind::wait || list("forward.0")[wait].event != list("forward.0")[start].event)
    ++wait;
  take("forward.0", wait);
  EXPECT_EQ(communication(),
            fmt::format("[verify] internal error: train: rank 0 at instruction {} of forward.0 ({}) never "
                        "waits for it",
                        start, describe(p, list("forward.0")[start], 0)));
}

TEST_F(OffloadDamage, AStoreBeforeTheWaitForItsFetch) {
  const size_t at = find("update", Kind::copy, "store");
  const Instruction store = take("update", at);
  const size_t start = find("update", Kind::copy, "fetch");
  list("update").insert(list("update").begin() + static_cast<std::ptrdiff_t>(start) + 1, store);
  ASSERT_EQ(list("update")[start].outs, store.ins);
  EXPECT_EQ(communication(),
            fmt::format("{} reads {}, which instruction {} ({}) still makes", place("update", start + 1),
                        operand(store.ins[0]), start, describe(p, list("update")[start], 0)));
}

TEST_F(OffloadDamage, AFetchIsLost) {
  take("backward.0", find("backward.0", Kind::copy, "fetch"));
  const size_t wait = find("backward.0", Kind::wait, "fetch");
  EXPECT_EQ(communication(), place("backward.0", wait) + " waits for what was not started");
}

TEST_F(OffloadDamage, AStoreIsLost) {
  for (const char* name : {"forward.0", "forward.0.first"}) {
    const Instruction store = take(name, find(name, Kind::copy, "store"));
    size_t wait = 0;
    while (list(name)[wait].kind != Kind::wait || list(name)[wait].event != store.event) ++wait;
    take(name, wait);
    lost = store.outs[0];
  }
  EXPECT_EQ(communication(), "no error");
  size_t fetch = 0;
  const auto& back = list("backward.0.first");
  while (back[fetch].kind != Kind::copy || back[fetch].ins[0] != lost) ++fetch;
  EXPECT_EQ(alone(),
            fmt::format("[verify] internal error: train: instruction {} of backward.0.first (fetch) reads {}, which "
                        "is not there",
                        fetch, operand(lost)));
}

// With one slot for two micro-batches the second overwrites the first.
TEST_F(OffloadDamage, TooFewPlaces) {
  BufferId fewer = program::kNoBuffer;
  for (size_t b = 0; b < p.buffers.size() && fewer < 0; ++b)
    if (p.buffers[b].copies > 1) fewer = static_cast<BufferId>(b);
  ASSERT_EQ(p.buffer(fewer).copies, 4);
  p.buffer(fewer).copies = 1;
  size_t fetch = 0;
  const auto& back = list("backward.0.first");
  while (back[fetch].kind != Kind::copy || back[fetch].ins[0] != fewer) ++fetch;
  EXPECT_EQ(alone(),
            fmt::format("[verify] internal error: train: instruction {} of backward.0.first (fetch) reads {}, which "
                        "is not there",
                        fetch, operand(fewer)));
}

TEST_F(OffloadDamage, ACopyToTheWrongSide) {
  const size_t at = find("update", Kind::copy, "fetch");
  list("update")[at].copy = program::Copy::store;
  EXPECT_EQ(communication(), place("update", at) + ": it goes from file to arena");
}

// A disk error reaches the rank as one line, and no rank hangs.
TEST(OffloadErrors, OfTheFileWithinAStep) {
  config::Settings s = with(offload_model("gpt", "fp32"), "data=2 zero=1", "activations");
  const TemporaryFolder folder;
  s.parallel.offload_folder = folder.path().string();
  int64_t bytes = 0;
  train::LayoutRun run(s, std::nullopt, [&](Program& p) {
    bytes = p.file_bytes;
    p.file_bytes = 4096;  // reads behind it fail
  });
  const Numbers before = run.states(program::StateKind::weight);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small = {4096, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error =
      error_of([&] { run.step(0, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, 0, m, batch); }); });
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(matches(error, "\\[offload\\] rank [01] cannot write [0-9]+ bytes at [0-9]+ of its file in \"" +
                                 folder.path().string() + "\": File too large"))
      << error;
  EXPECT_GT(bytes, 4096);
}

// Whole runs of the command.
std::string sets_of(const RunFiles& files, const std::string& offload, const std::string& run) {
  return fmt::format(
      "train '{}' --set model.layers=4 model.embed=512 train.steps=1 train.warmup_steps=0 train.evaluate_every=0 "
      "train.folder={} "
      "parallel.offload={}",
      files.toml(), files.folder(run).string(), offload);
}

// The bytes of a checkpoint do not depend on where its states were.
TEST(OffloadRun, CheckpointsAreTheSameBytes) {
  const RunFiles files;
  const std::string toml = files.toml("llama", "bf16");
  const TemporaryFolder folder;
  const auto train = [&](const std::string& offload, const std::string& run, int steps, const std::string& more = "") {
    const Ended ended = run_kintsugi(
        folder.path(), fmt::format("train '{}' {} --set train.steps={} train.decay_steps=20 train.folder='{}' "
                                   "parallel.offload={}",
                                   toml, more, steps, files.folder(run).string(), offload));
    EXPECT_EQ(ended.code, 0) << ended.err;
  };
  train("none", "plain", 8);
  train("all", "file", 4);
  for (const fs::path& at : {files.folder("file")})
    for (const auto& entry : fs::directory_iterator(at))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".offload")) << entry.path();
  train("none", "file", 6, "--resume");  // from one to the other and back
  train("optimizer", "file", 8, "--resume");
  const auto newest = [&](const std::string& run) { return tensors_of(checkpoint::step_folder(files.folder(run), 8)); };
  EXPECT_EQ(newest("plain"), newest("file"));
  EXPECT_EQ(metrics_of(files.folder("plain")).size(), 8u);
}

TEST(OffloadRun, AFullDiskIsAnErrorBeforeTheFirstStep) {
  const RunFiles files;
  const TemporaryFolder folder;
  const Ended ended = run_kintsugi(folder.path(), sets_of(files, "optimizer", "full"), "ulimit -f 2048");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(replaced(ended.err, "where [^:]* is free", "where SOME is free"),
            fmt::format("error: [offload] rank 0 needs a file of {} in \"{}\", where SOME is free: File too large; set "
                        "parallel.offload_folder to a disk with more space, or parallel.offload to less\n",
                        "88.9 MiB (93200384 bytes)", files.folder("full").string()));
  EXPECT_FALSE(fs::exists(files.folder("full") / "metrics.jsonl") &&
               fs::file_size(files.folder("full") / "metrics.jsonl") > 0);
}

TEST(OffloadRun, AFolderThatIsNotThere) {
  const RunFiles files;
  const TemporaryFolder folder;
  const Ended ended =
      run_kintsugi(folder.path(), sets_of(files, "all", "run") + " parallel.offload_folder=/nowhere/at");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.err,
            "error: [offload] rank 0 cannot make a file in \"/nowhere/at\": No such file or directory; "
            "parallel.offload_folder must be an existing, writable folder\n");
}

// If optimizer state exceeds the memory, the model trains with it offloaded.
TEST(OffloadRun, AModelThatDoesNotFitTrains) {
  const RunFiles files;
  const TemporaryFolder folder;
  const std::string limit = "ulimit -d 201600";
  const Ended without = run_kintsugi(folder.path(), sets_of(files, "none", "without"), limit);
  EXPECT_EQ(without.code, 1);
  EXPECT_EQ(without.err,
            "error: [run] cannot allocate the 182 MiB that the program needs; a smaller train.micro_batch needs "
            "less\n");
  const Ended with = run_kintsugi(folder.path(), sets_of(files, "optimizer", "with"), limit);
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(metrics_of(files.folder("with")).size(), 1u);
}

}  // namespace
}  // namespace kintsugi::tests::offload_test

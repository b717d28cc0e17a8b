#include "kintsugi/config/resolve_parallel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/resume.h"
#include "kintsugi/config/testing.h"

namespace kintsugi::config::resolve_parallel_test {
namespace {

using Lines = std::vector<std::string>;

// From a [parallel] section, on 6 cores.
Resolved resolved(const std::string& text, const Lines& sets = {}) {
  return resolve(read_text("[parallel]\n" + text, "run.toml", sets), 6);
}

std::string error_in(const std::string& text, const Lines& sets = {}) {
  return error_of([&] { resolved(text, sets); });
}

}  // namespace

TEST(ResolveParallel, Ranks) {
  const Resolved one = resolved("");
  EXPECT_EQ(one.settings.parallel.ranks, 1);
  EXPECT_EQ(one.settings.parallel.threads, 6);
  EXPECT_EQ(one.settings.parallel.context_balance, "zigzag");
  EXPECT_TRUE(one.warnings.empty());

  const Resolved product = resolved("data = 2\ntensor = 3\n");
  EXPECT_EQ(product.settings.parallel.ranks, 6);
  EXPECT_EQ(product.settings.parallel.threads, 1);
  EXPECT_EQ(product.origin("parallel.ranks").text(), "derived: pipe x data x tensor x context x space x expert");
  EXPECT_EQ(resolved("ranks = 0\ncontext = 2\n").settings.parallel.ranks, 2);
  EXPECT_EQ(resolved("ranks = 4\ndata = 2\ncontext = 2\n").settings.parallel.data, 2);

  const Resolved alone = resolved("ranks = 4\n");
  EXPECT_EQ(alone.settings.parallel.data, 4);
  EXPECT_EQ(alone.origin("parallel.data").text(), "derived: parallel.ranks");
  EXPECT_EQ(alone.settings.train.micro_batch, 2);
  EXPECT_EQ(resolved("", {"parallel.ranks=2"}).settings.parallel.data, 2);
}

TEST(ResolveParallel, Devices) {
  EXPECT_EQ(
      error_in("device = \"cuda\"\n[train]\ndtype = \"fp64\"\n"),
      "[config] run.toml:2: parallel.device = \"cuda\" computes in fp32, bf16 or fp16, and train.dtype = \"fp64\"; "
      "the processor computes in fp64");
  EXPECT_EQ(
      error_in("device = \"gpu\"\n"),
      "[config] run.toml:2: parallel.device = \"gpu\" is not one of auto, cpu, reference, emulated, cuda; did you "
      "mean \"cuda\"?");
}

TEST(ResolveParallel, AProductThatIsNotTheRanks) {
  EXPECT_EQ(error_in("ranks = 8\ntensor = 2\ncontext = 2\n"),
            "[config] run.toml:2: parallel.ranks = 8 is not data 1 x tensor 2 x context 2 = 4; leave ranks out, or set "
            "data = 2");
  EXPECT_EQ(error_in("tensor = 2\n", {"parallel.ranks=3"}),
            "[config] --set: parallel.ranks = 3 is not data 1 x tensor 2 x context 1 = 2; leave ranks out");
  EXPECT_EQ(error_in("data = 1000\ntensor = 1000\ncontext = 10\n"),
            "[config] run.toml:2: data 1000 x tensor 1000 x context 10 is 10,000,000 ranks; at most 1,000,000 are "
            "possible");
}

TEST(ResolveParallel, OutOfRange) {
  EXPECT_EQ(error_in("zero = 4\n"),
            "[config] run.toml:2: parallel.zero = 4 is out of range; it must be an integer from 0 to 3");
  EXPECT_EQ(error_in("tensor = 0\n"),
            "[config] run.toml:2: parallel.tensor = 0 is out of range; it must be an integer from 1 to 1,000,000");
  EXPECT_EQ(error_in("timeout_seconds = 0\n"),
            "[config] run.toml:2: parallel.timeout_seconds = 0 is out of range; it must be a number above 0");
  EXPECT_EQ(error_in("context_method = \"rings\"\n"),
            "[config] run.toml:2: parallel.context_method = \"rings\" is not one of gathered, ring, ulysses; did you "
            "mean \"ring\"?");
  EXPECT_EQ(error_in("colour = 2\n"),
            "[config] run.toml:2: unknown key parallel.colour; [parallel] has ranks, data, tensor, context, space, "
            "expert, pipe, zero, shard_grou...dims, keep_gathered, keep_logits, rules, "
            "allow_repeat, mesh_order, schedule, chunks, stages, recompute, recompute_every, offload, offload_folder, "
            "memory_per_rank, wire, timeout_seconds, cluster, device, tf32, transport, bind, replicas, threads, "
            "check_replicas_every");
  EXPECT_EQ(error_in("tensor_model_parallel_size = 2\n"),
            "[config] run.toml:2: unknown key parallel.tensor_model_parallel_size; did you mean tensor?");
}

TEST(ResolveParallel, TheBatch) {
  EXPECT_EQ(error_of([] { resolve(read_text("[train]\nglobal_batch = 6\n[parallel]\ndata = 4\n", "run.toml"), 6); }),
            "[config] run.toml:2: train.global_batch = 6 is not divisible by mesh axis \"data\" of size 4; nearest: 4, "
            "8");
  EXPECT_EQ(error_in("ranks = 16\n"),
            "[config] run.toml:2: train.global_batch = 8 (default) is not divisible by mesh axis \"data\" of size 16; "
            "nearest: 16");
  EXPECT_EQ(
      error_in("data = 2\n", {"train.micro_batch=8"}),
      "[config] --set: train.global_batch = 8 (default) is not divisible by train.micro_batch = 8 x 2 data ranks; "
      "nearest global_batch: 16; nearest micro_batch: 4");
  // Tensor and context ranks process the same samples.
  EXPECT_EQ(resolved("tensor = 3\ncontext = 2\n").settings.train.micro_batch, 8);
  EXPECT_EQ(data_ranks(resolved("tensor = 3\ndata = 2\n").settings), 2);
}

TEST(ResolveParallel, GroupsOfBatchNorms) {
  const auto group = [](const Lines& set) {
    const Settings s = resolve(read_text("", "run.toml", set), 6).settings;
    return std::pair{s.train.micro_batch, batch_norm_group(s)};
  };
  EXPECT_EQ(group({}), std::pair(int64_t{8}, int64_t{0}));
  EXPECT_EQ(group({"model.batch_norm=replica"}), std::pair(int64_t{8}, int64_t{8}));
  EXPECT_EQ(group({"model.batch_norm=replica", "parallel.data=2"}), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(group({"model.batch_norm=replica", "model.batch_norm_samples=3", "train.global_batch=24"}),
            std::pair(int64_t{6}, int64_t{3}));
  EXPECT_EQ(group({"model.batch_norm=replica", "model.batch_norm_samples=12", "train.global_batch=48"}),
            std::pair(int64_t{12}, int64_t{12}));
  EXPECT_EQ(error_of([&] {
              group({"model.batch_norm=replica", "model.batch_norm_samples=3"});
            }),
            "[config] --set: model.batch_norm_samples = 3 does not divide train.global_batch = 8 (default) / 1 data "
            "rank; nearest batch_norm_samples: 2, 4; nearest global_batch: 6, 9");
  EXPECT_EQ(error_of([&] {
              group({"model.batch_norm=replica", "model.batch_norm_samples=4", "train.micro_batch=2"});
            }),
            "[config] --set: model.batch_norm_samples = 4 does not divide train.micro_batch = 2; nearest "
            "batch_norm_samples: 2; nearest micro_batch: 4");
}

TEST(ResolveParallel, Units) {
  const Resolved r = resolved("data = 2\n", {"train.reproducible=4", "train.global_batch=64"});
  EXPECT_EQ(r.settings.train.micro_batch, 16);
  EXPECT_EQ(error_in("", {"train.reproducible=6"}),
            "[config] --set: train.reproducible = 6 is not a power of two; nearest: 4, 8");
  EXPECT_EQ(error_in("data = 4\n", {"train.reproducible=2"}),
            "[config] --set: train.reproducible = 2 is not divisible by mesh axis \"data\" of size 4; nearest: 4");
  EXPECT_EQ(error_in("data = 3\n", {"train.reproducible=8", "train.global_batch=24"}),
            "[config] --set: train.reproducible = 8 is not divisible by mesh axis \"data\" of size 3; data must be a "
            "power of two too");
  EXPECT_EQ(error_in("", {"train.reproducible=8", "train.global_batch=12"}),
            "[config] --set: train.global_batch = 12 is not divisible by train.reproducible = 8; nearest global_batch: "
            "8, 16");
  EXPECT_EQ(error_in("", {"train.reproducible=16"}),
            "[config] --set: train.global_batch = 8 (default) is not divisible by train.reproducible = 16; nearest "
            "global_batch: 16");
  EXPECT_EQ(error_in("", {"train.reproducible=2", "train.micro_batch=2"}),
            "[config] --set: train.micro_batch = 2 is not one unit of train.global_batch = 8 (default) / "
            "train.reproducible = 2, which is 4; leave micro_batch out");
}

TEST(ResolveParallel, ShardGroups) {
  EXPECT_EQ(resolved("data = 6\nzero = 1\nshard_group = 3\n", {"train.global_batch=6"}).settings.parallel.shard_group,
            3);
  EXPECT_EQ(
      error_in("data = 4\nzero = 1\nshard_group = 3\n"),
      "[config] run.toml:4: parallel.shard_group = 3 does not divide mesh axis \"data\" of size 4; nearest: 2, 4");
  EXPECT_EQ(error_in("data = 4\nzero = 1\nshard_group = 8\n"),
            "[config] run.toml:4: parallel.shard_group = 8 does not divide mesh axis \"data\" of size 4; nearest: 4");
}

TEST(ResolveParallel, MeshOrder) {
  EXPECT_EQ(resolved("data = 2\nmesh_order = \"tensor  context data\"\n").settings.parallel.mesh_order,
            "tensor  context data");
  for (const char* order :
       {"data tensor", "data tensor context data", "data tensor pipe", "pipe data pipe tensor context", " "})
    EXPECT_EQ(
        error_in("mesh_order = \"" + std::string(order) + "\"\n"),
        "[config] run.toml:2: parallel.mesh_order = \"" + std::string(order) +
            "\" must name each of data, context and tensor once, outermost first, and may name pipe, expert and space");
  EXPECT_EQ(error_in("mesh_order = \"\"\n"),
            "[config] run.toml:2: parallel.mesh_order is empty; it must be the axes, outermost first, or be left out");
}

// For a model of 4 experts.
TEST(ResolveParallel, Experts) {
  const std::string model = "[model]\nfamily = \"llama\"\nexperts = 4\n";
  const Resolved r = resolved("expert = 2\ndata = 2\n" + model);
  EXPECT_EQ(r.settings.parallel.ranks, 4);
  EXPECT_EQ(data_ranks(r.settings), 4);
  EXPECT_EQ(r.settings.train.micro_batch, 2);
  EXPECT_TRUE(r.warnings.empty());
  EXPECT_EQ(resolved("mesh_order = \"expert data context tensor\"\nexpert = 2\n" + model).settings.parallel.ranks, 2);
  EXPECT_EQ(error_in("expert = 2\n"),
            "[config] run.toml:2: parallel.expert = 2 divides experts, and the model has none; set model.experts, or "
            "leave expert out");
  EXPECT_EQ(error_in("expert = 8\n" + model),
            "[config] run.toml:2: parallel.expert = 8 is more than model.experts = 4; nearest: 4");
  EXPECT_EQ(error_in("expert = 3\n" + model),
            "[config] run.toml:2: parallel.expert = 3 is no divisor of model.experts = 4; nearest: 2, 4");
  EXPECT_EQ(error_in("expert = 4\ndata = 4\n" + model),
            "[config] run.toml:3: train.global_batch = 8 (default) is not divisible by mesh axes \"data\" and "
            "\"expert\" of size 16; nearest: 16");
  EXPECT_EQ(error_in("expert = 2\n" + model, {"train.reproducible=4"}),
            "[config] --set: train.reproducible = 4 is not possible with parallel.expert = 2: experts add the tokens "
            "of several units together");
}

TEST(ResolveParallel, Stages) {
  EXPECT_EQ(resolved("pipe = 2\ndata = 2\n").settings.parallel.ranks, 4);
  EXPECT_EQ(error_in("pipe = 5\n"),
            "[config] run.toml:2: parallel.pipe = 5 makes 5 parts of model.layers = 4 (default); at most pipe = 4");
  EXPECT_EQ(error_in("pipe = 2\nchunks = 3\nschedule = \"interleaved\"\n"),
            "[config] run.toml:2: parallel.pipe = 2 with parallel.chunks = 3 makes 6 parts of model.layers = 4 "
            "(default); at most pipe = 1 or chunks = 2");
  EXPECT_EQ(
      error_in("pipe = 2\nstages = \"1-2 3\"\n"),
      "[config] run.toml:3: parallel.stages = \"1-2 3\": \"1-2\" is not a number of layers; write how many layers "
      "each chunk has: \"5 7\"");
  EXPECT_EQ(
      error_in("space = 2\n"),
      "[config] run.toml:2: parallel.space = 2 splits images, and a gpt model reads tokens, which parallel.context "
      "splits");
  EXPECT_EQ(error_in("space_dims = \"height,width\"\n"),
            "[config] run.toml:2: parallel.space_dims = \"height,width\": \"height,width\" is no dim of images; write "
            "height, width or depth, separated by spaces");
  EXPECT_EQ(
      error_in("pipe = 2\nranks = 3\n"),
      "[config] run.toml:3: parallel.ranks = 3 is not pipe 2 x data 1 x tensor 1 x context 1 = 2; leave ranks out");
}

TEST(ResolveParallel, BalanceFollowsTheMethod) {
  const auto balance = [](const std::string& text) { return resolved("context = 2\n" + text).settings.parallel; };
  EXPECT_EQ(balance("").context_balance, "zigzag");
  EXPECT_EQ(balance("context_method = \"ring\"\n").context_balance, "zigzag");
  EXPECT_EQ(balance("context_method = \"ulysses\"\n").context_balance, "contiguous");
  EXPECT_EQ(balance("context_method = \"ulysses\"\ncontext_balance = \"zigzag\"\n").context_balance, "zigzag");
}

TEST(ResolveParallel, Rules) {
  using Rules = std::vector<std::string>;
  const auto rules = [](const Resolved& r) { return r.settings.parallel.rules; };
  const Rules two = {"embed in contract -> tensor, padded", "key_seq in attention -> context, in steps"};
  const Resolved r = resolved("tensor = 2\nrules = [\"" + two[0] + "\", \"" + two[1] + "\"]\n");
  EXPECT_EQ(rules(r), two);
  EXPECT_EQ(read_text(to_toml(r), "saved.toml").settings, r.settings);
  EXPECT_EQ(rules(resolved("tensor = 2\nrules = \"vocab -> tensor\"\n")), Rules{"vocab -> tensor"});
  EXPECT_EQ(rules(resolved("tensor = 2\n", {"parallel.rules=vocab -> tensor, padded"})),
            Rules{"vocab -> tensor, padded"});
  EXPECT_EQ(rules(resolved("tensor = 2\n", {"parallel.rules=['a -> data', \"b -> data\"]"})),
            (Rules{"a -> data", "b -> data"}));
  EXPECT_EQ(rules(resolved("rules = []\n")), Rules{});
  EXPECT_EQ(error_in("rules = [\"a -> data\", 3]\n"),
            "[config] run.toml:2: parallel.rules[1] = 3 is an integer; it must be a text");
  EXPECT_EQ(error_in("rules = {a = 1}\n"),
            "[config] run.toml:2: parallel.rules is a table; it must be a list of rules \"dim [in family] -> axes [, "
            "padded] [, in steps]\"");
}

TEST(ResolveParallel, KeysWithoutEffectAreTold) {
  const auto warning = [](const std::string& text) {
    const Lines warnings = resolved(text).warnings;
    return warnings.size() == 1 ? warnings[0] : std::to_string(warnings.size()) + " warnings";
  };
  EXPECT_EQ(warning("sequence_parallel = true\n"),
            "run.toml:2: parallel.sequence_parallel = true has no effect with parallel.tensor = 1 (default)");
  EXPECT_EQ(warning("context_method = \"ring\"\n"),
            "run.toml:2: parallel.context_method = \"ring\" has no effect with parallel.context = 1 (default)");
  EXPECT_EQ(warning("context_balance = \"contiguous\"\n"),
            "run.toml:2: parallel.context_balance = \"contiguous\" has no effect with parallel.context = 1 (default)");
  EXPECT_EQ(warning("data = 2\nshard_group = 2\n"),
            "run.toml:3: parallel.shard_group = 2 has no effect with parallel.zero = 0 (default)");
  EXPECT_EQ(warning("context = 2\nshard_context = true\n"),
            "run.toml:3: parallel.shard_context = true has no effect with parallel.zero = 0 (default)");
  EXPECT_EQ(warning("data = 2\nzero = 1\nshard_context = true\n"),
            "run.toml:4: parallel.shard_context = true has no effect with parallel.context = 1 (default)");
  EXPECT_EQ(warning("tensor = 2\nzero = 3\n"),
            "run.toml:3: parallel.zero = 3 has no effect with parallel.data = 1 (default)");
  EXPECT_EQ(warning("data = 2\nzero = 3\nshard_group = 1\n"),
            "run.toml:3: parallel.zero = 3 has no effect with parallel.shard_group = 1");
  EXPECT_EQ(warning("wire = \"bf16\"\n"),
            "run.toml:2: parallel.wire = \"bf16\" has no effect with parallel.ranks = 1 (derived: pipe x data x "
            "tensor x context x space x expert)");
  EXPECT_EQ(warning("data = 2\nwire = \"bf16\"\n[train]\ndtype = \"bf16\"\ngradient_dtype = \"bf16\"\n"),
            "run.toml:3: parallel.wire = \"bf16\" has no effect with train.gradient_dtype = \"bf16\"");
  EXPECT_EQ(warning("tf32 = true\ndevice = \"cpu\"\n"),
            "run.toml:2: parallel.tf32 = true has no effect with parallel.device = \"cpu\"");
  EXPECT_EQ(warning("tf32 = true\ndevice = \"emulated\"\n"),
            "run.toml:2: parallel.tf32 = true has no effect with parallel.device = \"emulated\"");
  EXPECT_EQ(warning("rules = [\"embed -> tensor\"]\n"),
            "run.toml:2: parallel.rules = [\"embed -> tensor\"] has no effect with parallel.ranks = 1 (derived: pipe x "
            "data x "
            "tensor x context x space x expert)");
  EXPECT_EQ(warning("context = 2\nzero = 1\nshard_context = true\n"), "0 warnings");
  EXPECT_EQ(warning("tensor = 2\nsequence_parallel = true\nkeep_gathered = true\nwire = \"bf16\"\n"), "0 warnings");
}

// A saved run has every key given.
TEST(ResolveParallel, ASavedConfigurationIsNotWarnedOf) {
  for (const std::string text :
       {"", "[parallel]\ncontext = 2\n", "[parallel]\ncontext = 2\ncontext_method = \"ring\"\n",
        "[parallel]\ncontext = 2\ncontext_method = \"ulysses\"\n", "[parallel]\nranks = 2\nzero = 3\n",
        "[parallel]\npipe = 2\ntensor = 2\n", "[model]\nfamily = \"llama\"\n[train]\noptimizer = \"sgd\"\n"}) {
    const Resolved first = resolve(read_text(text, "run.toml"), 6);
    EXPECT_EQ(first.warnings, std::vector<std::string>{}) << text;
    const Resolved again = resolve(read_text(to_toml(first), "config.toml"), 6);
    EXPECT_EQ(again.warnings, std::vector<std::string>{}) << text;
  }
  // A value that differs from the derived one is the user's.
  EXPECT_EQ(resolve(read_text("[parallel]\ncontext_balance = \"contiguous\"\n", "run.toml"), 6).warnings.size(), 1u);
}

TEST(ResolveParallel, RanksThatShareCores) {
  EXPECT_EQ(resolved("data = 8\n").machine_warnings,
            Lines{"run.toml:2: 8 ranks of 1 thread each on 6 cores: they take turns, and a step takes at least 1.3 "
                  "times as long as on 8 cores"});
  EXPECT_EQ(resolved("data = 4\nthreads = 3\n").machine_warnings,
            Lines{"run.toml:3: 4 ranks of 3 threads each on 6 cores: they take turns, and a step takes at least 2.0 "
                  "times as long as on 12 cores"});
  EXPECT_TRUE(resolved("data = 2\nthreads = 3\n").machine_warnings.empty());
}

TEST(ResolveParallel, ALayoutMayChangeOnResume) {
  const Resolved saved = resolved("data = 2\ntensor = 2\n");
  const Lines sets = {"parallel.zero=3",
                      "parallel.shard_context=true",
                      "parallel.sequence_parallel=true",
                      "parallel.wire=bf16",
                      "parallel.keep_gathered=true",
                      "parallel.context_method=ring",
                      "parallel.transport=mpi",
                      "parallel.timeout_seconds=5",
                      "parallel.rules=vocab -> data",
                      "parallel.shard_group=2",
                      "parallel.mesh_order=tensor data context",
                      "parallel.bind=false",
                      "parallel.allow_repeat=true"};
  EXPECT_EQ(compare_for_resume(saved, resolved("data = 4\ncontext = 3\n", sets)), Lines{});
  EXPECT_EQ(compare_for_resume(saved, resolved("data = 2\ntensor = 2\n", {"train.reproducible=4"})),
            Lines{"train.reproducible"});
}

}  // namespace kintsugi::config::resolve_parallel_test

#include "kintsugi/config/resolve.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/testing.h"

namespace kintsugi::config::resolve_test {
namespace {

Resolved resolved(std::string_view text, const std::vector<std::string>& sets = {}) {
  return resolve(read_text(text, "run.toml", sets), 6);
}

std::string error_in(std::string_view text, const std::vector<std::string>& sets = {}) {
  return error_of([&] { resolved(text, sets); });
}

using Lines = std::vector<std::string>;

}  // namespace

TEST(Resolve, DerivedOfGpt) {
  const Resolved r = resolved("[train]\nglobal_batch = 12\nlearning_rate = 0.002\n");
  const Settings& s = r.settings;
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.model.ffn, 512);
  EXPECT_EQ(s.model.vocab, 0);
  EXPECT_EQ(s.model.context, 256);
  EXPECT_TRUE(s.model.bias);
  EXPECT_TRUE(s.model.tied);
  EXPECT_EQ(s.model.activation, "gelu_tanh");
  EXPECT_EQ(s.train.micro_batch, 6);
  EXPECT_EQ(s.train.min_learning_rate, 0.0002);
  EXPECT_EQ(s.train.decay_steps, 1000);
  EXPECT_EQ(s.parallel.threads, 6);
  EXPECT_EQ(r.origin("model.kv_heads").text(), "derived: heads");
  EXPECT_EQ(r.origin("train.micro_batch").text(),
            "derived: global_batch / reproducible, or the largest divisor of global_batch / data up to 8");
  EXPECT_EQ(r.origin("model.bias").text(), "derived: that of the family");
  EXPECT_TRUE(r.warnings.empty());
}

TEST(Resolve, ConversationsAreApartAndAdaptersHaveAScale) {
  const Resolved r = resolved("[data]\ntrain = \"chats.jsonl\"\n[lora]\nrank = 8\n");
  EXPECT_TRUE(r.settings.data.reset_at_document);
  EXPECT_EQ(r.origin("data.reset_at_document").text(), "derived: conversations are apart");
  EXPECT_EQ(r.settings.lora.alpha, 16);
  EXPECT_TRUE(r.warnings.empty());
  EXPECT_FALSE(resolved("[data]\ntrain = \"corpus/train\"\n").settings.data.reset_at_document);
  EXPECT_EQ(error_in("[data]\ntrain = \"chats.jsonl\"\nreset_at_document = false\n"),
            "[config] run.toml:3: data.reset_at_document = false would let conversations of one sample see each other; "
            "leave it out");
  EXPECT_EQ(resolved("[lora]\nalpha = 4\n[data]\nchat_template = \"chatml\"\n").warnings.size(), 2u);
}

TEST(Resolve, DerivedOfLlama) {
  const Resolved r = resolved("[model]\nfamily = \"llama\"\nembed = 288\nheads = 6\n");
  EXPECT_EQ(r.settings.model.ffn, 768);
  EXPECT_FALSE(r.settings.model.bias);
  EXPECT_FALSE(r.settings.model.tied);
  EXPECT_EQ(r.settings.model.activation, "silu");
  EXPECT_EQ(resolved("[model]\nfamily = \"llama\"\nembed = 4096\nheads = 32\n").settings.model.ffn, 10944);
}

TEST(Resolve, Experts) {
  const std::string model = "[model]\nfamily = \"llama\"\nexperts = 8\n";
  const Resolved r = resolved(model);
  EXPECT_EQ(r.settings.train.balance, "loss");
  EXPECT_EQ(r.settings.train.expert_bound, 4.0);
  EXPECT_EQ(resolved("").settings.train.balance, "none");
  const Resolved bias = resolved(model + "[train]\nbalance = \"bias\"\n");
  EXPECT_TRUE(bias.settings.model.router_bias);
  EXPECT_EQ(resolved(model + "router_bias = true\n").settings.train.balance, "bias");
  EXPECT_EQ(error_in(model + "experts_per_token = 9\n"),
            "[config] run.toml:4: model.experts_per_token = 9 is more than model.experts = 8");
  EXPECT_EQ(error_in(model + "[train]\nexpert_bound = 0\n"),
            "[config] run.toml:5: train.expert_bound = 0 is out of range; it must be a number above 0");
  EXPECT_TRUE(resolved(model + "bias_ffn = true\n").settings.model.bias_ffn);
  const Resolved both = resolved(model + "[train]\nbalance = \"both\"\n");
  EXPECT_TRUE(both.settings.model.router_bias);
  EXPECT_EQ(error_in(model + "router_bias = true\n[train]\nbalance = \"loss\"\n"),
            "[config] run.toml:6: train.balance = \"loss\" and model.router_bias = true contradict each other: the "
            "bias is what balances");
  EXPECT_EQ(resolved(model + "[parallel]\ndevice = \"emulated\"\n").settings.model.experts, 8);
}

TEST(Resolve, GroupsAndDenseLayersOfExperts) {
  const std::string model = "[model]\nfamily = \"llama\"\nexperts = 8\n";
  const Resolved r = resolved(model + "dense_layers = 1\nffn = 40\nexpert_groups = 4\ngroups_per_token = 2\n");
  EXPECT_EQ(r.settings.model.dense_ffn, 40);
  EXPECT_EQ(dense_width(r.settings.model), 40);
  EXPECT_FALSE(has_experts(r.settings.model, 0));
  EXPECT_TRUE(has_experts(r.settings.model, 1));
  EXPECT_EQ(error_in(model + "expert_groups = 3\n"),
            "[config] run.toml:4: model.experts = 8 is not divisible by model.expert_groups = 3; nearest "
            "expert_groups: 2, 4");
  EXPECT_EQ(error_in(model + "expert_groups = 2\ngroups_per_token = 3\n"),
            "[config] run.toml:5: model.groups_per_token = 3 is more than model.expert_groups = 2");
  EXPECT_EQ(error_in(model + "expert_groups = 4\nexperts_per_token = 3\n"),
            "[config] run.toml:5: model.experts_per_token = 3 is more than the 2 experts of model.groups_per_token = 1 "
            "(derived: that of the family)");
  EXPECT_EQ(error_in(model + "dense_layers = 4\n"),
            "[config] run.toml:4: model.dense_layers = 4 leaves no layer with experts of model.layers = 4 (default)");
  EXPECT_EQ(error_in(model + "gate_clamp = 7.0\nactivation = \"relu\"\n"),
            "[config] run.toml:4: model.gate_clamp = 7.0 needs model.gated = true and model.activation = \"silu\"");
}

TEST(Resolve, LatentAttention) {
  const std::string model = "[model]\nfamily = \"llama\"\nkv_rank = 16\n";
  const Resolved r = resolved(model + "head_dim = 6\nrotary_head_dim = 4\nvalue_head_dim = 12\n");
  EXPECT_EQ(width_of_head(r.settings.model), 12);
  EXPECT_EQ(width_of_value(r.settings.model), 12);
  const Resolved narrow = resolved(model + "head_dim = 5\nrotary_head_dim = 4\n");
  EXPECT_EQ(width_of_head(narrow.settings.model), 9);
  EXPECT_EQ(width_of_value(narrow.settings.model), 5);
  const std::string why = " is not possible with model.kv_rank = 16, latent attention: ";
  EXPECT_EQ(error_in(model), "[config] run.toml:3: model.rotary_head_dim = 0 (derived: that of the family)" + why +
                                 "rotary embedding turns pairs of these dims; it must be even and at least 2");
  EXPECT_EQ(error_in(model + "rotary_head_dim = 4\nkv_heads = 2\n"),
            "[config] run.toml:5: model.kv_heads = 2" + why + "each head has its own keys; set kv_heads = heads");
  EXPECT_EQ(error_in(model + "rotary_head_dim = 4\npositions = \"none\"\n"),
            "[config] run.toml:5: model.positions = \"none\"" + why + "positions must be \"rotary\"");
  EXPECT_EQ(error_in(model + "rotary_head_dim = 4\nquery_key_norm = \"head\"\n"),
            "[config] run.toml:5: model.query_key_norm = \"head\"" + why + "it must be \"none\"");
}

TEST(Resolve, TypesOfTokensNeedPairsOfTexts) {
  EXPECT_EQ(
      error_in("[model]\nfamily = \"llama\"\ntoken_types = 2\n"),
      "[config] run.toml:3: model.token_types = 2 is not possible with model.objective = \"next\" (derived: that of "
      "the family): tokens of one text have no types; leave it out");
}

// A bound is slots over the mean, rounded up; there are never more than tokens.
TEST(Resolve, SlotsOfExperts) {
  Model m;
  m.experts = 8;
  m.experts_per_token = 2;
  EXPECT_EQ(expert_capacity(m, 40, 0.0), 40);
  EXPECT_EQ(expert_capacity(m, 40, 1.0), 10);
  EXPECT_EQ(expert_capacity(m, 40, 1.1), 11);
  EXPECT_EQ(expert_capacity(m, 40, 1.11), 12);
  EXPECT_EQ(expert_capacity(m, 40, 4.0), 40);
  EXPECT_EQ(expert_capacity(m, 40, 9.0), 40);
  EXPECT_EQ(expert_capacity(m, 1, 0.1), 1);
}

TEST(Resolve, GivenValuesStay) {
  const Resolved r = resolved(
      "[model]\nfamily = \"llama\"\nbias = true\ntied = true\nkv_heads = 2\nffn = 100\ncontext = 512\n"
      "activation = \"relu\"\n[train]\nmin_learning_rate = 0\ndecay_steps = 10\n[parallel]\nthreads = 2\n");
  EXPECT_TRUE(r.settings.model.bias);
  EXPECT_TRUE(r.settings.model.tied);
  EXPECT_EQ(r.settings.model.kv_heads, 2);
  EXPECT_EQ(r.settings.model.ffn, 100);
  EXPECT_EQ(r.settings.model.context, 512);
  EXPECT_EQ(r.settings.model.activation, "relu");
  EXPECT_EQ(r.settings.train.min_learning_rate, 0.0);
  EXPECT_EQ(r.settings.train.decay_steps, 10);
  EXPECT_EQ(r.settings.parallel.threads, 2);
  EXPECT_EQ(r.origin("model.bias").text(), "run.toml:3");
}

TEST(Resolve, SequenceFollowsAShortContext) {
  const Resolved r = resolved("[model]\ncontext = 64\n");
  EXPECT_EQ(r.settings.train.sequence, 64);
  EXPECT_EQ(r.origin("train.sequence").text(), "derived: model.context");
  EXPECT_EQ(resolved("[model]\nname = \"gpt2\"\n").settings.train.sequence, 256);
}

TEST(Resolve, EveryNamedSizeResolves) {
  for (const NamedSize& size : test_catalog().sizes) {
    const Resolved r = resolved("[model]\nname = \"" + std::string(size.name) + "\"\n");
    Model expected = size.model;
    expected.head_dim = expected.embed / expected.heads;
    EXPECT_EQ(r.settings.model, expected) << size.name;
    EXPECT_EQ(r.origin("model.vocab").text(), "size " + std::string(size.name));
  }
}

TEST(Resolve, Heads) {
  EXPECT_EQ(
      error_in("[model]\nembed = 130\nheads = 4\n"),
      "[config] run.toml:2: model.embed = 130 is not divisible by model.heads = 4; nearest embed: 128, 132; nearest "
      "heads: 2, 5");
  EXPECT_EQ(
      error_in("[model]\nname = \"gpt2\"\n", {"model.heads=7"}),
      "[config] --set: model.embed = 768 (size gpt2) is not divisible by model.heads = 7; nearest embed: 763, 770; "
      "nearest heads: 6, 8");
  EXPECT_EQ(
      error_in("[model]\nheads = 200\n"),
      "[config] run.toml:2: model.embed = 128 (default) is not divisible by model.heads = 200; nearest embed: 200; "
      "nearest heads: 128");
  EXPECT_EQ(error_in("[model]\nembed = 96\nheads = 12\nkv_heads = 5\n"),
            "[config] run.toml:4: model.heads = 12 is not divisible by model.kv_heads = 5; nearest kv_heads: 4, 6");
  EXPECT_EQ(
      error_in("[model]\nfamily = \"llama\"\nembed = 60\nheads = 4\n"),
      "[config] run.toml:3: model.embed = 60 over model.heads = 4 is 15, an odd width of a head, but rotary embedding "
      "turns pairs; nearest embed: 56, 64");
  EXPECT_EQ(error_in("[model]\nembed = 60\nheads = 4\n"), "no error");
}

TEST(Resolve, Lengths) {
  EXPECT_EQ(
      error_in("[model]\ncontext = 128\n[train]\nsequence = 256\n"),
      "[config] run.toml:4: train.sequence = 256 is longer than model.context = 128; lower sequence or raise context");
  EXPECT_EQ(
      error_in("[model]\nname = \"gpt2\"\n[train]\nsequence = 2048\n"),
      "[config] run.toml:4: train.sequence = 2048 is longer than model.context = 1024 (size gpt2); lower sequence or "
      "raise context");
}

TEST(Resolve, Batches) {
  EXPECT_EQ(
      error_in("[train]\nglobal_batch = 12\nmicro_batch = 5\n"),
      "[config] run.toml:3: train.global_batch = 12 is not divisible by train.micro_batch = 5 x 1 data rank; nearest "
      "global_batch: 10, 15; nearest micro_batch: 4, 6");
  EXPECT_EQ(error_in("[train]\nmicro_batch = 16\n"),
            "[config] run.toml:2: train.global_batch = 8 (default) is not divisible by train.micro_batch = 16 x 1 data "
            "rank; nearest global_batch: 16; nearest micro_batch: 8");
  EXPECT_EQ(resolved("[train]\nglobal_batch = 13\n").settings.train.micro_batch, 1);
  EXPECT_EQ(resolved("[train]\nglobal_batch = 480\n").settings.train.micro_batch, 8);
}

TEST(Resolve, Schedules) {
  EXPECT_EQ(
      error_in("[train]\nlearning_rate = 1e-4\nmin_learning_rate = 1e-3\n"),
      "[config] run.toml:3: train.min_learning_rate = 0.001 is more than train.learning_rate = 0.0001; lower it, or "
      "leave it out for a tenth");
  EXPECT_EQ(error_in("[train]\nscale_learning_rate = \"sqrt\"\n"),
            "[config] run.toml:2: train.scale_learning_rate = \"sqrt\" needs train.base_batch, the batch that "
            "learning_rate was chosen for");
  EXPECT_EQ(
      error_in("[train]\nwarmup_steps = 50\ndecay_steps = 20\n"),
      "[config] run.toml:3: train.warmup_steps = 50 is more than train.decay_steps = 20: the decay would end before "
      "it begins");
  EXPECT_EQ(
      resolved("[train]\nsteps = 10\nwarmup_steps = 20\n").warnings,
      Lines{"run.toml:3: train.warmup_steps = 20 is more than train.steps = 10: the learning rate never reaches its "
            "maximum"});
}

// By default a run has a short warm-up and about twenty evaluations, which take little of its time.
TEST(Resolve, Pace) {
  const auto paced = [](const std::string& train) { return resolved("[data]\nvalidation = \"v\"\n[train]\n" + train); };
  const Resolved r = paced("");
  EXPECT_EQ(r.settings.train.warmup_steps, 10);
  EXPECT_EQ(r.origin("train.warmup_steps").text(),
            "derived: a hundredth of steps, or of decay_steps if that is smaller");
  EXPECT_EQ(r.settings.train.evaluate_every, 50);
  EXPECT_EQ(r.origin("train.evaluate_every").text(), "derived: a twentieth of steps; 0 of fewer than 20");
  EXPECT_EQ(r.settings.train.evaluate_batches, 12);
  EXPECT_EQ(r.settings.checkpoint.every_minutes, 10);
  EXPECT_EQ(r.origin("checkpoint.every_minutes").text(), "default");
  EXPECT_EQ(paced("steps = 99\n").settings.train.warmup_steps, 0);
  EXPECT_EQ(paced("steps = 99\n").settings.train.evaluate_every, 5);
  EXPECT_EQ(paced("steps = 19\n").settings.train.evaluate_every, 0);
  EXPECT_EQ(paced("steps = 20\n").settings.train.evaluate_every, 1);
  EXPECT_EQ(paced("steps = 99\n").settings.train.evaluate_batches, 4);
  EXPECT_EQ(paced("decay_steps = 20\n").settings.train.warmup_steps, 0);
  EXPECT_EQ(paced("micro_batch = 2\n").settings.train.evaluate_batches, 12);
  EXPECT_EQ(paced("evaluate_every = 0\n").settings.train.evaluate_batches, 0);
  EXPECT_EQ(resolved("").settings.train.evaluate_every, 0);
  EXPECT_EQ(resolved("").origin("train.evaluate_every").text(), "derived: there is no data.validation");
  const Resolved given = resolved("[train]\nwarmup_steps = 0\nevaluate_every = 0\nevaluate_batches = 0\n");
  EXPECT_EQ(given.settings.train.warmup_steps, 0);
  EXPECT_TRUE(given.warnings.empty());
}

TEST(Resolve, SchedulesWithTheirOwnPace) {
  const Resolved cycle = resolved("[train]\nsteps = 1000\nlearning_rate = 0.5\ndecay = \"one_cycle\"\n");
  EXPECT_EQ(cycle.settings.train.warmup_steps, 300);
  EXPECT_EQ(cycle.origin("train.warmup_steps").text(), "derived: 3 tenths of decay_steps");
  EXPECT_EQ(cycle.settings.train.min_learning_rate, 2e-6);
  EXPECT_EQ(cycle.origin("train.min_learning_rate").text(), "derived: a 250,000th of learning_rate");
  const Resolved stable = resolved("[train]\nsteps = 1000\ndecay = \"wsd\"\n");
  EXPECT_EQ(stable.settings.train.cooldown_steps, 200);
  EXPECT_EQ(
      error_of([] { resolved("[train]\nsteps = 100\nwarmup_steps = 50\ndecay = \"wsd\"\ncooldown_steps = 60\n"); }),
      "[config] run.toml:5: train.cooldown_steps = 60 is more than the 50 that train.decay_steps = 100 (derived: "
      "steps) leaves "
      "after the warm-up");
  EXPECT_EQ(resolved("[train]\ncooldown_steps = 60\n").warnings,
            Lines{"run.toml:2: train.cooldown_steps = 60 has no effect with train.decay = \"cosine\" (default)"});
}

TEST(Resolve, AveragesStayInMemory) {
  EXPECT_EQ(error_of([] { resolved("[train]\nema_decay = 0.9\n[parallel]\noffload = \"all\"\n"); }),
            "[config] run.toml:2: train.ema_decay = 0.9: validation reads averages, which parallel.offload = \"all\" "
            "would store in a file; leave one out");
}

TEST(Resolve, GradientsAreAtMostAsNarrowAsTheComputation) {
  const auto trained = [](const std::string& dtype) {
    return resolved("[train]\ndtype = \"" + dtype + "\"\ngradient_dtype = \"bf16\"\n");
  };
  EXPECT_EQ(trained("bf16").settings.train.gradient_dtype, "bf16");
  for (const std::string dtype : {"fp32", "fp16", "fp64"})
    EXPECT_EQ(error_of([&] { trained(dtype); }),
              "[config] run.toml:3: train.gradient_dtype = \"bf16\" needs train.dtype = \"bf16\", and there is "
              "train.dtype = \"" +
                  dtype + "\"; leave it out for " + (dtype == "fp64" ? "fp64" : "fp32"));
}

TEST(Resolve, KeysWithoutEffectAreTold) {
  EXPECT_EQ(resolved("[train]\nmomentum = 0.5\n").warnings,
            Lines{"run.toml:2: train.momentum = 0.5 has no effect with train.optimizer = \"adamw\" (default)"});
  EXPECT_EQ(resolved("[train]\noptimizer = \"sgd\"\nbetas = [0.5, 0.5]\n").warnings,
            Lines{"run.toml:3: train.betas = [0.5, 0.5] has no effect with train.optimizer = \"sgd\""});
  EXPECT_EQ(resolved("", {"train.evaluate_every=5"}).warnings,
            Lines{"--set: train.evaluate_every = 5 has no effect with data.validation = \"\" (default)"});
  EXPECT_TRUE(resolved("[train]\nmomentum = 0.9\n").warnings.empty());  // what it is anyway
  EXPECT_EQ(resolved("[data]\nfirst_token = 5\nmask_share = 0.5\ntrain_labels = \"x.csv\"\n").warnings,
            (Lines{"run.toml:3: data.mask_share = 0.5 has no effect with model.objective = \"next\" (derived: that of "
                   "the family)",
                   "run.toml:2: data.first_token = 5 has no effect with model.objective = \"next\" (derived: that of "
                   "the family)",
                   "run.toml:4: data.train_labels = \"x.csv\" has no effect with model.objective = \"next\" (derived: "
                   "that of the family)"}));
  EXPECT_EQ(
      resolved("[model]\nrotary_dims = 8\nwindow_layers = [\"full\"]\nrouter_scale = 2.0\n").warnings,
      (Lines{
          "run.toml:2: model.rotary_dims = 8 has no effect with model.positions = \"learned\" (derived: that of the "
          "family)",
          "run.toml:3: model.window_layers = [\"full\"] has no effect with model.window = 0 (derived: that of the "
          "family)",
          "run.toml:4: model.router_scale = 2.0 has no effect with model.experts = 0 (derived: that of the family)"}));
  EXPECT_EQ(resolved("[model]\nfamily = \"llama\"\nrope_factor = 2.0\n").warnings,
            Lines{"run.toml:3: model.rope_factor = 2.0 has no effect with model.rope_scaling = \"none\" (derived: that "
                  "of the family)"});
  EXPECT_TRUE(resolved("[model]\nfamily = \"llama\"\ntied = false\nrotary_dims = 8\n").warnings.empty());
  const std::string foreign =
      "features = 3\nimage_channels = 3\nimage_height = 8\nimage_dtype = \"fp32\"\npatch = 4\nclass_token = false\n"
      "router_bias = true\ndense_ffn = 8\ngate_slope = 2.0\nrope_factor = 3.0\nrope_truncate = false\n"
      "rope_score_magnitude = 0.5\nrope_short_factors = [1.0]\n";
  EXPECT_EQ(resolved("[model]\n" + foreign).warnings.size(), 13u);
  EXPECT_EQ(
      resolved("[model]\nstem = \"large\"\nfinal_norm_epsilon = 1e-12\n").warnings,
      (Lines{"run.toml:2: model.stem = \"large\" has no effect with model.family = \"gpt\" (default)",
             "run.toml:3: model.final_norm_epsilon = 1e-12 has no effect with model.family = \"gpt\" (default)"}));
}

TEST(Resolve, Tokenizer) {
  Resolved r = resolved("");
  fill_from_tokenizer(r, 65);
  EXPECT_EQ(r.settings.model.vocab, 65);
  EXPECT_EQ(r.origin("model.vocab").text(), "derived: the data tokenizer's");
  Resolved larger = resolved("[model]\nvocab = 100\n");
  fill_from_tokenizer(larger, 65);
  EXPECT_EQ(larger.settings.model.vocab, 100);
  EXPECT_EQ(
      error_of([&] { fill_from_tokenizer(larger, 257); }),
      "[config] run.toml:2: model.vocab = 100 is less than the 257 of the data's tokenizer; raise it, or leave it out");
  Resolved named = resolved("[model]\nname = \"llama2-7b\"\n");
  EXPECT_EQ(error_of([&] { fill_from_tokenizer(named, 50257); }),
            "[config] run.toml:2: model.vocab = 32000 (size llama2-7b) is less than the 50257 of the data's tokenizer; "
            "raise it, or leave it out");
}

TEST(Resolve, SamplesThatBeginWithAToken) {
  Resolved r = resolved("[data]\nbegin_samples = true\n");
  fill_from_tokenizer(r, 65, {.mask = -1, .first = 3, .separator = -1});
  EXPECT_EQ(r.settings.data.first_token, 3);
  r = resolved("[data]\nbegin_samples = true\nfirst_token = 7\n");
  EXPECT_TRUE(r.warnings.empty());
  fill_from_tokenizer(r, 65, {.mask = -1, .first = 3, .separator = -1});
  EXPECT_EQ(r.settings.data.first_token, 7);
  r = resolved("[data]\nbegin_samples = true\n");
  EXPECT_EQ(error_of([&] { fill_from_tokenizer(r, 65); }),
            "[config] run.toml:2: data.begin_samples = true needs a token, and the tokenizer puts none before texts; "
            "data.first_token names an id");
}

TEST(Resolve, Data) {
  EXPECT_EQ(error_of([] { require_data(resolved("")); }),
            "[config] data.train is missing; name the token file that `kintsugi prepare` wrote");
  require_data(resolved("[data]\ntrain = \"x\"\n"));
}

}  // namespace kintsugi::config::resolve_test

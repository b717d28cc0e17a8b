// The settings of a run: the sections of run.toml as plain data. Sizes in elements, times in the unit of the name. If a
// comment gives a rule, the value here (0, -1, an empty text) means "derived by this rule", and resolve() derives it.
// Every member has a row in keys.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/axes.h"

namespace kintsugi::config {

// The network. Where a comment says "the family's", the value here is that of gpt.
struct Model {
  std::string family = "gpt";  // a row of models/families
  std::string name;            // a published size ("gpt2"), whose numbers are defaults for the members below
  int64_t layers = 4;
  int64_t embed = 128;
  int64_t heads = 4;
  int64_t kv_heads = 0;  // heads
  int64_t head_dim = 0;  // embed / heads
  int64_t ffn = 0;       // by a rule of the family
  int64_t vocab = 0;     // the data tokenizer's
  int64_t context = 0;   // positions; train.sequence
  double dropout = 0.0;

  // Defaults from here on depend on the family. choices.h has the enumerated texts as types.
  bool bias = true;  // default of the next four
  bool bias_query_key_value = true;
  bool bias_output = true;  // attention output
  bool bias_ffn = true;
  bool bias_norm = true;
  bool bias_head = false;
  bool tied = true;                   // the head shares the embedding table
  std::string norm = "layer";         // layer | rms | rms_plus_one
  std::string norm_place = "before";  // before | after | output | both
  double norm_epsilon = 1e-5;
  std::string query_key_norm = "none";   // none | head | all
  std::string residual = "sequential";   // sequential | parallel | parallel_one_norm
  bool gated = false;                    // feed-forward layer
  std::string activation = "gelu_tanh";  // gelu | gelu_tanh | relu | relu2 | silu
  int64_t experts = 0;                   // feed-forward networks per layer, of size `ffn` each; 0: a single dense one
  int64_t experts_per_token = 2;
  std::string router_scores = "softmax";  // softmax | sigmoid
  bool router_normalize = true;           // scale the weights of a token's experts to sum to router_scale
  double router_scale = 1.0;
  bool router_bias = false;                     // added to the scores when selecting experts
  bool router_linear_bias = false;              // of the router's matmul
  int64_t shared_experts = 0;                   // experts of every token, as one layer of their total width
  int64_t dense_layers = 0;                     // leading layers with one dense network instead of experts
  int64_t dense_ffn = 0;                        // its inner width; ffn
  int64_t expert_groups = 1;                    // of consecutive experts
  int64_t groups_per_token = 1;                 // groups that the experts of a token are selected from
  double gate_clamp = 0.0;                      // of experts: bound of gate and up, which is then up + 1; 0: none
  double gate_slope = 1.702;                    // with gate_clamp: gate sigmoid(gate_slope gate)
  std::string positions = "learned";            // learned | rotary | none
  std::vector<std::string> rotary_layers = {};  // "rotary" or "none" per layer, repeated; empty: all rotary
  int64_t rotary_dims = 0;                      // per head; head_dim
  bool rotary_interleaved = false;
  double rope_theta = 10000.0;
  double rope_theta_window = 0.0;     // for layers with a window, unscaled; 0: same as the others
  std::string rope_scaling = "none";  // none | linear | llama3 | yarn | longrope
  double rope_factor = 1.0;
  int64_t rope_original_context = 0;            // before scaling
  double rope_low_factor = 1.0;                 // llama3
  double rope_high_factor = 4.0;                // llama3
  double rope_beta_fast = 32.0;                 // yarn
  double rope_beta_slow = 1.0;                  // yarn
  bool rope_truncate = true;                    // yarn
  double rope_magnitude = 0.0;                  // factor of cosine and sine; 0: 1, or as defined by yarn and longrope
  double rope_score_magnitude = 0.0;            // yarn: m of the factor (0.1 m ln rope_factor + 1)^2 of scores; 0: none
  std::vector<double> rope_short_factors = {};  // longrope, up to rope_original_context
  std::vector<double> rope_long_factors = {};   // longrope, beyond it
  int64_t window = 0;                           // positions visible to a query; 0: all
  std::vector<std::string> window_layers = {};  // "window" or "full" per layer, repeated; empty: all windowed
  double attention_scale = 0.0;                 // 1 / sqrt(head_dim)
  double attention_softcap = 0.0;               // 0: none
  bool attention_sinks = false;                 // a learned score per head, a key without value
  int64_t kv_rank = 0;                          // latent attention: width of the latent of keys and values; 0: none
  int64_t query_rank = 0;                       // latent attention: width of that of queries; 0: none
  int64_t rotary_head_dim = 0;                  // latent attention: further dims of a head, rotated; keys share them
  int64_t value_head_dim = 0;                   // latent attention; head_dim
  double embed_scale = 1.0;                     // 0: sqrt(embed)
  bool embed_norm = false;                      // normalize the embedded tokens
  int64_t token_types = 0;                      // token types with an embedding; 0: none
  bool causal = true;                           // attention sees only earlier positions
  std::string objective = "next";               // next | masked | masked_next | classes | numbers | pixels | fields
  int64_t features = 0;                         // numbers per sample, for numeric samples; the data's
  int64_t outputs = 0;                          // classes, numbers per sample, or channels of fields; the data's
  int64_t image_channels = 0;                   // for image samples; the data's
  int64_t image_height = 0;
  int64_t image_width = 0;
  int64_t image_depth = 0;            // of volumes; 0: two-dimensional images
  std::string image_dtype = "uint8";  // uint8 | fp32; of the data
  // Per channel, or one for all, of values from 0 to 1 (uint8) or as they are (fp32). Empty: 0.5 and 0.5, or 0 and 1.
  std::vector<double> image_mean = {};
  std::vector<double> image_deviation = {};
  int64_t patch = 0;                 // patch size in pixels along each dim, where images are cut into patches
  bool class_token = true;           // vit: classify the output of a learned token; otherwise the mean over all tokens
  double drop_path = 0.0;            // stochastic depth rate of the last block; grows linearly with depth from 0
  std::string stem = "auto";         // resnet: small | large | auto, by the image size
  double final_norm_epsilon = 1e-6;  // convnext: that of the norm in front of the head
  std::string batch_norm = "all";    // all | replica
  int64_t batch_norm_samples = 0;    // replica: consecutive samples that share batch statistics; train.micro_batch

  bool operator==(const Model&) const = default;
};

struct DataSource {
  std::string path;  // prefix of a .bin/.idx pair
  double weight = 1.0;

  bool operator==(const DataSource&) const = default;
};

struct ValidationFile {
  std::string domain;  // empty: unnamed, and the only one
  std::string path;    // prefix of a .bin/.idx pair

  bool operator==(const ValidationFile&) const = default;
};

struct Data {
  std::vector<DataSource> train;           // one path, or a table of path = weight
  std::vector<ValidationFile> validation;  // none, one path, or a table of domain = path
  bool reset_at_document = false;
  bool begin_samples = false;     // prepend first_token to samples of models that predict the next token
  std::string train_labels;       // of the documents in `train`, for objectives classes and numbers
  std::string validation_labels;  // of those in `validation`
  int64_t crop_padding = 0;       // training: pixels of padding from which a crop is taken
  bool flip = false;              // training: mirror half of the images
  double mask_share = 0.15;       // share of tokens to predict, for objectives masked and masked_next
  // Ids; -1: the tokenizer's; the last two may be absent there.
  int64_t mask_token = -1;
  int64_t first_token = -1;      // before a sample
  int64_t separator_token = -1;  // after each part of it
  std::string chat_template;     // for conversations: a row of text/chat_template; that of the tokenizer's folder
  std::string tokenizer;         // for conversations: a file or folder; that of train.init_from
  std::string long_conversations = "refuse";  // refuse | drop | cut, for those longer than train.sequence

  bool operator==(const Data&) const = default;
};

struct Train {
  std::string folder = "runs/default";
  int64_t steps = 1000;
  int64_t global_batch = 8;  // samples per step
  int64_t micro_batch =
      0;  // samples per pass; a unit of `reproducible`, or the largest divisor of global_batch / data up to 8
  int64_t sequence = 256;      // tokens per sample; 256, or model.context if that is set and smaller
  std::string dtype = "fp32";  // fp64 | fp32 | bf16 | fp16
  std::string gradient_dtype =
      "fp32";                         // fp32 (fp64 with fp64) | bf16: dtype of gradient accumulation and communication
  std::string optimizer = "adamw";    // a row of models/optimizers
  std::string method = "likelihood";  // likelihood | dpo | grpo
  double learning_rate = 1e-3;
  double min_learning_rate = -1.0;           // a tenth of learning_rate
  int64_t warmup_steps = -1;                 // a hundredth of steps, or of decay_steps if that is smaller
  std::string decay = "cosine";              // cosine | linear | constant | inverse_sqrt | step | one_cycle | wsd
  int64_t decay_steps = 0;                   // steps
  int64_t decay_every = 0;                   // steps between decays, for decay "step"
  double decay_factor = 0.1;                 // factor of each decay, for decay "step"
  int64_t cooldown_steps = 0;                // last steps of decay_steps, for decay "wsd"; a fifth of decay_steps
  double label_smoothing = 0.0;              // fraction of a class's weight that is spread over all classes
  double mixup = 0.0;                        // images: both parameters of the Beta distribution of weights; 0: off
  std::string loss = "mse";                  // mse | relative_l2, for the objective fields
  std::string scale_learning_rate = "none";  // none | linear | sqrt, by global_batch / base_batch
  int64_t base_batch = 0;                    // required unless scale_learning_rate is none
  std::vector<std::string> batch_warmup;     // "SAMPLES STEPS": the first steps with smaller batches; batch_warmup.h
  std::vector<double> betas = {0.9, 0.95};
  double epsilon = 1e-8;
  double momentum = 0.9;  // sgd, nesterov, lars
  double weight_decay = 0.1;
  double rho = 0.9;                  // adadelta: decay of the two means
  double trust_coefficient = 0.001;  // lars
  double muon_momentum = 0.95;       // muon; its other weights use betas and epsilon
  std::string muon_scale = "rms";    // rms | shape: how the size of a matrix scales its update
  double factor_decay = 0.8;         // adafactor: exponent of the decay of the second moments
  double factor_clip = 1.0;          // adafactor: largest root mean square of an update
  std::vector<std::string> rates;    // "PATTERN FACTOR": factors of the learning rate by names of weights
  double ema_decay = 0.0;            // of the moving average of the weights; 0: none
  double clip = 1.0;                 // 0: none
  std::string balance;               // none | loss | bias | both, for experts; bias with router_bias, else loss
  double balance_weight = 0.01;      // of the balance loss
  double balance_rate = 0.001;       // step size of the balance bias
  double z_loss = 0.0;               // weight of the z-loss of routers; 0: none
  double expert_bound = -1.0;        // slots of an expert per sample, relative to the mean; experts / experts_per_token
  std::string expert_overflow = "stop";  // stop | drop: for tokens without a free slot
  uint64_t seed = 1;
  int64_t reproducible = 0;          // units of a batch, summed in a fixed order; 0: off
  int64_t evaluate_every = -1;       // steps, a twentieth of all; 0: only at the end
  int64_t evaluate_batches = -1;     // batches of global_batch, by a rule in resolve.cpp; 0: the whole validation split
  int64_t sample_every = 0;          // steps; 0: never, unless there are prompts: evaluate_every, else steps
  std::vector<std::string> prompts;  // texts to continue; empty: one empty prompt, if sample_every is above 0
  int64_t sample_length = 50;        // tokens generated per prompt
  bool event_files = true;           // TensorBoard files, in addition to metrics.jsonl
  double stop_after_minutes = 0.0;   // 0: no limit
  std::string init_from;             // a checkpoint, a run's folder, or a Hugging Face folder
  std::vector<std::string> init_new;  // prefixes of names of weights that are not loaded from there
  std::vector<std::string> freeze;    // patterns of names of weights that are not trained

  bool operator==(const Train&) const = default;
};

// Low-rank adapters (Hu et al. 2021): y = x W + (alpha / rank) dropout(x) A B, where only A and B are trained.
struct Lora {
  int64_t rank = 0;                   // 0: no adapters
  double alpha = 0.0;                 // 2 rank
  double dropout = 0.0;               // of the adapters' input
  std::vector<std::string> targets;   // patterns of names of linear layers; empty: all in the blocks
  std::string frozen_dtype = "same";  // of the blocks' frozen matrices: same (as train.dtype) | bf16 | int8

  bool operator==(const Lora&) const = default;
};

// Direct preference optimization (Rafailov et al. 2023), for train.method "dpo".
struct Dpo {
  double beta = 0.1;  // weight of the log-ratio to the reference

  bool operator==(const Dpo&) const = default;
};

// Group-relative policy optimization (Shao et al. 2024) with verifiable rewards, for train.method "grpo".
struct Grpo {
  int64_t group = 8;                 // answers sampled per prompt
  int64_t length = 64;               // maximum number of tokens of an answer
  double temperature = 1.0;          // of sampling
  double clip = 0.0;                 // bound of the probability ratio's distance from 1; 0: none
  std::string reward = "exact";      // exact | number | pattern | program
  std::string pattern;               // regular expression, for reward "pattern"
  std::vector<std::string> program;  // command and arguments, for reward "program"
  double timeout_seconds = 10.0;     // for a line of the program

  bool operator==(const Grpo&) const = default;
};

// Sizes of mesh axes, and what they split (docs/parallel.md).
struct Parallel {
  int64_t ranks = 1;  // product of the axis sizes; given alone, it sets data
  // The axes; each has a row in axes.cpp.
  int64_t data = 1;
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t space = 1;
  int64_t pipe = 1;
  int64_t expert = 1;

  int64_t zero = 0;                               // 0 .. 3
  int64_t shard_group = 0;                        // data ranks that share one copy of the states; all of them
  bool shard_context = false;                     // shard states over the context axis too
  bool sequence_parallel = false;                 // split seq of the residual stream over tensor
  std::string context_method = "gathered";        // gathered | ring | ulysses; context.h
  std::string context_balance = {};               // zigzag | contiguous; zigzag, contiguous with ulysses
  std::string space_dims = "height width depth";  // dims that the space axis may split, in order of preference
  bool keep_gathered = false;                     // keep gathered activations from forward to backward
  bool keep_logits = true;                        // for a split vocabulary: keep logits from the loss to its gradient
  std::vector<std::string> rules = {};  // user rules, applied before those of the axes: "embed in contract -> tensor"
  bool allow_repeat = false;            // allow replicated work if an axis splits no dim; else that is an error
  std::string mesh_order = default_mesh_order();  // outermost first
  std::string schedule = "1f1b";                  // gpipe | 1f1b | interleaved | zero_bubble
  int64_t chunks = 1;                             // model parts per stage; several with interleaved
  std::string stages = {};                        // layers of each chunk, in order, "5 7"; balanced by cost
  std::string recompute = "none";                 // none | light | selective | full
  int64_t recompute_every = 1;                    // recompute every n-th layer
  std::string offload = "none";                   // none | optimizer | activations | all
  std::string offload_folder = {};                // on a fast disk; the run's folder
  std::string memory_per_rank = {};               // "16 GiB"; the machine's, divided by the ranks that share it
  std::string wire = "fp32";                      // fp32 | bf16: dtype of gradients in collectives
  double timeout_seconds = 600;
  std::string cluster = {};        // a machine description, for predicting the step time
  std::string device = "auto";     // auto | cpu | reference | emulated | cuda: where the ranks compute
  bool tf32 = false;               // round operands of fp32 matmuls on a device to TF32
  std::string transport = "auto";  // auto | threads | mpi
  std::string replicas = "trust";  // trust | check | broadcast: replicated states, at the start
  bool bind = true;                // bind threads to cores
  int64_t threads = 0;             // per rank; the usable cores divided by ranks

  int64_t check_replicas_every = 1000;  // steps between comparisons of replicated states, and before saves; 0: never

  bool operator==(const Parallel&) const = default;
};

struct Checkpoint {
  int64_t every = 0;            // steps; 0: not by steps
  double every_minutes = 10.0;  // since the last one; 0: not by time
  int64_t keep = 2;             // number of newest checkpoints kept, besides the best
  std::string local = {};       // folder on the node, written first and copied in the background; "": none
  bool neighbour = true;        // with local: a rank on another node keeps a copy of each part
  double drain_megabytes = 0;   // with local: per second and rank, at most, copied to the run's folder; 0: no limit

  bool operator==(const Checkpoint&) const = default;
};

// Accuracy on evaluation tasks during training (docs/tasks.md).
struct Evaluate {
  std::vector<std::string> tasks;  // names of tasks, or files of tasks
  std::string tasks_folder;        // of their data
  int64_t tasks_every = -1;        // steps; checkpoint.every, or train.evaluate_every if that is 0; 0: only at the end
  int64_t tasks_documents = 0;     // of each task, the first ones; 0: all

  bool operator==(const Evaluate&) const = default;
};

// What `kintsugi launch --with` does before the ranks start and after they fail.
struct Launch {
  int64_t max_restarts = 100;      // of a run, over all its jobs
  double exclude_hours = 24.0;     // a suspect node is not used for this long; 0: until the job ends
  double quiet_seconds = 60.0;     // a rank that gives no sign of life for this long is lost
  double check_seconds = 20.0;     // limit of the checks of nodes before the first step; 0: none
  bool shrink = true;              // continue with fewer ranks if no spare node is left
  double straggler_seconds = 5.0;  // between comparisons of the ranks' own time in steps; 0: none

  bool operator==(const Launch&) const = default;
};

struct Settings {
  Model model;
  Data data;
  Train train;
  Lora lora;
  Dpo dpo;
  Grpo grpo;
  Parallel parallel;
  Checkpoint checkpoint;
  Evaluate evaluate;
  Launch launch;

  bool operator==(const Settings&) const = default;
};

}  // namespace kintsugi::config

// The settings of a run: the sections of run.toml as plain data. Sizes in elements, times in the unit of the name. If
// a comment gives a rule, the value here (0, -1, an empty text) means "derived by this rule", and resolve() fills it
// in. Every member has its row in keys.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/axes.h"

namespace kintsugi::config {

// Of the network. Where a comment says "the family's", the value here is that of gpt.
struct Model {
  std::string family = "gpt";  // a row of models/families
  std::string name;            // a named size of the literature ("gpt2"); its numbers are defaults for those below
  int64_t layers = 4;
  int64_t embed = 128;
  int64_t heads = 4;
  int64_t kv_heads = 0;  // heads
  int64_t head_dim = 0;  // embed / heads
  int64_t ffn = 0;       // by a rule of the family
  int64_t vocab = 0;     // that of the data's tokenizer
  int64_t context = 0;   // positions; train.sequence
  double dropout = 0.0;

  // From here on the default of each is the family's. The choices of one word are types in choices.h.
  bool bias = true;  // the default of the next four
  bool bias_query_key_value = true;
  bool bias_output = true;  // of attention
  bool bias_ffn = true;
  bool bias_norm = true;
  bool bias_head = false;
  bool tied = true;                   // the head's weight is the embedding table
  std::string norm = "layer";         // layer | rms | rms_plus_one
  std::string norm_place = "before";  // before | after | output | both
  double norm_epsilon = 1e-5;
  std::string query_key_norm = "none";          // none | head | all
  std::string residual = "sequential";          // sequential | parallel | parallel_one_norm
  bool gated = false;                           // the feed-forward layer
  std::string activation = "gelu_tanh";         // gelu | gelu_tanh | relu | relu2 | silu
  int64_t experts = 0;  // feed-forward networks of a layer, of `ffn` each; 0: one for all tokens
  int64_t experts_per_token = 2;
  std::string router_scores = "softmax";  // softmax | sigmoid
  bool router_normalize = true;           // the weights of a token's experts sum to router_scale
  double router_scale = 1.0;
  bool router_bias = false;                     // added to the scores where experts are chosen
  std::string positions = "learned";            // learned | rotary | none
  std::vector<std::string> rotary_layers = {};  // "rotary" or "none" for each layer, repeated; empty: all are rotary
  int64_t rotary_dims = 0;                      // of each head; head_dim
  bool rotary_interleaved = false;
  double rope_theta = 10000.0;
  double rope_theta_window = 0.0;     // of layers with a window, unscaled; 0: as the others
  std::string rope_scaling = "none";  // none | linear | llama3 | yarn | longrope
  double rope_factor = 1.0;
  int64_t rope_original_context = 0;            // before scaling
  double rope_low_factor = 1.0;                 // llama3
  double rope_high_factor = 4.0;                // llama3
  double rope_beta_fast = 32.0;                 // yarn
  double rope_beta_slow = 1.0;                  // yarn
  bool rope_truncate = true;                    // yarn
  double rope_magnitude = 0.0;                  // of cosine and sine; 0: 1, or what yarn and longrope say
  std::vector<double> rope_short_factors = {};  // longrope, up to rope_original_context
  std::vector<double> rope_long_factors = {};   // longrope, beyond it
  int64_t window = 0;                           // positions that a query sees; 0: all
  std::vector<std::string> window_layers = {};  // "window" or "full" for each layer, repeated; empty: all have it
  double attention_scale = 0.0;                 // 1 / sqrt(head_dim)
  double attention_softcap = 0.0;               // 0: none
  double embed_scale = 1.0;                     // 0: sqrt(embed)
  bool embed_norm = false;                      // of the embedded tokens
  int64_t token_types = 0;                      // that have an embedding of their own; 0: none
  bool causal = true;                           // attention sees earlier positions alone
  std::string objective = "next";               // next | masked | masked_next | classes | numbers | pixels
  int64_t features = 0;                         // numbers of a sample, where samples are numbers; the data's
  int64_t outputs = 0;                          // classes, or numbers, that a sample is mapped to; the data's
  int64_t image_channels = 0;                   // where samples are images; the data's
  int64_t image_height = 0;
  int64_t image_width = 0;
  int64_t image_depth = 0;             // of volumes; 0: images of height and width alone
  std::string image_dtype = "uint8";   // uint8 | fp32; the data's
  int64_t patch = 0;                   // pixels of a patch along each dim, where images are cut into patches
  bool class_token = true;             // vit: a learned token whose output is classified; else the mean of all
  double drop_path = 0.0;              // of the branch of the last block; it grows linearly from 0 with the depth

  bool operator==(const Model&) const = default;
};

struct DataSource {
  std::string path;  // prefix of a .bin/.idx pair
  double weight = 1.0;

  bool operator==(const DataSource&) const = default;
};

struct ValidationFile {
  std::string domain;  // empty: it has no name, and there is no other
  std::string path;    // prefix of a .bin/.idx pair

  bool operator==(const ValidationFile&) const = default;
};

struct Data {
  std::vector<DataSource> train;           // one path, or a table of path = weight
  std::vector<ValidationFile> validation;  // none, one path, or a table of domain = path
  bool reset_at_document = false;
  bool begin_samples = false;     // with first_token, of models that predict the next token
  std::string train_labels;       // of the documents of `train`, with objective classes or numbers
  std::string validation_labels;  // of those of `validation`
  int64_t crop_padding = 0;       // pixels around images of which a crop is taken, in training
  bool flip = false;              // images left to right, one in two, in training
  double mask_share = 0.15;       // of the tokens that are predicted, with objective masked or masked_next
  // Ids; -1: the tokenizer's, and of the last two none if it has none.
  int64_t mask_token = -1;
  int64_t first_token = -1;      // before a sample
  int64_t separator_token = -1;  // behind each part of it
  std::string chat_template;     // of conversations: a row of text/chat_template; that of the tokenizer's folder
  std::string tokenizer;         // of conversations: a file or folder; that of train.init_from
  std::string long_conversations = "refuse";  // refuse | drop | cut: those that do not fit into train.sequence

  bool operator==(const Data&) const = default;
};

struct Train {
  std::string folder = "runs/default";
  int64_t steps = 1000;
  int64_t global_batch = 8;  // samples per step
  int64_t micro_batch =
      0;  // samples per pass; a unit of `reproducible`, or the largest divisor of global_batch / data up to 8
  int64_t sequence = 256;               // tokens per sample; 256, or model.context where that is given and shorter
  std::string dtype = "fp32";           // fp64 | fp32 | bf16 | fp16
  std::string gradient_dtype = "fp32";  // fp32 (fp64 with fp64) | bf16: in which gradients add up and are sent
  std::string optimizer = "adamw";      // a row of models/optimizers
  double learning_rate = 1e-3;
  double min_learning_rate = -1.0;           // a tenth of learning_rate
  int64_t warmup_steps = -1;                 // a hundredth of steps, or of decay_steps where that is less
  std::string decay = "cosine";              // cosine | linear | constant | inverse_sqrt | step
  int64_t decay_steps = 0;                   // steps
  int64_t decay_every = 0;                   // steps of a rate, of decay "step"
  double decay_factor = 0.1;                 // of the next rate, of decay "step"
  double label_smoothing = 0.0;              // share of a class's weight that all classes share
  std::string scale_learning_rate = "none";  // none | linear | sqrt, by global_batch / base_batch
  int64_t base_batch = 0;                    // needed where scale_learning_rate is not none
  std::vector<double> betas = {0.9, 0.95};
  double epsilon = 1e-8;
  double momentum = 0.9;  // sgd
  double weight_decay = 0.1;
  double clip = 1.0;  // 0: none
  std::string balance;                   // none | loss | bias: of experts; bias with router_bias, else loss
  double balance_weight = 0.01;          // of that loss
  double balance_rate = 0.001;           // of a step of that bias
  double expert_bound = -1.0;            // slots of an expert for a sample, over the mean; experts / experts_per_token
  std::string expert_overflow = "stop";  // stop | drop: a token that finds no slot
  uint64_t seed = 1;
  int64_t reproducible = 0;           // units of a batch, added in one fixed order; 0: off
  int64_t evaluate_every = -1;        // steps, a twentieth of all; 0: at the end only
  int64_t evaluate_batches = -1;      // of global_batch, a rule of resolve.cpp; 0: the whole validation split
  int64_t sample_every = 0;           // steps; 0: never, unless there are prompts: evaluate_every, or else steps
  std::vector<std::string> prompts;   // texts that are continued; empty: one without a text, if sample_every is above 0
  int64_t sample_length = 50;         // tokens that each is continued by
  bool event_files = true;            // of TensorBoard, beside the metrics
  double stop_after_minutes = 0.0;    // 0: no limit
  std::string init_from;              // a checkpoint, a run's folder, or a Hugging Face folder
  std::vector<std::string> init_new;  // beginnings of names of weights that are not taken from there
  std::vector<std::string> freeze;    // patterns of names of weights that are not trained

  bool operator==(const Train&) const = default;
};

// Low-rank adapters (Hu et al. 2021): y = x W + (alpha / rank) dropout(x) A B, where A and B alone are trained.
struct Lora {
  int64_t rank = 0;                  // 0: no adapters
  double alpha = 0.0;                // 2 rank
  double dropout = 0.0;              // of the adapters' input
  std::vector<std::string> targets;  // patterns of names of linear layers; empty: all of the blocks

  bool operator==(const Lora&) const = default;
};

// Sizes of mesh axes, and what they split (docs/parallel.md).
struct Parallel {
  int64_t ranks = 1;  // the product of the sizes of the axes; alone, it is data
  // The axes, each with its row in axes.cpp.
  int64_t data = 1;
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t space = 1;
  int64_t pipe = 1;
  int64_t expert = 1;

  int64_t zero = 0;                         // 0 .. 3
  int64_t shard_group = 0;                  // ranks of the data axis that share one copy of the states; all of them
  bool shard_context = false;               // states are split over the context axis too
  bool sequence_parallel = false;           // seq of the residual stream over tensor
  std::string context_method = "gathered";  // gathered | ring | ulysses; context.h
  std::string context_balance = {};         // zigzag | contiguous; zigzag, contiguous with ulysses
  std::string space_dims = "height width depth";  // that the space axis may split, in order of preference
  bool keep_gathered = false;               // a gathered activation is kept from forward to backward
  bool keep_logits = true;                  // of a split vocabulary, from the loss to its gradient
  std::vector<std::string> rules = {};      // the user's, before those of the numbers: "embed in contract -> tensor"
  bool allow_repeat = false;                // an axis that finds no dim to split repeats work; else that is an error
  std::string mesh_order = default_mesh_order();  // outermost first
  std::string schedule = "1f1b";                  // gpipe | 1f1b | interleaved | zero_bubble
  int64_t chunks = 1;                             // parts of the model on each stage; more with interleaved
  std::string stages = {};                        // layers of each chunk in order, "5 7"; balanced by cost
  std::string recompute = "none";                 // none | light | selective | full
  int64_t recompute_every = 1;                    // every n-th layer is recomputed
  std::string offload = "none";                   // none | optimizer | activations | all
  std::string offload_folder = {};                // on a fast disk; that of the run
  std::string memory_per_rank = {};               // "16 GiB"; the machine's, over the ranks that share it
  std::string wire = "fp32";                      // fp32 | bf16: in which gradients travel
  double timeout_seconds = 600;
  std::string cluster = {};        // a file that describes the machine, for the planned time of a step
  std::string device = "auto";     // auto | cpu | reference | emulated | cuda: where the ranks compute
  bool tf32 = false;               // products of fp32 on a device round their operands to TF32
  std::string transport = "auto";  // auto | threads | mpi
  std::string replicas = "trust";  // trust | check | broadcast: states that several ranks hold, at the start
  bool bind = true;                // threads are bound to cores
  int64_t threads = 0;             // per rank; the cores that the ranks may use, over ranks

  bool operator==(const Parallel&) const = default;
};

struct Checkpoint {
  int64_t every = 0;            // steps; 0: not by steps
  double every_minutes = 10.0;  // since the last one; 0: not by time
  int64_t keep = 2;             // newest ones kept, beside the best

  bool operator==(const Checkpoint&) const = default;
};

struct Settings {
  Model model;
  Data data;
  Train train;
  Lora lora;
  Parallel parallel;
  Checkpoint checkpoint;

  bool operator==(const Settings&) const = default;
};

}  // namespace kintsugi::config

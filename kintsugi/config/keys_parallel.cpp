// Keys of [parallel], [checkpoint], [launch] and [evaluate].
#include "kintsugi/config/axes.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/context.h"
#include "kintsugi/config/key_rows.h"

namespace kintsugi::config {
namespace {

using enum Resume;

template <auto M>
Key parallel(KeyRow row) {
  return key<&Settings::parallel, M>("parallel", std::move(row));
}

template <auto M>
Key checkpoint(KeyRow row) {
  return key<&Settings::checkpoint, M>("checkpoint", std::move(row));
}

template <auto M>
Key launch(KeyRow row) {
  return key<&Settings::launch, M>("launch", std::move(row));
}

template <auto M>
Key evaluate(KeyRow row) {
  return key<&Settings::evaluate, M>("evaluate", std::move(row));
}

// The key of a mesh axis, from its row.
Key size_of(const Axis& axis) {
  return {.section = "parallel",
          .name = axis.name,
          .allowed = Integer{1, kRanks},
          .get = [&axis](const Settings& s) -> Value { return axis.size(s.parallel); },
          .set = [&axis](Settings& s, const Value& value) { axis.set_size(s.parallel, std::get<int64_t>(value)); },
          .resume = Resume::free,
          .rule = "",
          .help = axis.help,
          .others = axis.others};
}

// "pipe x data x tensor x context"
std::string_view product_of_axes() {
  static const std::string kProduct = [] {
    std::string text;
    for (const Axis* axis : axes_of_product()) text += (text.empty() ? "" : " x ") + std::string(axis->name);
    return text;
  }();
  return kProduct;
}

std::vector<Key> other_parallel_keys() {
  return {
      parallel<&Parallel::zero>({"zero", Integer{0, 3}, free, "",
                                 "states sharded over the data axis: 1 optimizer, 2 also gradients, 3 also weights",
                                 "zero_stage fsdp stage sharding_strategy"}),
      parallel<&Parallel::shard_group>(
          {"shard_group", Integer{0, kRanks}, free, "",
           "shard within groups of this many data ranks, each with a full copy (hybrid sharding); 0: one group",
           "data_parallel_shard_degree hybrid_shard hsdp"}),
      parallel<&Parallel::shard_context>(
          {"shard_context", Boolean{}, free, "", "shard states over the context axis too", "shard_over_context"}),
      parallel<&Parallel::sequence_parallel>({"sequence_parallel", Boolean{}, free, "",
                                              "split the residual stream along tokens over the tensor axis",
                                              "sp enable_sequence_parallel"}),
      parallel<&Parallel::context_method>({"context_method", OneOf{words(context_methods())}, free, "",
                                           "attention across the context axis: gather keys and values, pass them "
                                           "around a ring, or exchange heads for tokens",
                                           "cp_comm_type"}),
      parallel<&Parallel::context_balance>(
          {"context_balance", OneOf{words(context_balances())}, free, "zigzag; contiguous with ulysses",
           "tokens per rank: one early and one late chunk (zigzag), or contiguous", "balance"}),
      parallel<&Parallel::space_dims>(
          {"space_dims", Text{"names of dims"}, free, "",
           "dims that the space axis may split; each factor splits the first that is long enough", "spatial_dims"}),
      parallel<&Parallel::keep_gathered>(
          {"keep_gathered", Boolean{}, free, "",
           "keep gathered activations for the backward pass instead of gathering them again", "reshard_after_forward"}),
      parallel<&Parallel::keep_logits>(
          {"keep_logits", Boolean{}, free, "",
           "with a split vocabulary, keep logits from the loss to its gradient instead of recomputing them",
           "loss_parallel"}),
      parallel<&Parallel::rules>({"rules", Texts{"a list of rules \"dim [in family] -> axes [, padded] [, in steps]\""},
                                  free, "", "user-defined rules, applied before those of the other keys", "plan rule"}),
      parallel<&Parallel::allow_repeat>(
          {"allow_repeat", Boolean{}, free, "",
           "allow an axis larger than the dims that it splits: its ranks repeat work or idle; otherwise an error",
           "allow_replication"}),
      parallel<&Parallel::mesh_order>({"mesh_order", Text{"the axes, outermost first"}, free, "",
                                       "order of mesh axes, outermost first; ranks along the last axis are adjacent",
                                       "axis_order order"}),
      parallel<&Parallel::schedule>({"schedule", OneOf{{"gpipe", "1f1b", "interleaved", "zero_bubble"}}, free, "",
                                     "pipeline schedule", "pipeline_schedule pp_schedule"}),
      parallel<&Parallel::chunks>({"chunks", Integer{1, 10'000}, free, "",
                                   "model chunks per stage; more than one with interleaved",
                                   "virtual_stages virtual_pipeline_model_parallel_size"}),
      parallel<&Parallel::stages>({"stages", Text{"how many layers each chunk has, in order: \"5 7\""}, free,
                                   "equal in computed cost", "layers of each chunk, in order",
                                   "split_points layers_per_stage"}),
      parallel<&Parallel::recompute>(
          {"recompute", OneOf{{"none", "light", "selective", "full"}}, free, "",
           "activation recomputation: none; norms and activations; core attention; or everything but layer inputs",
           "activation_checkpointing recompute_granularity gradient_checkpointing"}),
      parallel<&Parallel::recompute_every>(
          {"recompute_every", Integer{1, kWide}, free, "", "recompute every n-th layer", "recompute_num_layers"}),
      parallel<&Parallel::offload>({"offload", OneOf{{"none", "optimizer", "activations", "all"}}, free, "",
                                    "states and activations offloaded to a file, or on a GPU to host memory",
                                    "cpu_offload nvme_offload"}),
      parallel<&Parallel::offload_folder>({"offload_folder", Text{"a path"}, free, "the run's folder",
                                           "folder of the offload files, on a fast local disk",
                                           "nvme_path offload_path"}),
      parallel<&Parallel::memory_per_rank>(
          {"memory_per_rank", Text{"a size: \"16 GiB\""}, free,
           "the machine's memory, or the job's limit, divided by the ranks that share it",
           "memory limit per rank; a larger program is refused", "memory max_memory"}),
      parallel<&Parallel::wire>({"wire", OneOf{{"fp32", "bf16"}}, free, "",
                                 "dtype of gradients in collectives; fp32: not converted",
                                 "grad_reduce_dtype reduce_dtype mixed_precision_reduce"}),
      parallel<&Parallel::timeout_seconds>(
          {"timeout_seconds", kPositive, free, "",
           "timeout for other ranks and devices; the run then ends and names the ranks that did not respond",
           "timeout distributed_timeout_minutes nccl_timeout"}),
      parallel<&Parallel::cluster>({"cluster", Text{"a path"}, free, "",
                                    "cluster file of the machine, e.g. from kintsugi bench; runs print the predicted "
                                    "step time next to the measured one, and --layout auto uses it",
                                    "machine hardware"}),
      parallel<&Parallel::device>({"device", one_of(kDevices), free, "",
                                   "device of the ranks: cpu; reference, slow and simple kernels; cuda; emulated, GPU "
                                   "kernels on the CPU; auto: a GPU if usable, otherwise the CPU",
                                   "accelerator gpu kernels backend"}),
      parallel<&Parallel::tf32>({"tf32", Boolean{}, free, "",
                                 "fp32 matmuls on a GPU use TF32 operands: 8 times as fast, with a 10-bit fraction; "
                                 "train.dtype = \"bf16\" is faster still",
                                 "allow_tf32 matmul_precision float32_matmul_precision"}),
      parallel<&Parallel::transport>(
          {"transport", OneOf{{"auto", "threads", "mpi"}}, free, "",
           "transport between ranks: threads of one process, or MPI; auto: MPI if started under it",
           "backend distributed_backend"}),
      parallel<&Parallel::bind>({"bind", Boolean{}, free, "", "bind threads to cores", "binding affinity pin"}),
      parallel<&Parallel::replicas>(
          {"replicas", OneOf{{"trust", "check", "broadcast"}}, free, "",
           "replicated initial states: trust equal computation, check by checksum, or broadcast from the first rank",
           "broadcast_buffers sync_module_states"}),
      parallel<&Parallel::threads>({"threads", Integer{0, 10'000}, free, "available cores / ranks",
                                    "threads of each rank", "num_threads omp_num_threads cores"}),
      parallel<&Parallel::check_replicas_every>({"check_replicas_every", Integer{0, kMany}, free, "",
                                                 "steps between comparisons of replicated states by checksum; they are "
                                                 "also compared before each checkpoint; 0: never",
                                                 "replica_check_interval"}),
  };
}

}  // namespace

std::vector<Key> parallel_keys() {
  std::vector<Key> list = {parallel<&Parallel::ranks>({"ranks", Integer{0, kRanks}, free, product_of_axes(),
                                                       "number of ranks; if given alone, sets data",
                                                       "world_size num_gpus nproc_per_node nproc"})};
  for (const Axis& axis : axes()) list.push_back(size_of(axis));
  for (Key& key : other_parallel_keys()) list.push_back(std::move(key));
  return list;
}

std::vector<Key> checkpoint_keys() {
  return {
      checkpoint<&Checkpoint::every>({"every", Integer{0, kMany}, free, "",
                                      "steps between checkpoints; 0: by time, and at the end",
                                      "save_interval save_every interval save_steps"}),
      checkpoint<&Checkpoint::every_minutes>({"every_minutes", kNotNegative, free, "",
                                              "minutes between checkpoints; 0: by steps, and at the end",
                                              "save_minutes checkpoint_minutes interval_minutes"}),
      checkpoint<&Checkpoint::keep>({"keep", Integer{1, 1'000'000}, free, "",
                                     "number of newest checkpoints to keep, besides the best",
                                     "save_total_limit keep_last"}),
      checkpoint<&Checkpoint::local>(
          {"local", Text{"a path"}, free, "",
           "node-local folder: checkpoints are written there and copied to the run's folder in the background; empty: "
           "none",
           "local_checkpoint_dir staging_dir"}),
      checkpoint<&Checkpoint::neighbour>(
          {"neighbour", Boolean{}, free, "",
           "with local: a rank on another node keeps a copy of each part until it is in the run's folder",
           "neighbor buddy"}),
      checkpoint<&Checkpoint::drain_megabytes>(
          {"drain_megabytes", kNotNegative, free, "",
           "with local: megabytes per second that each rank copies to the run's folder at most; 0: no limit", ""}),
  };
}

std::vector<Key> launch_keys() {
  return {
      launch<&Launch::max_restarts>({"max_restarts", Integer{0, 1'000'000}, free, "",
                                     "maximum number of restarts, over all jobs of the run", "max_retries retries"}),
      launch<&Launch::exclude_hours>({"exclude_hours", kNotNegative, free, "",
                                      "hours for which a node that caused a failure is excluded; 0: until the job ends",
                                      "quarantine_hours"}),
      launch<&Launch::quiet_seconds>(
          {"quiet_seconds", kPositive, free, "",
           "seconds without a heartbeat after which a rank, a node or the launcher counts as lost",
           "heartbeat_timeout watchdog_seconds"}),
      launch<&Launch::check_seconds>({"check_seconds", kNotNegative, free, "",
                                      "time limit of the node and link checks before the first step; 0: no checks",
                                      "health_check_seconds"}),
      launch<&Launch::shrink>({"shrink", Boolean{}, free, "",
                               "continue with fewer ranks at the same global batch if too few nodes are left",
                               "elastic"}),
      launch<&Launch::straggler_seconds>(
          {"straggler_seconds", kNotNegative, free, "",
           "seconds between comparisons of the ranks' own time in steps, which find slow ranks; 0: none",
           "straggler_detection"}),
  };
}

std::vector<Key> evaluate_keys() {
  return {
      evaluate<&Evaluate::tasks>({"tasks", Texts{"a list of names, as \"piqa\", or of files of tasks"}, free, "",
                                  "evaluation tasks during training", "eval_tasks tasks_names"}),
      evaluate<&Evaluate::tasks_folder>({"tasks_folder", Text{"a path"}, free, "",
                                         "the folder with the published files of the tasks, or with a folder for each",
                                         "tasks_data"}),
      evaluate<&Evaluate::tasks_every>({"tasks_every", Integer{0, kMany}, free,
                                        "checkpoint.every, or train.evaluate_every if that is 0; 0 without tasks",
                                        "steps between evaluations of the tasks; 0: at the end only",
                                        "eval_tasks_every"}),
      evaluate<&Evaluate::tasks_documents>({"tasks_documents", Integer{0, kLarge}, free, "",
                                            "documents of each task, the first ones; 0: all", "eval_limit"}),
  };
}

}  // namespace kintsugi::config

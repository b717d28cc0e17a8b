// Figures of a device, each printed as lines "name: value unit" (all.sh reads them).
//
//   figures limits                what the device can do: products, and copies within its memory
//   figures train RUN.toml [N]    N steps (10) of random samples: tokens/s, memory, and how long the first step took
//   figures attention RUN.toml    attention and its gradient, of one layer and one pass, and what the gradients of
//                                 query, key and value give their operand and their weights: by a product for each,
//                                 and by one for all
//   figures bound RUN.toml        kernels that memory bounds, as a step calls them: bytes read and written in a second
//   figures decode RUN.toml [N]   N tokens (64) of one text, weights of zeros: bytes of weights read in a second
//
// and for each [section.key=value ...] as the command takes them; parallel.device says which device.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/random_samples.h"

namespace {

using namespace kintsugi;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Seconds since this process started, to a hundredth.
double age() {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  text.erase(0, text.rfind(')') + 2);  // the third field is the first here; the 22nd is the start
  double started = 0;
  for (int field = 3; field <= 22; ++field) {
    started = std::strtod(text.c_str(), nullptr);
    text.erase(0, text.find(' ') + 1);
  }
  double up = 0;
  std::ifstream("/proc/uptime") >> up;
  return up - started / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void say(std::string_view name, double value, std::string_view unit) {
  fmt::print("{}: {:.6g} {}\n", name, value, unit);
  std::fflush(stdout);
}

// Bytes of the device in use, according to its driver.
int64_t used(device::Device* device) {
  if (device == nullptr) return 0;
  const device::Properties p = device->properties();
  return p.memory - p.free;
}

// The time of one of several calls enqueued together, after a warm-up call.
double seconds_each(device::Stream& stream, int count, const std::function<void()>& enqueue) {
  enqueue();
  stream.synchronize();
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) enqueue();
  stream.synchronize();
  return seconds_since(begin) / count;
}

// The time of one of `count` calls of a device kernel; all dims of its operands are whole.
double seconds_of(const kernels::KernelSet& kernels, std::string_view kind, device::Stream& stream,
                  const std::vector<tensor::View>& ins, const std::vector<tensor::View>& outs,
                  const tensor::Attributes& attributes, int count, uint32_t accumulate = 0) {
  const kernels::Kernel& kernel = kernels.find(kind);
  std::vector<const tensor::Type*> in_types, out_types;
  std::map<std::string, int64_t> dims;
  const auto add = [&](const tensor::View& x, std::vector<const tensor::Type*>& types) {
    types.push_back(x.data == nullptr ? nullptr : &x.type);
    for (const tensor::Dim& dim : x.type.shape) dims[dim.name] = dim.size;
  };
  for (const tensor::View& x : ins) add(x, in_types);
  for (const tensor::View& x : outs) add(x, out_types);
  std::vector<kernels::NamedIndex> indices;
  for (const auto& [dim, size] : dims) indices.push_back({dim, tensor::DimIndex(size)});
  const kernels::KernelShapes shapes = {.ins = in_types, .outs = out_types, .attributes = attributes};
  const auto workspace = kernels.device()->allocate(kernel.workspace == nullptr ? 0 : kernel.workspace(shapes));
  const kernels::Numbers numbers;
  const auto later = kernels.device()->allocate(sizeof numbers);
  base::ThreadTeam team(1);
  return seconds_each(stream, count, [&] {
    kernel.run({.ins = ins,
                .outs = outs,
                .attributes = attributes,
                .indices = indices,
                .accumulate = accumulate,
                .workspace = {workspace->data(), static_cast<size_t>(workspace->bytes())},
                .numbers = numbers,
                .team = team,
                .stream = &stream,
                .later = reinterpret_cast<const kernels::Numbers*>(later->data()),
                .tf32 = kernels.tf32()});
  });
}

// Matmuls [size size] times [size size].
double product_rate(const kernels::KernelSet& kernels, tensor::DType dtype, int64_t size, int count) {
  device::Device& device = *kernels.device();
  const auto stream = device.stream();
  const tensor::Type a{{{"batch", size}, {"embed", size}}, dtype}, b{{{"embed", size}, {"ffn", size}}, dtype},
      c{{{"batch", size}, {"ffn", size}}, dtype};
  const auto of_a = device.allocate(a.bytes()), of_b = device.allocate(b.bytes()), of_c = device.allocate(c.bytes());
  const double seconds = seconds_of(kernels, "contract", *stream, {{of_a->data(), a}, {of_b->data(), b}, {}},
                                    {{of_c->data(), c}}, {}, count);
  return 2 * std::pow(static_cast<double>(size), 3) / seconds;
}

// Device memory with random bf16 numbers from -2 to 2.
std::unique_ptr<device::Memory> random_memory(device::Device& device, device::Stream& stream, int64_t elements) {
  auto made = device.allocate(2 * elements);
  const auto host = device.allocate_pinned(2 * elements);
  std::mt19937 random(1);
  auto* const to = reinterpret_cast<uint16_t*>(host->data());
  for (int64_t i = 0; i < elements; ++i)
    to[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(4 * static_cast<float>(random() >> 8) / (1 << 24) - 2) >> 16);
  stream.copy(made->data(), host->data(), 2 * elements);
  stream.synchronize();
  return made;
}

void print_attention(const config::Settings& s) {
  const auto kernels = compile::kernels_to_run(s);
  if (kernels->device() == nullptr) throw base::UserError("figures", "attention: parallel.device=cuda, or emulated");
  device::Device& device = *kernels->device();
  const auto stream = device.stream();
  const int64_t batch = s.train.micro_batch, seq = s.train.sequence, heads = s.model.heads,
                group = heads / s.model.kv_heads;
  const tensor::Type q{{{"batch", batch},
                        {"seq", seq},
                        {"kv_heads", s.model.kv_heads},
                        {"group", group},
                        {"head_dim", s.model.head_dim}},
                       tensor::DType::bf16};
  const tensor::Type k{
      {{"batch", batch}, {"key_seq", seq}, {"kv_heads", s.model.kv_heads}, {"head_dim", s.model.head_dim}},
      tensor::DType::bf16};
  const tensor::Type lse{{{"batch", batch}, {"seq", seq}, {"kv_heads", s.model.kv_heads}, {"group", group}},
                         tensor::DType::f32};
  std::vector<std::unique_ptr<device::Memory>> memory;
  const auto make = [&](const tensor::Type& type, bool random) -> tensor::View {
    memory.push_back(random ? random_memory(device, *stream, type.shape.elements()) : device.allocate(type.bytes()));
    return {memory.back()->data(), type};
  };
  const tensor::View of_q = make(q, true), of_k = make(k, true), of_v = make(k, true), o = make(q, false),
                     of_lse = make(lse, false), d_o = make(q, true), dq = make(q, false), dk = make(k, false),
                     dv = make(k, false);
  tensor::Attributes attributes;
  attributes.set("causal", int64_t{1});
  attributes.set("scale", 1 / std::sqrt(static_cast<double>(s.model.head_dim)));
  const auto time = [&](const char* kind, const std::vector<tensor::View>& ins, const std::vector<tensor::View>& outs,
                        uint32_t accumulate = 0) {
    const int count = device.emulated() ? 1 : 20;
    return 1e6 * seconds_of(*kernels, kind, *stream, ins, outs, attributes, count, accumulate);
  };
  say("attention", time("attention", {of_q, of_k, of_v, {}, {}, {}}, {o, of_lse}), "us");
  const std::vector<tensor::View> of_grad = {of_q, of_k, of_v, {}, {}, {}, o, of_lse, d_o};
  say("attention_grad", time("attention_grad", of_grad, {dq, dk, dv, {}, {}}), "us");

  const int64_t of_heads = heads * s.model.head_dim, of_keys = s.model.kv_heads * s.model.head_dim,
                embed = s.model.embed;
  const auto rows = [&](int64_t columns) {
    return tensor::Type{{{"batch", batch}, {"seq", seq}, {"columns", columns}}, tensor::DType::bf16};
  };
  const auto weight = [&](int64_t columns) {
    return tensor::Type{{{"embed", embed}, {"columns", columns}}, tensor::DType::bf16};
  };
  const tensor::View dx = make({{{"batch", batch}, {"seq", seq}, {"embed", embed}}, tensor::DType::bf16}, false);
  const int64_t all = of_heads + 2 * of_keys;
  const tensor::View dqkv = make(rows(all), true), of_all = make(weight(all), true);
  say("attention_grad, side by side", time("attention_grad", of_grad, {{}, {}, {}, {}, dqkv}), "us");
  double each = 0;
  std::vector<tensor::View> weights;
  for (const int64_t columns : {of_heads, of_keys, of_keys}) {
    weights.push_back(make(weight(columns), true));
    each += time("contract", {make(rows(columns), true), weights.back(), {}, {}, {}}, {dx, {}, {}},
                 weights.size() > 1 ? 1 : 0);
  }
  say("a product for each", each, "us");
  say("weights side by side", time("join_columns", weights, {of_all}), "us");
  say("a product for all", time("contract", {dqkv, of_all, {}, {}, {}}, {dx, {}, {}}), "us");

  // Weight gradients, accumulated.
  const tensor::View x = make({{{"batch", batch}, {"seq", seq}, {"embed", embed}}, tensor::DType::bf16}, true);
  std::vector<tensor::View> gradients;
  double alone = 0;
  const auto gradient = [&](int64_t columns) -> tensor::View {
    return make({{{"embed", embed}, {"columns", columns}}, tensor::DType::f32}, false);
  };
  for (const int64_t columns : {of_heads, of_keys, of_keys}) {
    gradients.push_back(gradient(columns));
    alone += time("contract", {x, make(rows(columns), true), {}, {}, {}}, {gradients.back(), {}, {}}, 1);
  }
  const tensor::View of_weights = gradient(all);
  say("a gradient for each", alone, "us");
  say("a gradient for all", time("contract", {x, dqkv, {}, {}, {}}, {of_weights, {}, {}}), "us");
  say("its columns", time("split_columns", {of_weights}, gradients, 0b111), "us");
}

// Norms of a pass, and the update of all parameters; in place where a step is.
void print_bound(const config::Settings& s) {
  const auto kernels = compile::kernels_to_run(s);
  if (kernels->device() == nullptr) throw base::UserError("figures", "bound: parallel.device=cuda, or emulated");
  device::Device& device = *kernels->device();
  const auto stream = device.stream();
  std::vector<std::unique_ptr<device::Memory>> memory;
  const auto make = [&](const tensor::Shape& shape, tensor::DType dtype) -> tensor::View {
    const tensor::Type type{shape, dtype};
    memory.push_back(device.allocate(type.bytes()));
    return {memory.back()->data(), type};
  };
  const auto time = [&](const char* kind, const std::vector<tensor::View>& ins, const std::vector<tensor::View>& outs,
                        const tensor::Attributes& attributes, double bytes, uint32_t accumulate = 0,
                        std::string_view more = "") {
    const double seconds =
        seconds_of(*kernels, kind, *stream, ins, outs, attributes, device.emulated() ? 1 : 20, accumulate);
    say(fmt::format("{}{}", kind, more), 1e-9 * bytes / seconds, "GB/s");
  };
  const tensor::DType f32 = tensor::DType::f32, f64 = tensor::DType::f64, dtype = tensor::dtype_from(s.train.dtype);
  const tensor::Shape rows({{"batch", s.train.micro_batch}, {"seq", s.train.sequence}, {"embed", s.model.embed}}),
      row({{"embed", s.model.embed}});
  const tensor::View x = make(rows, dtype), y = make(rows, dtype), dy = make(rows, dtype), gamma = make(row, dtype),
                     beta = make(row, dtype), dgamma = make(row, f32), dbeta = make(row, f32);
  tensor::Attributes norm;
  norm.set("epsilon", 1e-5);
  norm.set("whole", "embed");
  const auto bytes = static_cast<double>(x.type.bytes());
  time("layer_norm", {x, gamma, beta}, {y}, norm, 2 * bytes);
  time("layer_norm_grad", {x, gamma, dy}, {y, dgamma, dbeta}, norm, 4 * bytes, 1);
  // Bias gradients: of the output of a norm's gradient, and of wider values.
  time("layer_norm_grad", {x, gamma, dy}, {y, dgamma, dbeta, make(row, f32)}, norm, 4 * bytes, 9, " with sums");
  for (const int64_t times : {1, 3, 4}) {
    const tensor::Dim columns = {"columns", times * s.model.embed};
    const tensor::View wide = make({{{"batch", s.train.micro_batch}, {"seq", s.train.sequence}, columns}}, dtype);
    time("sum", {wide}, {make({{columns}}, f32)}, {}, static_cast<double>(times) * bytes, 1,
         fmt::format(" of {} times the columns", times));
  }
  const auto kept = s.model.layers * 12 * s.model.embed * s.model.embed + s.model.vocab * s.model.embed;
  const int64_t count = (kept + 1023) / 1024 * 1024;
  const tensor::Shape flat({{"flat", count}});
  const tensor::View w = make(flat, f32), g = make(flat, f32), m = make(flat, f32), v = make(flat, f32),
                     weight = make(flat, dtype), factor = make({}, f64), finite = make({}, f64),
                     updates = make({}, f64);
  time("sum_squares", {g}, {make({{"block", count / 1024}}, f64)}, {}, 4.0 * static_cast<double>(count));
  tensor::Attributes adamw;
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, double>>{
           {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}})
    adamw.set(name, value);
  time("adamw", {w, g, m, v, factor, finite, updates}, {w, m, v, weight}, adamw,
       static_cast<double>(count) * (7.0 * 4 + static_cast<double>(tensor::size_of(dtype))));
}

void print_limits(const config::Settings& s) {
  const auto kernels = compile::kernels_to_run(s);
  if (kernels->device() == nullptr) throw base::UserError("figures", "limits: parallel.device=cuda, or emulated");
  device::Device& device = *kernels->device();
  const bool small = device.emulated();
  const int64_t bytes = int64_t{1} << (small ? 20 : 30), size = small ? 32 : 8192;
  const auto from = device.allocate(bytes), to = device.allocate(bytes);
  const auto stream = device.stream();
  const auto copy = [&](const char* name, int64_t size_of_one) {
    const double seconds = seconds_each(*stream, 20, [&] { stream->copy(to->data(), from->data(), size_of_one); });
    say(name, 2e-9 * static_cast<double>(size_of_one) / seconds, "GB/s");
  };
  copy("copy", bytes);
  copy("copy of 48 MiB", std::max<int64_t>(bytes / 1024 * 48, 1));
  copy("copy of 96 MiB", std::max<int64_t>(bytes / 1024 * 96, 1));
  say("products in fp32", 1e-12 * product_rate(*kernels, tensor::DType::f32, size, 3), "TFLOP/s");
  if (s.train.dtype == "fp32") return;
  say("products in " + s.train.dtype,
      1e-12 * product_rate(*kernels, tensor::dtype_from(s.train.dtype), size, small ? 3 : 20), "TFLOP/s");
}

void train_some(const config::Settings& s, int steps) {
  const auto kernels = compile::kernels_to_run(s);
  const int64_t before = used(kernels->device());
  base::ThreadTeam team(static_cast<int>(s.parallel.threads));
  say("device opened after", age(), "s");
  std::vector<program::Program> programs = compile::compile({.settings = s, .kernels = *kernels});
  say("program made after", age(), "s");
  run::Executor executor(compile::program_of_rank(std::move(programs), 0), *kernels, team);
  say("bound after", age(), "s");
  const int64_t bound = used(kernels->device());
  executor.initialize(s.train.seed);
  say("ready to begin after", age(), "s");
  const int64_t rows = compile::samples_of_pass(s);
  samples::BatchMemory batch(rows, train::parts_of(s));
  train::RandomSamples(s).fill(0, batch.view());
  // As in a run: each step is enqueued while the previous one is in progress, and its loss is read one step later.
  constexpr std::array<std::string_view, 2> kLoss = {models::kLossSum, models::kLossCount};
  double loss = 0;
  const auto read = [&] {
    std::array<double, 2> sums = {};
    executor.answer(sums);
    loss = sums[0] / sums[1];
  };
  constexpr int kBefore = 3;  // the first chooses algorithms, the second captures
  Clock::time_point begin;
  for (int step = 0; step < steps + kBefore; ++step) {
    kernels::Numbers numbers = {
        .seed = s.train.seed, .step = step, .batch_rows = rows, .learning_rate = s.train.learning_rate};
    executor.run(program::Step::train, numbers,
                 [&](const run::Executor::Inputs& inputs) { evaluate::set_inputs(inputs, batch.view(), 0); });
    executor.ask(kLoss);
    if (step != kBefore) read();  // of this step, and from there on of the one before
    if (step == 0) say("the first step was done after", age(), "s");
    if (step + 1 == kBefore) begin = Clock::now();
  }
  read();
  const double step = seconds_since(begin) / steps;
  double parameters = 0, looked_up = 0;  // the latter are not multiplied with
  for (const program::StateInfo& state : executor.program().states) {
    if (state.kind != program::StateKind::weight || state.replica) continue;
    parameters += static_cast<double>(state.whole.shape.elements());
    if (state.name == "embedding.table" && !s.model.tied) looked_up = static_cast<double>(state.whole.shape.elements());
  }
  const double tokens = static_cast<double>(s.train.global_batch * s.train.sequence);
  const auto attention = static_cast<double>(12 * s.model.layers * s.model.heads * s.model.head_dim * s.train.sequence);
  say("parameters", parameters, "");
  say("step", 1e3 * step, "ms");
  say("rate", tokens / step, "tokens/s");
  say("arithmetic", 1e-12 * tokens / step * (6 * (parameters - looked_up) + attention), "TFLOP/s");
  say("loss", loss, "");
  say("planned memory", static_cast<double>(executor.allocated_bytes()), "bytes");
  if (kernels->device() == nullptr) return;
  say("memory of the process before, by the driver", static_cast<double>(before), "bytes");
  say("taken when bound, by the driver", static_cast<double>(bound - before), "bytes");
  say("taken after all steps, by the driver", static_cast<double>(used(kernels->device()) - before), "bytes");
}

void decode_some(const config::Settings& s, int count) {
  const auto kernels = compile::kernels_to_run(s);
  base::ThreadTeam team(static_cast<int>(s.parallel.threads));
  const models::Graphs graphs = models::build_generation(s, 1, std::min<int64_t>(16, s.model.context), s.model.context);
  run::Executor executor(
      compile::program_of_rank(compile::compile({.settings = s, .kernels = *kernels, .graphs = &graphs}), 0), *kernels,
      team);
  executor.initialize(s.train.seed, false);
  double bytes = 0, table = 0;
  for (const program::StateInfo& state : executor.program().states) {
    if (state.kind != program::StateKind::weight || state.replica) continue;
    const double size = static_cast<double>(state.whole.shape.elements()) *
                        static_cast<double>(tensor::size_of(executor.program().buffer(state.buffer).type.dtype));
    bytes += size;
    if (state.name == "embedding.table") table = size;
  }
  if (!s.model.tied) bytes -= table;  // of which a token reads a row
  std::vector<double> seconds;
  auto begin = Clock::now();
  const std::vector<int32_t> prompt(4, 1);
  evaluate::Generator generator(executor);
  generator.generate(prompt, {.temperature = 0}, [&](int32_t) {
    seconds.push_back(seconds_since(begin));
    begin = Clock::now();
    return static_cast<int>(seconds.size()) < count;
  });
  seconds.erase(seconds.begin(), seconds.begin() + std::min<std::ptrdiff_t>(std::ssize(seconds) - 1, 4));
  const double each = median(seconds);
  say("weights", bytes, "bytes");
  say("token", 1e3 * each, "ms");
  say("weights read", 1e-9 * bytes / each, "GB/s");
}

int measure(std::vector<std::string> arguments) {
  std::vector<std::string> sets;
  std::erase_if(arguments, [&](const std::string& a) {
    const bool is_set = a.find('=') != a.npos;
    if (is_set) sets.push_back(a);
    return is_set;
  });
  const std::string what = arguments.empty() ? "" : arguments[0];
  const bool known = what == "limits" || what == "train" || what == "attention" || what == "bound" || what == "decode";
  if (!known || (what != "limits" && arguments.size() < 2) || arguments.size() > (what == "limits" ? 1 : 3))
    throw base::UserError("figures",
                          "figures limits | train RUN.toml [STEPS] | attention RUN.toml | bound RUN.toml | decode "
                          "RUN.toml [TOKENS]; see the source");
  config::Resolved resolved =
      what == "limits"
          ? config::resolve(config::read_text("", "no file", models::catalog(), sets), base::usable_cores())
          : config::load(arguments[1], models::catalog(), sets, base::usable_cores());
  const config::Settings& s = resolved.settings;
  const int count = arguments.size() < 3 ? (what == "train" ? 10 : 64) : std::max(1, std::atoi(arguments[2].c_str()));
  if (what == "limits") print_limits(s);
  if (what == "train") train_some(s, count);
  if (what == "attention") print_attention(s);
  if (what == "bound") print_bound(s);
  if (what == "decode") decode_some(s, count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measure({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}

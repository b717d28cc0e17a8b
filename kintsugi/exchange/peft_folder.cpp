#include "kintsugi/exchange/peft_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/tensor_files.h"
#include "kintsugi/exchange/adapters.h"
#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

constexpr std::string_view kConfigName = "adapter_config.json", kTensorsName = "adapter_model.safetensors",
                           kModulePrefix = "base_model.model.", kWeightEnd = ".weight";
constexpr base::MostBytes kMostOfConfig = {16 << 20, "an adapter's configuration"};

// A layer within a module: the rows and columns of the module's [out in] matrix that its elements occupy.
struct PlacedLayer {
  AdaptedLayer layer;
  size_t expert = 0;                   // of a layer of experts: the one in the module
  std::vector<int64_t> columns, rows;  // of each element of the layer's input and output, row-major
};

struct Module {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  int64_t in = 0, out = 0;
  std::vector<PlacedLayer> layers;
};

// The indices along an axis of the tensor of the elements of the weight's dims [begin, end), row-major.
std::vector<int64_t> places(const MappedWeight& w, size_t begin, size_t end) {
  std::vector<int64_t> list = {0};
  for (size_t d = begin; d < end; ++d) {
    std::vector<int64_t> more;
    for (const int64_t at : list)
      for (int64_t i = 0; i < w.shape[d].size; ++i) more.push_back(at + i * w.stride[d]);
    list = std::move(more);
  }
  return list;
}

PlacedLayer placed(const MappedTensor& tensor, const MappedWeight& w, const AdaptedLayer& layer, Module& module) {
  const int64_t width = tensor.shape[1];
  const size_t begin = layer.of_experts() ? 1 : 0, end = begin + layer.inputs;
  std::vector<int64_t> in = places(w, begin, end), out = places(w, end, w.shape.rank());
  // A linear layer is [out in], GPT-2's Conv1D [in out].
  const bool turned = in.size() > 1 ? in[1] >= width : out.size() > 1 && out[1] < width;
  std::vector<int64_t>&across = turned ? out : in, &down = turned ? in : out;
  for (int64_t& at : across) at += w.first % width;
  for (int64_t& at : down) at = (at + w.first / width * width) / width;
  module.in = turned ? tensor.shape[0] : width;
  module.out = turned ? width : tensor.shape[0];
  return {.layer = layer, .expert = static_cast<size_t>(w.begin), .columns = std::move(in), .rows = std::move(out)};
}

// The modules containing these layers, in the order of the family's tensors.
std::vector<Module> modules_of(const config::Settings& settings, const std::vector<AdaptedLayer>& layers) {
  std::vector<Module> modules;
  for (const MappedTensor& tensor : weight_map(models::family(settings.model.family), settings.model)) {
    Module module = {
        .name = tensor.name.substr(0, tensor.name.size() - kWeightEnd.size()), .in = 0, .out = 0, .layers = {}};
    for (const MappedWeight& w : tensor.weights)
      for (const AdaptedLayer& layer : layers) {
        if (layer.weight() != w.name) continue;
        if (layer.of_experts() && w.shape[0].size != 1)
          throw base::UserError("model",
                                "PEFT has no adapters of {}, whose folders have one tensor for the experts of a layer: "
                                "{}; leave experts out of lora.targets, or merge them: kintsugi export --merge",
                                settings.model.family, tensor.name);
        module.layers.push_back(placed(tensor, w, layer, module));
      }
    if (!module.layers.empty()) modules.push_back(std::move(module));
  }
  return modules;
}

// "q_proj" if all modules with that suffix are included, otherwise the whole name.
std::vector<std::string> target_modules(const std::vector<Module>& modules, const std::vector<Module>& all) {
  const auto ending = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::map<std::string, std::pair<size_t, size_t>> counts;  // of these, of all
  for (const Module& m : modules) ++counts[ending(m.name)].first;
  for (const Module& m : all) ++counts[ending(m.name)].second;
  std::set<std::string> names;
  for (const Module& m : modules) {
    const auto [these, any] = counts.at(ending(m.name));
    names.insert(these == any ? ending(m.name) : m.name);
  }
  return {names.begin(), names.end()};
}

// Targets that match every layer that a folder of adapters can hold.
std::vector<std::string> all_layers(const config::Model& model) {
  const auto& weights = models::family(model.family).hugging_face.weights;
  const bool each = std::ranges::any_of(weights, [](const models::WeightRow& row) { return !row.each.empty(); });
  return each ? std::vector<std::string>{"*"} : std::vector<std::string>{};
}

std::string print_config(const config::Settings& s, const std::string& base, const std::vector<Module>& modules) {
  config::Settings everywhere = s;
  everywhere.lora.targets = all_layers(s.model);
  const std::vector<std::string> targets = target_modules(modules, modules_of(everywhere, adapted_layers(everywhere)));
  base::JsonWriter json(2);
  json.object([&] {
    json.key("peft_type").value("LORA").key("task_type").value("CAUSAL_LM");
    json.key("base_model_name_or_path").value(base);
    json.key("r").value(s.lora.rank).key("lora_alpha").value(s.lora.alpha).key("lora_dropout").value(s.lora.dropout);
    json.key("target_modules").list([&] {
      for (const std::string& name : targets) json.value(name);
    });
    // For modules that comprise several of our layers, the combined rank and alpha.
    for (const auto& [key, one] :
         {std::pair{"rank_pattern", static_cast<double>(s.lora.rank)}, std::pair{"alpha_pattern", s.lora.alpha}})
      json.key(key).object([&] {
        for (const Module& m : modules)
          if (m.layers.size() > 1) {
            const double all = one * static_cast<double>(m.layers.size());
            key == std::string_view("rank_pattern") ? json.key(m.name).value(static_cast<int64_t>(all))
                                                    : json.key(m.name).value(all);
          }
      });
    json.key("bias").value("none").key("fan_in_fan_out").value(s.model.family == "gpt");
    json.key("inference_mode").value(true).key("init_lora_weights").value(true);
    json.key("use_rslora").value(false).key("use_dora").value(false).key("modules_to_save").null();
  });
  return json.text() + "\n";
}

void write_floats(checkpoint::SafetensorsWriter& writer, const std::vector<float>& values) {
  writer.write(std::as_bytes(std::span(values)));
}

// --- reading ---

// The rank or alpha of a module: by the first pattern that matches its name, or a suffix of it after a dot.
double of_module(const std::optional<base::Json>& patterns, const std::string& module, double otherwise) {
  if (!patterns || patterns->is_null()) return otherwise;
  for (const base::Json& entry : patterns->members()) {
    const std::string key(entry.key());
    if (module == key || module.ends_with("." + key)) return entry.number();
  }
  return otherwise;
}

// Members that would change the computation; must be absent, null, false or empty.
void require_plain(const base::Json& config) {
  for (const char* key : {"use_dora", "modules_to_save", "layer_replication", "megatron_config",
                          "trainable_token_indices", "target_parameters", "lora_bias", "alora_invocation_tokens"}) {
    const auto member = config.find(key);
    if (!member || member->is_null()) continue;
    const bool empty =
        (member->is_list() && member->list().empty()) || (member->is_object() && member->members().empty());
    if (!empty && !(member->shown() == "false")) member->refuse("absent: such adapters are not computed here");
  }
  if (const auto bias = config.find("bias"); bias && bias->text() != "none")
    bias->refuse("\"none\": biases are not part of adapters here");
  if (const auto type = config.at("peft_type"); type.text() != "LORA") type.refuse("\"LORA\"");
}

std::vector<float> read_floats(const checkpoint::TensorInFile& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  tensor.read_at(0, bytes);
  std::vector<float> values;
  tensor::dispatch(tensor.dtype, [&]<typename T>(T) {
    values.resize(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<float>(static_cast<tensor::arithmetic_t<T>>(value));
    }
  });
  return values;
}

// "attention.query" if the adapter has it in every layer, otherwise the whole names.
std::vector<std::string> targets_of(const std::set<std::string>& layers, int64_t num_layers) {
  std::map<std::string, int64_t> counts;
  for (const std::string& name : layers) ++counts[name.substr(name.find('.') + 1)];
  std::set<std::string> targets;
  for (const std::string& name : layers) {
    const std::string end = name.substr(name.find('.') + 1);
    targets.insert(counts.at(end) == num_layers ? end : name);
  }
  return {targets.begin(), targets.end()};
}

// The factors of a module as stored in the files.
struct TheirFactors {
  const Module* module = nullptr;
  int64_t rank = 0;
  double scale = 0;
  std::vector<float> a, b;  // [rank in], [out rank]
};

class AdaptedSource : public checkpoint::TensorSource {
 public:
  AdaptedSource(std::unique_ptr<checkpoint::TensorSource> base, Adapter adapter, fs::path folder)
      : base_(std::move(base)), adapter_(std::move(adapter)), folder_(std::move(folder)) {
    for (const auto& [name, factor] : adapter_.factors) types_[name] = {factor.first, DType::f32};
  }

  const fs::path& folder() const override { return folder_; }
  const tensor::Type& type(std::string_view name) const override {
    const auto found = types_.find(name);
    return found == types_.end() ? base_->type(name) : found->second;
  }
  void read(const checkpoint::Slice& slice, DType dtype, std::span<std::byte> out) const override {
    const auto found = adapter_.factors.find(slice.name);
    if (found == adapter_.factors.end()) return base_->read(slice, dtype, out);
    const auto& [shape, values] = found->second;
    const checkpoint::Box all = checkpoint::whole_box(shape), box = slice.box.value_or(all);
    const checkpoint::Part wanted = {box, slice.flat.value_or(checkpoint::whole_range(box))},
                           whole = {all, checkpoint::whole_range(all)};
    tensor::dispatch(dtype, [&]<typename T>(T) {
      checkpoint::for_each_common_run(whole, wanted, [&](int64_t from, int64_t to, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const T value = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(values[static_cast<size_t>(from + i)]));
          std::memcpy(out.data() + static_cast<size_t>(to + i) * sizeof(T), &value, sizeof(T));
        }
      });
    });
  }
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override {
    base_->verify(share, shares, wanted);
  }
  void trust(const std::function<bool(std::string_view)>& wanted) const override { base_->trust(wanted); }

 private:
  std::unique_ptr<checkpoint::TensorSource> base_;
  Adapter adapter_;
  fs::path folder_;
  std::map<std::string, tensor::Type, std::less<>> types_;
};

}  // namespace

bool is_adapter_folder(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kConfigName, error);
}

ExportedAdapter write_adapter(const checkpoint::TensorSource& from, const config::Settings& s, const std::string& base,
                              const fs::path& folder) {
  const std::vector<Module> modules = modules_of(s, adapted_layers(s));
  std::vector<checkpoint::SafetensorsTensor> tensors;
  ExportedAdapter result;
  for (const Module& m : modules) {
    const auto rank = s.lora.rank * std::ssize(m.layers);
    const std::string name = std::string(kModulePrefix) + m.name;
    tensors.push_back({.name = name + ".lora_A.weight", .dtype = DType::f32, .shape = {rank, m.in}});
    tensors.push_back({.name = name + ".lora_B.weight", .dtype = DType::f32, .shape = {m.out, rank}});
  }
  for (const auto& tensor : tensors) result.bytes += tensor.bytes();
  result.tensors = tensors.size();
  checkpoint::SafetensorsWriter writer(folder / kTensorsName, tensors, {{"format", "pt"}}, base::Writing::to_disk);
  for (const Module& m : modules) {
    const int64_t rank = s.lora.rank, all = rank * std::ssize(m.layers);
    std::vector<float> a(static_cast<size_t>(all * m.in), 0.0f), b(static_cast<size_t>(m.out * all), 0.0f);
    for (size_t i = 0; i < m.layers.size(); ++i) {
      const PlacedLayer& p = m.layers[i];
      const Factors factors = read_factors(from, p.layer);
      const int64_t first = static_cast<int64_t>(i) * rank, out = p.layer.out();
      const float *own_a = factors.a.data() + p.expert * p.columns.size() * static_cast<size_t>(rank),
                  *own_b = factors.b.data() + p.expert * p.rows.size() * static_cast<size_t>(rank);
      for (int64_t r = 0; r < rank; ++r) {
        for (size_t k = 0; k < p.columns.size(); ++k)
          a[static_cast<size_t>((first + r) * m.in + p.columns[k])] =
              own_a[k * static_cast<size_t>(rank) + static_cast<size_t>(r)];
        for (size_t n = 0; n < p.rows.size(); ++n)
          b[static_cast<size_t>(p.rows[n] * all + first + r)] = own_b[static_cast<size_t>(r * out) + n];
      }
    }
    write_floats(writer, a);
    write_floats(writer, b);
  }
  writer.close();
  base::write_file_atomically(folder / kConfigName, print_config(s, base, modules));
  return result;
}

fs::path base_of(const fs::path& folder) {
  const fs::path path = folder / kConfigName;
  const base::Json config = base::Json::parse("model", path.string(), base::read_file(path, kMostOfConfig));
  const base::Json named = config.at("base_model_name_or_path");
  if (named.is_null()) named.refuse("the folder of the model that the adapter belongs to");
  const fs::path base = std::string(named.text());
  std::error_code error;
  for (const fs::path& candidate : {base, folder / base})
    if (!base.empty() && fs::is_directory(candidate, error)) return candidate;
  named.refuse("a folder that is there: that of the model that the adapter belongs to");
}

Adapter read_adapter(const fs::path& folder, const config::Settings& base) {
  const fs::path path = folder / kConfigName;
  const base::Json config = base::Json::parse("model", path.string(), base::read_file(path, kMostOfConfig));
  require_plain(config);
  const double rank = static_cast<double>(config.at("r").whole(1, 1'000'000)), alpha = config.at("lora_alpha").number();
  const auto ranks = config.find("rank_pattern"), alphas = config.find("alpha_pattern");
  const auto rooted = config.find("use_rslora");
  const bool by_root = rooted && rooted->boolean();

  config::Settings everywhere = base;
  everywhere.lora = {.rank = 1, .alpha = 1, .dropout = 0, .targets = all_layers(base.model)};
  const std::vector<Module> modules = modules_of(everywhere, adapted_layers(everywhere));
  const checkpoint::TensorFiles files(folder / kTensorsName);
  std::set<std::string> known;
  std::vector<TheirFactors> list;
  for (const Module& m : modules) {
    const std::string name = std::string(kModulePrefix) + m.name, a = name + ".lora_A.weight",
                      b = name + ".lora_B.weight";
    if (!files.has(a) && !files.has(b)) continue;
    known.insert({a, b});
    TheirFactors f;
    f.module = &m;
    f.rank = std::llround(of_module(ranks, m.name, rank));
    const double own_alpha = of_module(alphas, m.name, alpha), r = static_cast<double>(f.rank);
    f.scale = by_root ? own_alpha / std::sqrt(r) : own_alpha / r;
    for (const auto& [tensor, rows, columns] : {std::tuple{a, f.rank, m.in}, std::tuple{b, m.out, f.rank}}) {
      const checkpoint::TensorInFile& stored = files.at(tensor);
      const std::vector<int64_t> wanted = {rows, columns};
      if (!is_floating(stored.dtype) || !std::ranges::equal(stored.shape, wanted))
        throw base::UserError("model", "{}: tensor {} must be [{}, {}] for this model and rank",
                              base::in_quotes(folder.string()), base::in_quotes(tensor), rows, columns);
    }
    f.a = read_floats(files.at(a));
    f.b = read_floats(files.at(b));
    list.push_back(std::move(f));
  }
  for (const auto& [name, tensor] : files.tensors())
    if (!known.contains(name))
      throw base::UserError("model", "{}: tensor {} is not an adapter of a linear layer of this model",
                            base::in_quotes(folder.string()), base::in_quotes(name));
  if (list.empty())
    throw base::UserError("model", "{} holds no adapters", base::in_quotes((folder / kTensorsName).string()));

  Adapter adapter;
  for (const TheirFactors& f : list) adapter.lora.rank = std::max(adapter.lora.rank, f.rank);
  const double scale = list.front().scale;
  const auto most = static_cast<size_t>(adapter.lora.rank);
  adapter.lora.alpha = scale * static_cast<double>(adapter.lora.rank);
  if (const auto dropout = config.find("lora_dropout")) adapter.lora.dropout = dropout->number();
  std::set<std::string> names;
  const auto factor = [&](const std::string& name, const tensor::Shape& shape) -> std::vector<float>& {
    auto& [whole, values] = adapter.factors[name];
    if (values.empty()) {
      std::vector<tensor::Dim> dims = shape.dims();
      std::ranges::find(dims, "lora", &tensor::Dim::name)->size = adapter.lora.rank;
      whole = tensor::Shape(dims);
      values.resize(static_cast<size_t>(whole.elements()), 0.0f);
    }
    return values;
  };
  for (const TheirFactors& f : list)
    for (const PlacedLayer& p : f.module->layers) {
      const size_t in = p.columns.size(), out = p.rows.size(), r = static_cast<size_t>(f.rank);
      const auto with_rank = static_cast<float>(scale == 0 ? 1.0 : f.scale / scale);
      // Experts that the folder leaves out keep zeros.
      std::vector<float>&a_whole = factor(p.layer.name + std::string(models::kLoraA), p.layer.a),
      &b_whole = factor(p.layer.name + std::string(models::kLoraB), p.layer.b);
      float *a = a_whole.data() + p.expert * in * most, *b = b_whole.data() + p.expert * most * out;
      for (size_t i = 0; i < r; ++i) {
        for (size_t k = 0; k < in; ++k)
          a[k * most + i] = f.a[i * static_cast<size_t>(f.module->in) + static_cast<size_t>(p.columns[k])];
        for (size_t n = 0; n < out; ++n) b[i * out + n] = with_rank * f.b[static_cast<size_t>(p.rows[n]) * r + i];
      }
      names.insert(p.layer.name);
    }
  adapter.lora.targets = targets_of(names, base.model.layers);
  for (const auto& [name, factor] : adapter.factors)
    adapter.checksum = adapter.checksum * 1'099'511'628'211u ^
                       checkpoint::checksum_of(std::string_view(reinterpret_cast<const char*>(factor.second.data()),
                                                                factor.second.size() * sizeof(float)));
  return adapter;
}

std::unique_ptr<checkpoint::TensorSource> with_adapter(std::unique_ptr<checkpoint::TensorSource> base, Adapter adapter,
                                                       const fs::path& folder) {
  return std::make_unique<AdaptedSource>(std::move(base), std::move(adapter), folder);
}

}  // namespace kintsugi::exchange

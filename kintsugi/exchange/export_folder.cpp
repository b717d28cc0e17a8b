#include "kintsugi/exchange/export_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/exchange/adapters.h"
#include "kintsugi/exchange/averaged_source.h"
#include "kintsugi/exchange/export_tokenizer.h"
#include "kintsugi/exchange/image_processor.h"
#include "kintsugi/exchange/new_folder.h"
#include "kintsugi/exchange/not_finite.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/peft_folder.h"
#include "kintsugi/exchange/quantized.h"
#include "kintsugi/exchange/read_strided.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;
using checkpoint::Box;
using checkpoint::Range;
using checkpoint::SafetensorsTensor;
using checkpoint::SafetensorsWriter;
using checkpoint::TensorSource;

// A tensor of the folder and its storage.
struct Planned {
  MappedTensor tensor;
  SafetensorsTensor stored;
};

// In the order used by the safetensors library: by decreasing element size, then by name.
std::vector<Planned> plan_tensors(const TensorSource& from, const config::Model& model, const ExportOptions& options) {
  const models::Family& family = models::family(model.family);
  const ImageNames* names = options.names ? image_names(model.family, *options.names) : nullptr;
  std::vector<Planned> list;
  for (MappedTensor& tensor : names ? weight_map(family, model, names->folder) : weight_map(family, model)) {
    for (const MappedWeight& w : tensor.weights)
      if (from.type(w.name).shape != w.whole)
        throw base::UserError("export", "{} holds {} {}, its configuration says {}",
                              base::in_quotes(from.folder().string()), w.name, to_string(from.type(w.name).shape),
                              to_string(w.whole));
    SafetensorsTensor stored = {.name = tensor.name,
                                .dtype = options.dtype.value_or(from.type(tensor.weights.front().name).dtype),
                                .shape = tensor.shape};
    list.push_back({std::move(tensor), std::move(stored)});
  }
  std::ranges::sort(list, [](const Planned& a, const Planned& b) {
    return std::tuple(-size_of(a.stored.dtype), std::string_view(a.stored.name)) <
           std::tuple(-size_of(b.stored.dtype), std::string_view(b.stored.name));
  });
  return list;
}

// Groups consecutive tensors into files of at most `most` bytes, or of one tensor.
std::vector<std::span<const Planned>> shards_of(const std::vector<Planned>& tensors, int64_t most) {
  std::vector<std::span<const Planned>> shards;
  size_t begin = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto more = static_cast<int64_t>(tensors[i].stored.bytes());
    if (i > begin && bytes + more > most) {
      shards.push_back(std::span(tensors).subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(std::span(tensors).subspan(begin));
  return shards;
}

// Tensors with NaN or infinite elements.
struct NotFinite {
  std::string first;
  int64_t elements = 0, of = 0, tensors = 0;  // of the first
  void add(const std::string& name, int64_t count, int64_t all) {
    if (count == 0) return;
    if (tensors++ == 0) {
      first = name;
      elements = count;
      of = all;
    }
  }
};

[[noreturn]] void refuse_not_finite(const NotFinite& found, std::optional<tensor::DType> dtype) {
  const auto count = [](int64_t n) { return base::group_digits(n); };
  const std::string others =
      found.tensors == 1 ? "" : fmt::format(", and some of {} other tensors,", count(found.tensors - 1));
  throw base::UserError("export", "{} of the {} elements of tensor {}{} {}; --allow-not-finite writes them as they are",
                        count(found.elements), count(found.of), base::in_quotes(found.first), others,
                        dtype ? fmt::format("are NaN or infinity in {}, whose largest number is {}{}", name_of(*dtype),
                                            *dtype == tensor::DType::f16 ? "65504" : "3.4e38",
                                            *dtype == tensor::DType::f16 ? ": bf16 has the range of fp32" : "")
                              : std::string("are NaN or infinity"));
}

// Writes in the order of the folder's tensor, a part at a time, placing the overlapping boxes of our weights. Returns
// the number of NaN and infinite elements.
int64_t write_tensor(const TensorSource& from, const Planned& planned, SafetensorsWriter& out) {
  int64_t not_finite = 0;
  const tensor::DType dtype = planned.stored.dtype;
  const int64_t size = size_of(dtype), all = planned.tensor.elements(), most = kPartBytes / size;
  std::vector<std::byte> block, read;
  for (int64_t at = 0; at < all; at += most) {
    const Range part = {at, std::min(at + most, all)};
    block.resize(static_cast<size_t>(part.size() * size));
    for (const MappedWeight& w : planned.tensor.weights) {
      const Grid theirs = {w.first, checkpoint::whole_box(w.shape).size, w.stride};
      for_each_box(theirs, part, [&](const Box& box) {
        read.resize(static_cast<size_t>(box.elements() * size));
        Box of_weight = box;
        if (w.begin > 0) of_weight.start[0] += w.begin;
        from.read({.name = w.name, .box = of_weight, .flat = {}}, dtype, read);
        const Grid ours = grid_of(box);
        std::vector<CopyDim> dims;
        for (size_t d = 0; d < box.size.size(); ++d)
          dims.push_back({.size = box.size[d], .from = ours.stride[d], .to = theirs.stride[d]});
        copy_strided(simplified(dims), read.data(), block.data() + (theirs.at(box.start) - at) * size, size);
      });
    }
    not_finite += count_not_finite(block, dtype);
    out.write(block);
  }
  return not_finite;
}

void write_shard(const TensorSource& from, std::span<const Planned> tensors, const fs::path& path, NotFinite& found) {
  std::vector<SafetensorsTensor> stored;
  for (const Planned& planned : tensors) stored.push_back(planned.stored);
  SafetensorsWriter writer(path, stored, {{"format", "pt"}},  // transformers rejects files without it
                           base::Writing::to_disk);
  for (const Planned& planned : tensors)
    found.add(planned.stored.name, write_tensor(from, planned, writer), planned.tensor.elements());
  writer.close();
}

std::string print_index(const std::vector<std::span<const Planned>>& shards, const std::vector<std::string>& names,
                        uint64_t bytes) {
  base::JsonWriter json(2);
  json.object([&] {
    json.key("metadata").object([&] { json.key("total_size").value(bytes); });
    json.key("weight_map").object([&] {
      for (size_t i = 0; i < shards.size(); ++i)
        for (const Planned& planned : shards[i]) json.key(planned.stored.name).value(names[i]);
    });
  });
  return json.text() + "\n";
}

Exported export_adapter(const SavedModel& saved, const config::Settings& settings, const fs::path& to) {
  NewFolder folder("export", to);
  const ExportedAdapter made = write_adapter(*saved.weights, settings, settings.train.init_from, folder.part());
  const std::string note = export_tokenizer(folder.part(), saved.tokenizer, settings, saved.made_elsewhere);
  folder.finish();
  return {
      .from = saved.folder(), .tensors = made.tensors, .files = 1, .bytes = made.bytes, .adapter = true, .note = note};
}

}  // namespace

Exported export_folder(const ExportOptions& options) {
  const auto self = comm::self_communicator();
  SavedModel saved = open_model(options.model, *self);
  if (options.average) saved.weights = with_averages(std::move(saved.weights));
  const config::Settings settings = saved.settings();
  const bool adapted = settings.lora.rank > 0;
  if (options.merge && !adapted)
    throw base::UserError("export", "--merge: {} has no adapters to merge", base::in_quotes(saved.folder().string()));
  if (adapted && !options.merge) {
    if (options.dtype) throw base::UserError("export", "--dtype needs --merge: adapters alone are written in fp32");
    return export_adapter(saved, settings, options.folder);
  }
  if (!coded_weights(settings).empty()) saved.weights = dequantized(std::move(saved.weights), settings);
  if (adapted) saved.weights = std::make_unique<MergedSource>(std::move(saved.weights), settings);
  const config::Model model = settings.model;
  if (options.names == Program::torchvision && !models::family(model.family).hugging_face.their_name)
    throw base::UserError("export", "--names torchvision: folders of the family {} have transformers' names",
                          model.family);
  const std::vector<Planned> tensors = plan_tensors(*saved.weights, model, options);
  const bool has_class = !models::family(model.family).hugging_face.architectures.empty();  // in transformers
  const bool as_transformers = options.names == Program::transformers && !has_class;
  const std::string config = write_config(model, tensors.front().stored.dtype,
                                          text_ids(saved.tokenizer, settings, saved.made_elsewhere), as_transformers);
  Exported result = {
      .from = saved.folder(), .tensors = tensors.size(), .files = 0, .bytes = 0, .adapter = false, .note = {}};
  for (const Planned& planned : tensors) result.bytes += planned.stored.bytes();

  NewFolder folder("export", options.folder);
  const auto shards = shards_of(tensors, options.shard_bytes);
  result.files = shards.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i)
    names.push_back(shards.size() == 1 ? "model.safetensors"
                                       : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
  NotFinite found;
  for (size_t i = 0; i < shards.size(); ++i) write_shard(*saved.weights, shards[i], folder.part() / names[i], found);
  if (found.tensors > 0 && !options.allow_not_finite) refuse_not_finite(found, options.dtype);
  if (shards.size() > 1)
    base::write_file_atomically(folder.part() / "model.safetensors.index.json",
                                print_index(shards, names, result.bytes));
  base::write_file_atomically(folder.part() / "config.json", config);
  if (models::reads_images(model) && (has_class || as_transformers) && model.image_dtype == "uint8")
    base::write_file_atomically(folder.part() / kImageProcessorFile, write_image_processor(model));
  result.note = export_tokenizer(folder.part(), saved.tokenizer, settings, saved.made_elsewhere);
  folder.finish();
  return result;
}

}  // namespace kintsugi::exchange

#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/progress.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/exchange/export_folder.h"

namespace kintsugi::app {
namespace {

tensor::DType exported_dtype(const std::string& name) {
  for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::bf16, tensor::DType::f16})
    if (name == name_of(dtype)) return dtype;
  throw base::UserError("export", "--dtype {} is not fp32, bf16 or fp16", base::one_line(name, 40));
}

int64_t shard_bytes(const std::string& text) {
  if (const auto bytes = config::memory_size(text)) return *bytes;
  throw base::UserError("export", "--shard-size {} is not a size; write e.g. 5GB or 512MiB", base::one_line(text, 40));
}

exchange::Program program_of(const std::string& names) {
  if (names == "transformers") return exchange::Program::transformers;
  if (names == "torchvision") return exchange::Program::torchvision;
  throw base::UserError("export", "--names {} is not torchvision or transformers", base::one_line(names, 40));
}

void run(const exchange::ExportOptions& options) {
  Progress progress("exporting");
  const exchange::Exported made = exchange::export_folder(options);
  progress.finish();
  if (!made.note.empty()) write_out("note       {}\n", made.note);
  if (made.adapter) write_out("adapter    in PEFT's format; --merge writes the whole model\n");
  write_out("from       {}\nfolder     {}\ntensors    {}, {} in {} file{}\n", made.from, options.folder, made.tensors,
            base::format_bytes(made.bytes), made.files, made.files == 1 ? "" : "s");
}

}  // namespace

void add_export(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("export", "Exports a checkpoint to a Hugging Face folder");
  const auto options = std::make_shared<exchange::ExportOptions>();
  verb.text("model", options->model, "The folder of a checkpoint, or of a run (its newest checkpoint)").required();
  verb.text("folder", options->folder, "Output folder; must be empty or not exist").required();
  verb.text(
          "--dtype", [options](const std::string& name) { options->dtype = exported_dtype(name); },
          "Dtype of the weights: fp32, bf16 or fp16; default: as stored")
      .type_name("DTYPE");
  verb.text(
          "--shard-size", [options](const std::string& text) { options->shard_bytes = shard_bytes(text); },
          "Maximum size of a weight file [5GB]")
      .type_name("SIZE");
  verb.text(
          "--names", [options](const std::string& names) { options->names = program_of(names); },
          "Names of the weights of a ResNet or ConvNeXt: torchvision or transformers [torchvision]")
      .type_name("NAMES");
  verb.flag("--allow-not-finite", options->allow_not_finite,
            "Allow NaN and infinite weights, including those that overflow --dtype");
  verb.flag("--average", options->average, "Export the moving average of the weights (train.ema_decay)");
  verb.flag("--merge", options->merge, "Merge LoRA adapters into the weights and write the whole model");
  verb.run([options] {
    require_one_process("export");
    run(*options);
  });
}

}  // namespace kintsugi::app

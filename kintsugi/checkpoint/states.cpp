#include "kintsugi/checkpoint/states.h"

#include "kintsugi/base/error.h"

namespace kintsugi::checkpoint {
namespace {

Kind kind_of(const program::StateInfo& s) {
  if (s.kind == "weight") return Kind::weight;
  return s.kind == "optimizer" ? Kind::optimizer : Kind::statistic;
}

constexpr std::string_view kMaster = ".master";

bool is_master(const program::StateInfo& s) {
  return s.kind == "optimizer" && s.name.ends_with(kMaster);
}

}  // namespace

std::filesystem::path save_states(const run::Executor& executor, const std::filesystem::path& run_folder, int64_t step,
                                  const Contents& contents) {
  CheckpointWriter writer(run_folder, step);
  for (const program::StateInfo& s : executor.program().states) {
    if (!s.saved || is_master(s)) continue;
    const program::StateInfo* master = executor.program().state(s.name + std::string(kMaster));
    const tensor::View from = executor.view((master ? *master : s).buffer);
    writer.add({.name = s.name, .type = from.type, .kind = kind_of(s), .box = {}, .flat = {}},
               {from.data, static_cast<size_t>(from.type.bytes())});
  }
  writer.write();
  return writer.finish(contents);
}

void load_states(run::Executor& executor, const CheckpointReader& reader, Load what) {
  for (const program::StateInfo& s : executor.program().states) {
    if (!s.saved) continue;
    const bool weight = s.kind == "weight" || is_master(s);
    if (!weight && what == Load::weights) continue;
    const std::string name = is_master(s) ? s.name.substr(0, s.name.size() - kMaster.size()) : s.name;
    const StoredTensor& stored = reader.at(name);
    if (stored.type.shape != s.whole.shape)
      throw base::UserError("checkpoint",
                            "\"{}\" holds {} {}, the model needs {}: [model] must be that of the checkpoint",
                            reader.folder().string(), name, to_string(stored.type.shape), to_string(s.whole.shape));
    const tensor::View to = executor.view(s.buffer);
    reader.read({.name = name, .box = {}, .flat = {}}, to.dtype(), {to.data, static_cast<size_t>(to.type.bytes())});
  }
}

}  // namespace kintsugi::checkpoint

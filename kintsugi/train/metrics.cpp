#include "kintsugi/train/metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::train {

std::string to_json(const Metrics& m) {
  nlohmann::ordered_json line;
  line["step"] = m.step;
  line["loss"] = m.loss;
  if (m.validation_loss) line["validation_loss"] = *m.validation_loss;
  line["learning_rate"] = m.learning_rate;
  line["gradient_norm"] = m.gradient_norm;
  line["tokens"] = m.tokens;
  line["tokens_per_second"] = m.tokens_per_second;
  line["flops_per_second"] = m.flops_per_second;
  line["peak_share"] = m.peak_share;
  line["memory_bytes"] = m.memory_bytes;
  line["seconds"] = m.seconds;
  return line.dump();
}

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  std::string kept;
  if (std::filesystem::exists(path)) {
    const std::string old = base::read_file(path);
    for (size_t begin = 0, end; (end = old.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = nlohmann::json::parse(old.substr(begin, end - begin), nullptr, false);
      const bool whole = line.is_object() && line.contains("step") && line["step"].is_number_integer();
      if (!whole || line["step"].get<int64_t>() > last_step) break;
      kept += old.substr(begin, end + 1 - begin);
    }
    if (kept != old) base::write_file_atomically(path, kept);
  }
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) throw base::UserError("metrics", "cannot write \"{}\": {}", path.string(), std::strerror(errno));
}

MetricsFile::~MetricsFile() {
  if (file_) std::fclose(file_);
}

void MetricsFile::write(const Metrics& metrics) {
  const std::string line = to_json(metrics) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw base::UserError("metrics", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
}

}  // namespace kintsugi::train

#include "app/bench_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "app/outputs.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/simulate/write_cluster.h"

namespace kintsugi::app {

simulate::Cluster read_measured_cluster(const std::string& path) {
  require_into(path);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw base::UserError("bench", "--into {}: file not found; create it first: kintsugi bench machine --into {}", path,
                          shell_word(path));
  if (!std::filesystem::is_regular_file(path, error))
    throw base::UserError("bench", "--into {}: not a regular file; the file is read and then replaced", path);
  return simulate::read_cluster(path);
}

void require_into(const std::string& path) {
  const std::array<base::Output, 1> outputs = {{{"--into", path}}};
  require_outputs("bench", outputs);
}

void write_measured_cluster(const std::string& path, const simulate::Cluster& cluster) {
  base::write_output(path, "# Measured by kintsugi bench.\n" + to_toml(cluster));
  write_out("written to {}: {} kernels and {} transfers\n", path, cluster.measured.kernels.size(),
            cluster.measured.transfers.size());
}

}  // namespace kintsugi::app

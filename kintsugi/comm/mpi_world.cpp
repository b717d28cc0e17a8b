#include "kintsugi/comm/mpi_world.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/mpi/entry.h"
#include "kintsugi/comm/operation.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::comm {
namespace {

struct Mpi {
  std::string_view name, file, package;
};
constexpr std::array kMpis = {Mpi{"Open MPI", "kintsugi_mpi_openmpi.so", "libopenmpi-dev"},
                              Mpi{"MPICH", "kintsugi_mpi_mpich.so", "libmpich-dev"}};

const Mpi* started_by() {
  switch (launch::this_process().mpi) {
    case launch::Mpi::none:
      return nullptr;
    case launch::Mpi::open_mpi:
      return &kMpis[0];
    case launch::Mpi::mpich:
      return &kMpis[1];
  }
  return nullptr;
}

std::optional<std::string> find(const Mpi& mpi) {
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {here, here.parent_path()}) {
    if (std::filesystem::exists(folder / mpi.file, ignored)) return (folder / mpi.file).string();
  }
  return std::nullopt;
}

std::string module_path() {
  if (const char* path = std::getenv("KINTSUGI_MPI_MODULE"); path != nullptr && *path != '\0') return path;
  const Mpi* wanted = started_by();
  const Mpi* other = nullptr;
  for (const Mpi& mpi : kMpis) {
    const auto path = find(mpi);
    if (path && (wanted == nullptr || wanted == &mpi)) return *path;
    if (path) other = &mpi;
  }
  if (other != nullptr) {
    throw base::UserError("comm",
                          "this run was started by {}, and this build has only {}: install {} and build again, "
                          "or start it by {}",
                          wanted->name, other->name, wanted->package, other->name);
  }
  throw base::UserError("comm",
                        "this build has no MPI: install libopenmpi-dev or libmpich-dev and build again, or use "
                        "transport = \"threads\"");
}

}  // namespace

std::string_view mpi_built() {
  for (const Mpi& mpi : kMpis)
    if (find(mpi)) return mpi.name;
  return "";
}

std::unique_ptr<World> mpi_world(const WorldOptions& options) {
  check_options(options);
  const std::string path = module_path();
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: MPI does not support that
  if (module == nullptr) throw base::UserError("comm", "the MPI module cannot be loaded: {}", dlerror());
  const auto entry = reinterpret_cast<MpiEntry*>(dlsym(module, kMpiEntry));
  if (entry == nullptr) throw base::UserError("comm", "{} is not an MPI module of this version", path);
  return std::unique_ptr<World>(entry(&options));
}

}  // namespace kintsugi::comm

// The installed MPIs, and the command started under one of them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "tests/paths.h"
#include "tests/process.h"

namespace kintsugi::tests {

struct Mpi {
  std::string name, module, run;
};
inline void PrintTo(const Mpi& mpi, std::ostream* out) {
  *out << mpi.name;
}

inline const std::array kMpis = {
    Mpi{"openmpi", "kintsugi_mpi_openmpi.so", "mpirun.openmpi --oversubscribe --allow-run-as-root"},
    Mpi{"mpich", "kintsugi_mpi_mpich.so", "mpirun.mpich"},
};

// Its module is one folder above the command, and its launcher is in PATH.
inline bool is_there(const Mpi& mpi) {
  const std::string launcher = mpi.run.substr(0, mpi.run.find(' '));
  return fs::exists(fs::path(kintsugi_command()).parent_path().parent_path() / mpi.module) &&
         std::system(("command -v " + launcher + " >/dev/null").c_str()) == 0;
}

// Tests that run with each MPI.
class UnderMpi : public testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    if (!is_there(GetParam())) GTEST_SKIP() << "no " << GetParam().module << ", or no " << GetParam().run;
  }
};

inline std::string name_of_mpi(const testing::TestParamInfo<Mpi>& info) {
  return info.param.name;
}

// The system's information about a process; empty if it has ended, which can happen at any time.
inline std::optional<std::string> told_of(pid_t pid, const std::string& what) {
  try {
    return base::read_file("/proc/" + std::to_string(pid) + "/" + what);
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// The processes that a launcher started as ranks in `folder`, by rank.
inline std::map<int, pid_t> ranks_in(const fs::path& folder) {
  std::map<int, pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    std::error_code error;
    if (pid == 0 || fs::read_symlink(entry.path() / "exe", error) != fs::canonical(kintsugi_command()) ||
        fs::read_symlink(entry.path() / "cwd", error) != fs::canonical(folder))
      continue;
    const std::string environment = '\0' + told_of(pid, "environ").value_or("");
    for (const std::string name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="}) {
      const size_t at = environment.find('\0' + name);
      if (at != std::string::npos) found[std::atoi(environment.c_str() + at + 1 + name.size())] = pid;
    }
  }
  return found;
}

// Whether the process has ended, or is a zombie.
inline bool has_ended(pid_t pid) {
  const std::optional<std::string> stat = told_of(pid, "stat");
  return !stat || stat->find(") Z ") != std::string::npos;
}

}  // namespace kintsugi::tests

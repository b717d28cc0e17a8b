// Runs a program on the CPU. Decides nothing: every buffer has its place, every call its turn.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::run {

// Memory that is allocated once, aligned to 4096 bytes, and filled with zeros.
class Arena {
 public:
  explicit Arena(int64_t bytes);  // UserError where the system has not that much
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

class Executor {
 public:
  // Allocates the states and the arena of the program: program.bytes(), and nothing after that.
  Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team);

  const program::Program& program() const { return program_; }
  base::ThreadTeam& team() { return team_; }
  int64_t allocated_bytes() const { return arena_.bytes(); }

  // Every state at its beginning, as a function of (seed, name, index).
  void initialize(uint64_t seed);

  tensor::View state(std::string_view name) const;  // InternalError where there is none
  bool has_state(std::string_view name) const { return program_.state(name) != nullptr; }
  // A scalar state in fp64.
  double& number(std::string_view name) const;
  // Inputs are filled before the first call of a micro-batch, outputs read after the last call of the list.
  tensor::View input(std::string_view list, std::string_view name) const;
  tensor::View output(std::string_view list, std::string_view name) const;
  bool has_input(std::string_view list, std::string_view name) const;

  // Runs the calls of a list; before the first call of each micro-batch, `fill` is told its number, and may set inputs
  // and numbers. Allocates nothing.
  using Fill = void (*)(const void* context, int64_t micro_batch);
  void run(std::string_view list, kernels::Numbers& numbers, Fill fill, const void* context);
  template <typename F>
  void run(std::string_view list, kernels::Numbers& numbers, const F& fill) {
    run(list, numbers, [](const void* f, int64_t m) { (*static_cast<const F*>(f))(m); }, &fill);
  }

  // Called after each instruction with its body and number; for looking at values. Null: none.
  std::function<void(const program::Body&, const program::Instruction&)> watch;

  tensor::View view(program::BufferId id) const;

 private:
  struct Bound {
    const kernels::Kernel* kernel = nullptr;
    std::vector<tensor::View> ins;
    std::vector<tensor::View> outs;
    std::vector<kernels::NamedIndex> indices;
    int seq = -1;  // the index of `seq` where it begins at the run's position
    std::span<std::byte> workspace;
  };

  Bound bind(const program::Body& body, const program::Instruction& instruction,
             const kernels::KernelSet& kernels) const;
  program::BufferId find(std::string_view list, std::string_view name, bool input) const;

  program::Program program_;
  base::ThreadTeam& team_;
  Arena arena_;
  std::vector<std::vector<Bound>> bound_;  // by body
};

}  // namespace kintsugi::run

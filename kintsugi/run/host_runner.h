// Runs a program on the host: each instruction completes before the next begins, except transfers, which complete at
// their wait.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/bound_program.h"
#include "kintsugi/run/groups.h"
#include "kintsugi/run/host_memory.h"
#include "kintsugi/run/runner.h"

namespace kintsugi::run {

struct Place;

class HostRunner : public Runner {
 public:
  // The arguments except `place` must outlive this.
  HostRunner(const program::Program& p, const kernels::KernelSet& kernels, base::ThreadTeam& team, const Place& place);

  std::byte* memory() const override { return arena_.data(); }
  int64_t bytes() const override { return arena_.bytes(); }
  FileStore* file() const override { return file_.get(); }
  int64_t waited() const override { return waited_; }

  void read(const std::byte* from, std::span<std::byte> to) const override;
  void write(std::byte* to, std::span<const std::byte> from) override;
  void read_file(int64_t offset, std::span<std::byte> to) const override { file_->wait(file_->read(offset, to)); }
  void write_file(int64_t offset, std::span<const std::byte> from) const override {
    file_->wait(file_->write(offset, from));
  }
  void read(std::span<const std::byte* const> from, std::span<double> to) const override;
  void ask(std::span<const std::byte* const> from) override;
  void answer(std::span<double> to) override;
  tensor::View on_host(const tensor::View& view) const override { return view; }
  std::byte* input_address(const program::CallList& list, const program::Call& call,
                           program::BufferId buffer) const override;

  // Inputs are filled before the call that reads them first.
  void run(program::Step step, kernels::Numbers& numbers, const Filler& filler, const Probe& probe) override;

 private:
  struct Open {
    comm::Event communication;
    FileStore::Ticket ticket = 0;
  };

  void run_call(const BoundList& list, const BoundCall& call, const CallContext& context, const Probe& probe);
  void start_copy(const program::Instruction& i, const BoundInstruction& b, const program::Call& call);
  void wait(const BoundCall& call, const program::Instruction& i, const BoundInstruction& b);

  const program::Program& p_;
  base::ThreadTeam& team_;
  const int rank_;
  const bool tf32_;
  Arena arena_;
  std::vector<double> answers_;
  std::unique_ptr<FileStore> file_;  // destroyed before the memory
  Groups groups_;
  BoundProgram bound_;
  OpenTransfer<Open> open_;
  int64_t waited_ = 0;
};

}  // namespace kintsugi::run

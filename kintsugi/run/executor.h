// Runs a program, on the host or on a device. It makes no decisions: the program has the offset of each buffer, the
// order of instructions, and on a device what is launched together, where the stream waits, and what is captured.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/run/file_store.h"
#include "kintsugi/run/runner.h"

namespace kintsugi::run {

// The environment of a program.
struct Place {
  comm::World* world = nullptr;                   // null: one rank
  std::filesystem::path offload_folder = {};      // folder of the file, if the program has one
  std::chrono::milliseconds time_limit{600'000};  // of the work that is enqueued on a device
  comm::Exchange exchange = {};                   // of ranks on devices (comm::exchange_of), as the program is routed

  int rank() const { return world ? world->rank() : 0; }
};

class Executor {
 public:
  // Allocates the states and the arena of the program, program.bytes(), and its file, on disk or in pinned memory of a
  // device; nothing is allocated later. `world` has as many ranks as the program's mesh, and must outlive the executor.
  // Collective.
  Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team, const Place& place);
  Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
           comm::World* world = nullptr)
      : Executor(std::move(program), kernels, team, Place{.world = world}) {}

  Executor(Executor&&) = delete;

  int rank() const { return rank_; }
  const program::Program& program() const { return program_; }
  base::ThreadTeam& team() { return team_; }
  // How ranks on devices exchange data, for the user; "" on the host.
  const std::string& exchange() const { return exchange_; }
  int64_t allocated_bytes() const { return runner_->bytes(); }
  // Seconds in which this rank waited for others within run(), so far. On a device 0: the host does not wait there.
  double waited_seconds() const { return 1e-9 * static_cast<double>(runner_->waited()); }

  // Sets every state to its initial values, a function of (seed, name, index). `drawn` false: random values are zero,
  // since they are loaded afterwards.
  void initialize(uint64_t seed, bool drawn = true);

  // The local block of a state. Throws InternalError if there is none, or if it has no block (split along a bucket).
  tensor::View state(std::string_view name) const;
  bool has_state(std::string_view name) const { return program_.state(name) != nullptr; }
  // A scalar state in fp64.
  double number(std::string_view name) const;
  // As number(), for several, waiting for a device only once.
  void numbers(std::span<const std::string_view> names, std::span<double> values) const;
  void set_number(std::string_view name, double value);
  // The elements of a state of one dim in fp64, which no rank splits; and their values.
  std::vector<double> list(std::string_view name) const;
  void set_list(std::string_view name, double value);
  // Requests numbers as of all work enqueued so far; answer() waits for those of the oldest open request.
  void ask(std::span<const std::string_view> names);
  void answer(std::span<double> values);
  // Outputs are read after the last call of the list. From a device, a copy that is valid until the next one.
  tensor::View output(program::Step step, std::string_view name) const;
  bool has_input(program::Step step, std::string_view name) const;
  bool has_output(program::Step step, std::string_view name) const;  // on this stage

  // Rows [first, first + rows) of an input's global batch: row-major, `size` elements each. An input without the dim
  // `batch` is one row.
  template <typename T>
  struct RowsOf {
    std::span<const T> values;
    int64_t first = 0;
    int64_t size = 0;
  };
  using Rows = RowsOf<int32_t>;
  // The same for any type; `padding` is one element.
  struct TypedRows {
    tensor::DType dtype = tensor::DType::f32;
    std::span<const std::byte> values;
    int64_t first = 0;
    int64_t size = 0;
    std::span<const std::byte> padding;
  };
  // The inputs of the next call.
  class Inputs {
   public:
    Inputs(const Executor& executor, const program::CallList& list, const program::Call& call)
        : executor_(executor), list_(list), call_(call) {}

    int64_t micro_batch() const { return call_.micro_batch; }
    // Whether the list has an input of that name on this stage.
    bool has(std::string_view name) const;
    // Copies what this rank needs of an input, in each layout in which the call is the first to need it; `padding`
    // fills positions that have no value. Throws InternalError if the list has no such input here, or one of another
    // type or size.
    void set(std::string_view name, const TypedRows& rows) const;
    void set(std::string_view name, const Rows& rows, int32_t padding) const {
      set(name, {tensor::DType::i32, std::as_bytes(rows.values), rows.first, rows.size, bytes_of(padding)});
    }
    void set(std::string_view name, const RowsOf<float>& rows, float padding) const {
      set(name, {tensor::DType::f32, std::as_bytes(rows.values), rows.first, rows.size, bytes_of(padding)});
    }
    // The whole of an input of the call. Throws InternalError if it has none of that name.
    tensor::View view(std::string_view name) const;

   private:
    template <typename T>
    static std::span<const std::byte> bytes_of(const T& x) {
      return std::as_bytes(std::span(&x, 1));
    }

    const Executor& executor_;
    const program::CallList& list_;
    const program::Call& call_;
  };
  // The rows that this rank needs of any input of the list: [first, last).
  struct RowRange {
    int64_t first = 0, last = 0;
  };
  RowRange input_rows(program::Step step) const;

  // Runs the calls of a list. On a device, `fill` is called for all of them first, then the host continues while the
  // device works. On the host, `fill` is called before a call that needs inputs which were not filled yet; it may set
  // numbers. For a micro-batch without inputs that is its first call. Does not allocate. Throws InternalError if an
  // input of the call is not set.
  using Fill = void (*)(const void* context, const Inputs& inputs);
  void run(program::Step step, kernels::Numbers& numbers, Fill fill, const void* context);
  template <typename F>
  void run(program::Step step, kernels::Numbers& numbers, const F& fill) {
    run(
        step, numbers, [](const void* f, const Inputs& inputs) { (*static_cast<const F*>(f))(inputs); }, &fill);
  }

  // Called after each kernel and each wait, to inspect values. Null: none. On a device, a list that is watched or
  // recorded is enqueued instruction by instruction, and not captured.
  using Watched = run::Watched;
  Watch watch;
  // Records when each instruction of its list begins and ends. Null: none. On a device these are the device's times, by
  // the clock of the host, which waits for the end of the list.
  profile::Recorder* recorder = nullptr;

  // The address of a buffer in a call of a list with that slot. Throws InternalError for a buffer in the file.
  tensor::View view(program::BufferId id, const program::CallList& list, int slot) const;
  // The address of the buffer of a state, or of a buffer of the arena after a training step: in the last call that
  // touches it, as for the sum of an accumulator. Throws InternalError for a buffer in the file.
  tensor::View state_view(program::BufferId id) const;
  // Whether the host can dereference a pointer to it; see state_blocks.h otherwise.
  bool on_host(program::BufferId id) const { return !on_device() && !in_file(id); }
  bool on_device() const { return runner_->device() != nullptr; }
  bool in_memory_of_device(program::BufferId id) const { return on_device() && !in_file(id); }
  // Whether a list of calls was captured, on a device, and is launched as a graph; from the second run on.
  bool captured(program::Step step) const { return runner_->captured(step); }
  // Copy memory of the program, whole bytes of a view of this executor, after all enqueued work.
  void copy_to_host(const std::byte* from, std::span<std::byte> to) const { runner_->read(from, to); }
  void copy_from_host(std::byte* to, std::span<const std::byte> from) const { runner_->write(to, from); }
  // The same to pinned memory, which exists where on_device().
  void copy_to_pinned(std::span<const DeviceSide::Copied> copies) const { runner_->device()->read(copies); }
  std::unique_ptr<device::Memory> pinned(int64_t bytes) const { return runner_->device()->pinned(bytes); }
  bool in_file(program::BufferId id) const {
    return program_.buffer(program_.root(id)).region == program::Region::file;
  }
  FileStore* file() const { return runner_->file(); }  // null if the program has none, or computes on a device
  // Data in the file, or in the pinned memory that replaces it on a device; after all enqueued work.
  void read_file(int64_t offset, std::span<std::byte> to) const { runner_->read_file(offset, to); }
  void write_file(int64_t offset, std::span<const std::byte> from) const { runner_->write_file(offset, from); }

 private:
  struct Input {
    program::Step step;
    std::string name;
    program::BufferId buffer;
    int body;                // the first to read it
    bool by_rows;            // its first dim is the batch
    tensor::DimIndex batch;  // else one row
    // The other dims. Adjacent ones of which all but the first are whole on the rank are merged.
    std::vector<tensor::DimIndex> dims;
    int64_t size;              // elements of a row of the whole
    mutable bool set = false;  // since the last call to fill
  };
  class InputFiller;
  // A buffer of the arena or a state, in the call that reads it first or writes it last; kNoBuffer: there is none.
  struct Found {
    program::BufferId buffer = program::kNoBuffer;
    const program::Call* call = nullptr;
  };

  const program::Body& body_of(const program::Call& call) const {
    return program_.bodies[static_cast<size_t>(call.body)];
  }
  void bind_inputs(const program::CallList& list);
  void fill_inputs(const program::CallList& list, const program::Call& call, Fill fill, const void* context) const;
  Found find_input(const program::CallList& list, std::string_view name) const;
  Found find_output(const program::CallList& list, std::string_view name) const;

  const program::Program program_;
  base::ThreadTeam& team_;
  const int rank_;
  const std::string exchange_;
  std::unique_ptr<Runner> runner_;
  std::vector<Input> inputs_;
};

}  // namespace kintsugi::run

// Runs a program, on the CPU or on a device. Decides nothing: the program says where each buffer is and in what order
// things run.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/bind/bound_kernel.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/comm/step_capture.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/run/device_store.h"
#include "kintsugi/run/device_times.h"
#include "kintsugi/run/file_store.h"
#include "kintsugi/run/touched.h"

namespace kintsugi::profile {
class Recorder;
struct StepTimes;
}  // namespace kintsugi::profile

namespace kintsugi::run {

// Memory that is allocated once, aligned to 4096 bytes, and filled with zeros.
class Arena {
 public:
  explicit Arena(int64_t bytes);  // UserError if the system does not have that much
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// The environment of a program.
struct Place {
  comm::World* world = nullptr;                   // null: one rank
  std::filesystem::path offload_folder = {};      // folder of the file, if the program has one
  std::chrono::milliseconds time_limit{600'000};  // of what a device is given
};

class Executor {
 public:
  // Allocates the states and the arena of the program: program.bytes(), and nothing after that; and its file, on the
  // disk, or in pinned memory beside a device. `world` has as many ranks as the program's mesh, and outlives the
  // executor. All ranks construct theirs together.
  Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team, const Place& place);
  Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
           comm::World* world = nullptr)
      : Executor(std::move(program), kernels, team, Place{.world = world}) {}

  ~Executor();

  int rank() const { return rank_; }
  const program::Program& program() const { return program_; }
  base::ThreadTeam& team() { return team_; }
  // How ranks with a device exchange, for the user; "" where they do not.
  const std::string& exchange() const { return exchange_.said; }
  int64_t allocated_bytes() const { return device_ ? device_->bytes() : arena_.bytes(); }

  // Sets every state to its initial values, a function of (seed, name, index). `drawn` false: what would be drawn at
  // random is zero, since it is loaded afterwards.
  void initialize(uint64_t seed, bool drawn = true);

  // The local block of a state. InternalError if there is none, or if it has no block (split along a bucket).
  tensor::View state(std::string_view name) const;
  bool has_state(std::string_view name) const { return program_.state(name) != nullptr; }
  // A scalar state in fp64.
  double number(std::string_view name) const;
  // The same of several, for which a device is waited for once.
  void numbers(std::span<const std::string_view> names, std::span<double> values) const;
  void set_number(std::string_view name, double value);
  // Asks for numbers as they are once all that was enqueued is done, and goes on; answer() waits for those of the
  // oldest question that has no answer yet.
  void ask(std::span<const std::string_view> names);
  void answer(std::span<double> values);
  // Outputs are read after the last call of the list; of a device, a copy that lasts until the next.
  tensor::View output(program::Step step, std::string_view name) const;
  bool has_input(program::Step step, std::string_view name) const;
  bool has_output(program::Step step, std::string_view name) const;  // on this stage

  // Rows [first, first + rows) of an input's batch as it is on all ranks together: row-major, `size` elements each. An
  // input without the dim `batch` is one row.
  template <typename T>
  struct RowsOf {
    std::span<const T> values;
    int64_t first = 0;
    int64_t size = 0;
  };
  using Rows = RowsOf<int32_t>;
  // The same of any type; `padding` is one element.
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
    // fills positions that have no value. InternalError if the list has no such input here, or one of another type or
    // size.
    void set(std::string_view name, const TypedRows& rows) const;
    void set(std::string_view name, const Rows& rows, int32_t padding) const {
      set(name, {tensor::DType::i32, std::as_bytes(rows.values), rows.first, rows.size, bytes_of(padding)});
    }
    void set(std::string_view name, const RowsOf<float>& rows, float padding) const {
      set(name, {tensor::DType::f32, std::as_bytes(rows.values), rows.first, rows.size, bytes_of(padding)});
    }
    // The whole of an input of the call. InternalError if it has none of that name.
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
  // The rows that this rank needs of any input of the list: those from first to last, [first, last).
  struct RowRange {
    int64_t first = 0, last = 0;
  };
  RowRange input_rows(program::Step step) const;

  // Runs the calls of a list. On a device, `fill` is called for all of them first, then the host goes on while the
  // device works. On the host, before a call that needs inputs which were not filled yet, `fill` is called with them,
  // and may set numbers. For a micro-batch without inputs that is its first call. Allocates nothing. InternalError if
  // an input of the call is not set.
  using Fill = void (*)(const void* context, const Inputs& inputs);
  void run(program::Step step, kernels::Numbers& numbers, Fill fill, const void* context);
  template <typename F>
  void run(program::Step step, kernels::Numbers& numbers, const F& fill) {
    run(
        step, numbers, [](const void* f, const Inputs& inputs) { (*static_cast<const F*>(f))(inputs); }, &fill);
  }

  // An instruction of a call that is run.
  struct Watched {
    const program::CallList& list;
    const program::Call& call;
    const program::Body& body;
    const program::Instruction& instruction;
  };
  // Called after each kernel and each wait, for looking at values. Null: none.
  std::function<void(const Watched&)> watch;
  // Told when each instruction of its list begins and ends. Null: none. On a device these are its own times, by the
  // clock of the host; such a step is not launched as a whole, and the host waits for its end.
  profile::Recorder* recorder = nullptr;

  // The address of a buffer in a call of a list with that slot. InternalError for a buffer in the file.
  tensor::View view(program::BufferId id, const program::CallList& list, int slot) const;
  // The address of the buffer of a state, or of a buffer of the arena after a training step: in the last call that
  // touches it, as for the sum of an accumulator. InternalError for a buffer in the file.
  tensor::View state_view(program::BufferId id) const;
  // Whether the host can follow a pointer to it; see state_blocks.h otherwise.
  bool on_host(program::BufferId id) const { return device_ == nullptr && !in_file(id); }
  bool on_device() const { return device_ != nullptr; }
  bool in_memory_of_device(program::BufferId id) const { return on_device() && !in_file(id); }
  // Whether a list of calls is launched as it was captured, on a device; from the second run on.
  bool captured(program::Step step) const { return list_of(step).captured; }
  // Copies memory of a device, whole bytes of a view of this executor, once all that was enqueued is done.
  void copy_to_host(const std::byte* from, std::span<std::byte> to) const { device_->read(from, to); }
  void copy_from_host(std::byte* to, std::span<const std::byte> from) const { device_->write(to, from); }
  // The same to pinned memory, which is to be had where on_device().
  void copy_to_pinned(std::span<const DeviceSide::Copied> copies) const { device_->read(copies); }
  std::unique_ptr<device::Memory> pinned(int64_t bytes) const { return device_->pinned(bytes); }
  bool in_file(program::BufferId id) const {
    return program_.buffer(program_.root(id)).region == program::Region::file;
  }
  FileStore* file() const { return file_.get(); }  // null if the program has none, or computes on a device
  // What lies in the file, or in its place beside a device; once all that was enqueued is done.
  void read_file(int64_t offset, std::span<std::byte> to) const;
  void write_file(int64_t offset, std::span<const std::byte> from) const;

 private:
  struct Bound : bind::BoundKernel {
    comm::Communicator* communicator = nullptr;  // of a collective or its wait
    // Of an exchange of halos: bytes of its input that are sent to a rank of the group, or of its output.
    struct Part {
      int rank = 0;
      bool receives = false;
      size_t begin = 0, bytes = 0;
    };
    std::vector<Part> parts = {};
  };

  // The calls of a list, bound to the memory of their slots.
  struct BoundCall {
    size_t bound = 0;  // in bound_
    bool fills = false;
  };
  struct List {
    const program::CallList* calls = nullptr;
    std::vector<BoundCall> bound;
    // On a device: its inputs in the order of calls, where the host puts them.
    struct Staged {
      const program::Call* call;
      size_t input;  // in inputs_
      int64_t offset, bytes;
    };
    std::vector<Staged> staged;
    int64_t runs = 0;
    bool captured = false;                 // at the second run
    std::unique_ptr<device::Graph> graph;  // null also if another rank launches it
  };

  struct Input {
    program::Step step;
    std::string name;
    program::BufferId buffer;
    int body;                // the first to read it
    bool by_rows;            // its first dim is the batch
    tensor::DimIndex batch;  // else one row
    // The other dims. Adjacent ones of which the rank has all but the first whole are one.
    std::vector<tensor::DimIndex> dims;
    int64_t size;              // elements of a row of the whole
    mutable bool set = false;  // since the last call to fill
  };
  // What is bound: a call with its body.
  struct Site {
    const program::CallList& list;
    const program::Call& call;
    const program::Body& body;
  };

  // Whether what is sent and received goes through memory of the host.
  bool by_host() const { return device_ && exchange_.way == comm::DeviceWay::by_host; }
  std::byte* memory() const { return device_ ? device_->memory() : arena_.data(); }
  // The address of a buffer of the arena or of a state, in a call with that slot.
  std::byte* address(program::BufferId id, const program::CallList& list, int slot) const;
  const program::Body& body_of(const program::Call& call) const {
    return program_.bodies[static_cast<size_t>(call.body)];
  }
  void make_groups(const Place& place);
  void name_for_profiler(const program::Body& body, const program::Instruction& i) const;
  void bind_list(const program::CallList& list, const kernels::KernelSet& kernels);
  void prepare(const program::Body& body, std::span<Bound> bound);
  kernels::KernelCall call_of(const program::Instruction& instruction, const Bound& b, const kernels::Numbers& numbers,
                              device::Stream* stream);
  Bound bind(const Site& site, const program::Instruction& instruction, const kernels::KernelSet& kernels);
  void bind_inputs(const program::CallList& list);
  void fill_inputs(const program::CallList& list, const program::Call& call, Fill fill, const void* context) const;
  const List& list_of(program::Step step) const;
  List& list_of(program::Step step) { return const_cast<List&>(std::as_const(*this).list_of(step)); }
  void stage_inputs();
  std::byte* input_address(const Input& in, const program::CallList& list, const program::Call& call) const;
  void run_on_device(List& list, kernels::Numbers& numbers, Fill fill, const void* context);
  comm::StepWay way_of(List& list) const;
  void enqueue_calls(const List& list, kernels::Numbers& numbers);
  static std::span<const List::Staged> staged_of(const List& list, size_t call, size_t& next);
  void take_times(const List& list, profile::StepTimes& times);
  struct Running;
  void reserve_staging(const List& list);
  std::span<std::byte> send_by_host(const Bound& b, Running& r);
  void receive_by_host(const Bound& b, Running& r);
  void announce(const program::Body& body, const program::Instruction& i, const Bound& b);
  comm::Communicator& group_of(const program::Instruction& i);
  void bind_parts(const program::Instruction& instruction, Bound& b) const;
  struct Running {
    comm::Event communication;
    FileStore::Ticket ticket = 0;
    DeviceStore::Copy copy = {};
    int64_t started = 0;          // how many were started before it
    const Bound* what = nullptr;  // that was started
    // On a device: where the host has what is sent and received.
    std::unique_ptr<device::Memory> sent, received;
  };
  Running& running(const program::Instruction& i, int64_t micro_batch) {
    return running_[static_cast<size_t>(i.event * micro_batches_ + std::max<int64_t>(0, micro_batch))];
  }
  profile::Recorder* recorder_of(program::Step step) const;
  void run_call(const List& list, size_t number, kernels::Numbers& numbers, profile::Recorder* recording);
  void run_instruction(const program::Call& call, const program::Body& body, const program::Instruction& instruction,
                       Bound& b, kernels::Numbers& numbers);
  void prepare_to_run(const program::Body& body, const program::Instruction& instruction, Bound& b);
  void launch_group(const program::Body& body, size_t first, std::span<Bound> bound, const kernels::Numbers& numbers);
  // A wait that is not enqueued yet, on a device: see device_run.cpp.
  struct Awaited {
    const program::Body* body;
    const program::Instruction* instruction;
    Bound* bound;
    Running* running;
  };
  bool waits_late() const { return device_ && !by_host() && !marks_ && !watch; }
  void enqueue_waits();  // all of them
  void enqueue_waits_of(const program::Instruction& i, const Bound& b, const Running* started);
  void enqueue_waits(std::vector<Awaited>::iterator first);  // from there on
  void enqueue(const program::Instruction& instruction, Bound& b, Running& r);
  void enqueue_copy(const program::Instruction& instruction, const Bound& b, Running& r, int64_t micro_batch);
  void wait(const program::Body& body, const program::Instruction& instruction, Bound& b, Running& r);
  // A buffer of the arena or a state, in the call that reads it first or writes it last; kNoBuffer: there is none.
  struct Found {
    program::BufferId buffer = program::kNoBuffer;
    const program::Call* call = nullptr;
  };
  Found find_input(const program::CallList& list, std::string_view name) const;
  Found find_output(const program::CallList& list, std::string_view name) const;

  program::Program program_;
  base::ThreadTeam& team_;
  int rank_ = 0;
  comm::World* world_ = nullptr;
  int64_t micro_batches_ = 1;     // of the longest list
  std::vector<Running> running_;  // by event and micro-batch
  std::vector<Awaited> awaited_;
  int64_t started_ = 0;
  Touched touched_;  // on a device
  std::vector<Input> inputs_;
  std::unique_ptr<DeviceSide> device_;  // null: the host's
  comm::Exchange exchange_;
  std::unique_ptr<DeviceTimes> times_;  // once there was a recorder
  bool marks_ = false;                  // each instruction has a point in times_
  bool tf32_ = false;
  device::Ranges* ranges_ = nullptr;  // of a device, where a profiler looks on
  Arena arena_;
  mutable std::vector<std::byte> output_;
  std::vector<double> answers_;         // of the host
  std::unique_ptr<FileStore> file_;     // it must end before the memory is freed
  std::unique_ptr<DeviceStore> store_;  // that of a device
  // By factors and channel. Destroyed before the memory.
  std::map<std::pair<std::vector<mesh::Factor>, std::string>, std::unique_ptr<comm::Communicator>> groups_;
  std::vector<std::vector<Bound>> bound_;       // by body and slot
  std::unique_ptr<comm::StepCapture> capture_;  // null: nothing is captured
  std::vector<List> lists_;
};

}  // namespace kintsugi::run

// Compares each device kernel with the reference on the same inputs: on the emulated device, with warps of 32 and 64,
// or on the device in KINTSUGI_TEST_DEVICE.
#pragma once

#include <cstdlib>
#include <fstream>

#include "kintsugi/device/device.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/kernels/kernel_test_harness.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {

constexpr DType kDeviceTypes[] = {DType::f32, DType::bf16, DType::f16};

inline const KernelSet& kernels_under_test() {
  static const std::unique_ptr<KernelSet> set = [] {
    const char* name = std::getenv("KINTSUGI_TEST_DEVICE");
    return device_kernels(device::open_device(name == nullptr ? "emulated" : name));
  }();
  return *set;
}
inline device::Device& device_under_test() {
  return *kernels_under_test().device();
}

// One unit in the last place: two roundings of nearly equal numbers differ by at most that.
inline double device_unit_of(DType dtype) {
  return dtype == DType::bf16 ? 1.0 / 128 : dtype == DType::f16 ? 1.0 / 1024 : 0;
}

struct DeviceTolerance {
  double relative = 2e-5, absolute = 2e-5;
};

// Device memory followed by a guard; `shift`: offset in bytes from a multiple of 256.
class OnDevice {
 public:
  OnDevice(int64_t bytes, int64_t shift)
      : bytes_(bytes), shift_(shift), memory_(device_under_test().allocate(shift + bytes + kGuard)) {}
  std::byte* data() const { return memory_->data() + shift_; }
  void put(device::Stream& stream, const std::byte* from) {
    std::vector<std::byte> all(static_cast<size_t>(bytes_ + kGuard), std::byte{0xFF});
    if (from != nullptr) std::memcpy(all.data(), from, static_cast<size_t>(bytes_));
    stream.copy(data(), all.data(), bytes_ + kGuard);
    stream.synchronize();
    if (device_under_test().emulated()) device::emulate::forbid(data() + bytes_, kGuard);
  }
  void get(device::Stream& stream, std::byte* to, const std::string& what) const {
    if (device_under_test().emulated()) device::emulate::allow(data() + bytes_, kGuard);
    std::vector<std::byte> all(static_cast<size_t>(bytes_ + kGuard));
    stream.copy(all.data(), data(), bytes_ + kGuard);
    stream.synchronize();
    if (to != nullptr) std::memcpy(to, all.data(), static_cast<size_t>(bytes_));
    for (size_t i = static_cast<size_t>(bytes_); i < all.size(); ++i)
      if (all[i] != std::byte{0xFF}) {
        ADD_FAILURE() << what << " wrote behind its memory";
        return;
      }
  }

 private:
  static constexpr int64_t kGuard = 256;
  int64_t bytes_, shift_;
  std::unique_ptr<device::Memory> memory_;
};

// For kernels that take the position of decoding: the same call with the beginning of seq in device memory.
inline std::string_view move_seq(const Trial& trial, std::vector<NamedIndex>& indices, Numbers& numbers) {
  const std::string_view kinds[] = {"attention", "cache_write", "position", "rotary"};
  if (std::find(std::begin(kinds), std::end(kinds), trial.kind) == std::end(kinds)) return "";
  for (NamedIndex& named : indices) {
    if (named.dim != "seq" || named.index.segments().empty()) continue;
    std::vector<tensor::Segment> segments = named.index.segments();
    numbers.position = segments[0].global;
    for (const tensor::Segment& s : segments)
      if (s.global >= 0) numbers.position = std::min(numbers.position, s.global);
    if (numbers.position <= 0) return "";
    for (tensor::Segment& s : segments) s.global -= s.global < 0 ? 0 : numbers.position;
    named.index = DimIndex(segments, named.index.whole());
    return "seq";
  }
  return "";
}

// Logs each run, by kind and warp size, as a line in the file that KINTSUGI_KERNEL_RUNS names. For
// bench/gpu/sanitizers.sh.
inline void note_run(const std::string& kind) {
  const char* file = std::getenv("KINTSUGI_KERNEL_RUNS");
  if (file != nullptr) std::ofstream(file, std::ios::app) << kind << ' ' << device::emulate::warp() << '\n';
}

// A call with its operands in memory of the device under test. An output that is the same object as an input is
// computed in place. Operands are misaligned by `shift` elements.
class DeviceCall {
 public:
  DeviceCall(const Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs,
             device::Stream& stream, int64_t shift)
      : trial_(trial), stream_(stream), indices_(trial.indices) {
    const Kernel& kernel = kernels_under_test().find(trial.kind);
    std::vector<const Type*> in_types, out_types;
    for (Tensor* x : ins) add(x, shift, in_views_, in_types);
    for (Tensor* x : outs) add(x, shift, out_views_, out_types);
    const auto fill = [](const tensor::OperandList& names, std::vector<View>& views, std::vector<const Type*>& types) {
      while (views.size() < names.size() && names[views.size()].optional)
        views.emplace_back(), types.push_back(nullptr);
    };
    fill(kernel.ins, in_views_, in_types);
    fill(kernel.outs, out_views_, out_types);
    const KernelShapes shapes{in_types, out_types, trial.attributes, 1};
    bytes_ = kernel.workspace ? kernel.workspace(shapes) : 0;
    workspace_ = std::make_unique<OnDevice>(bytes_, 0);
    workspace_->put(stream, nullptr);
    Numbers known = trial.numbers;
    moved_ = shift > 0 ? move_seq(trial, indices_, known) : "";
    numbers_ = std::make_unique<OnDevice>(sizeof(Numbers), 0);
    numbers_->put(stream, reinterpret_cast<const std::byte*>(&known));
    note_run(trial.kind);
  }
  DeviceCall(const DeviceCall&) = delete;

  KernelCall call() {
    return {.ins = in_views_,
            .outs = out_views_,
            .attributes = trial_.attributes,
            .indices = indices_,
            .accumulate = trial_.accumulate,
            .workspace = {workspace_->data(), static_cast<size_t>(bytes_)},
            .numbers = trial_.numbers,
            .team = team_,
            .stream = &stream_,
            .later = reinterpret_cast<const Numbers*>(numbers_->data()),
            .moved = moved_,
            .kind = trial_.kind,
            .places = trial_.places};
  }
  // Copies the results back, once the stream is done.
  void take() {
    workspace_->get(stream_, nullptr, trial_.kind + ": workspace");
    for (const auto& [x, at] : memory_) at->get(stream_, x->view().data, trial_.kind);
  }

 private:
  std::byte* place(Tensor* x, int64_t shift) {
    for (const auto& [other, at] : memory_)
      if (other == x) return at->data();
    memory_.emplace_back(x, std::make_unique<OnDevice>(x->type().bytes(), shift * tensor::size_of(x->type().dtype)));
    memory_.back().second->put(stream_, x->view().data);
    return memory_.back().second->data();
  }
  void add(Tensor* x, int64_t shift, std::vector<View>& views, std::vector<const Type*>& types) {
    views.push_back(x ? View{place(x, shift), x->type()} : View());
    types.push_back(x ? &x->type() : nullptr);
    for (const tensor::Dim& dim : views.back().shape()) {
      bool known = false;
      for (const NamedIndex& named : indices_) known |= named.dim == dim.name;
      if (!known) indices_.push_back({dim.name, DimIndex(dim.size)});
    }
  }

  const Trial& trial_;
  device::Stream& stream_;
  std::vector<NamedIndex> indices_;
  std::vector<std::pair<Tensor*, std::unique_ptr<OnDevice>>> memory_;
  std::vector<View> in_views_, out_views_;
  std::unique_ptr<OnDevice> workspace_, numbers_;
  int64_t bytes_ = 0;
  std::string_view moved_;
  base::ThreadTeam team_{1};
};

// As run_kernel(), with memory of the device under test.
inline void run_on_device(const Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs,
                          int64_t shift = 0) {
  const auto stream = device_under_test().stream();
  DeviceCall one(trial, ins, outs, *stream, shift);
  kernels_under_test().find(trial.kind).run(one.call());
  stream->synchronize();
  one.take();
}

// Checks that calls of one kernel launched together give the same bits as separately, or agree within a tolerance.
// `ins` and `outs`: per call.
inline void compare_together(const Trial& trial, const std::vector<std::vector<Tensor*>>& ins,
                             const std::vector<std::vector<Tensor>>& outs, int64_t shift = 0,
                             const DeviceTolerance& tolerance = {0, 0}) {
  std::vector<std::vector<Tensor>> alone = outs, together = outs;
  const auto pointers = [](std::vector<Tensor>& list) {
    std::vector<Tensor*> all;
    for (Tensor& x : list) all.push_back(&x);
    return all;
  };
  const auto stream = device_under_test().stream();
  std::vector<std::unique_ptr<DeviceCall>> made;
  std::vector<KernelCall> calls;
  for (size_t i = 0; i < outs.size(); ++i) {
    run_on_device(trial, ins[i], pointers(alone[i]), shift);
    made.push_back(std::make_unique<DeviceCall>(trial, ins[i], pointers(together[i]), *stream, shift));
    calls.push_back(made.back()->call());
  }
  const Kernel& kernel = kernels_under_test().find(trial.kind);
  if (!kernel.together(calls))
    for (const KernelCall& call : calls) kernel.run(call);
  stream->synchronize();
  for (size_t i = 0; i < outs.size(); ++i) {
    made[i]->take();
    for (size_t o = 0; o < outs[i].size(); ++o)
      expect_close(together[i][o], alone[i][o], tolerance.relative, tolerance.absolute);
  }
}

// A sequence of calls of several kernels, some of which read the outputs of others.
class CallsInARow {
 public:
  explicit CallsInARow(int64_t shift) : shift_(shift), stream_(device_under_test().stream()) {}
  size_t add(Trial trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs) {
    One& one = *all_.emplace_back(std::make_unique<One>());
    one.trial = std::move(trial);
    one.call = std::make_unique<DeviceCall>(one.trial, ins, outs, *stream_, shift_);
    const KernelCall call = one.call->call();
    one.ins.assign(call.ins.begin(), call.ins.end());
    return all_.size() - 1;
  }
  // Makes an operand of a call the output of another; its own memory is unused.
  void read(size_t call, size_t operand, size_t maker, size_t output = 0) {
    all_[call]->ins[operand].data = all_[maker]->call->call().outs[output].data;
  }
  // Makes an operand the same operand of another call.
  void read_operand_of(size_t call, size_t operand, size_t other) {
    all_[call]->ins[operand].data = all_[other]->ins[operand].data;
  }
  // Launches all of them together by the kernel of the last, with that warp size if emulated, and late copies; or each
  // separately. Returns false if they cannot be launched together.
  bool run(bool at_once, int warp) {
    device::emulate::set_warp(at_once ? warp : 32);
    device::emulate::set_order(at_once ? device::emulate::Order::last_to_first : device::emulate::Order::first_to_last);
    std::vector<KernelCall> calls;
    for (const auto& one : all_) {
      calls.push_back(one->call->call());
      calls.back().ins = one->ins;
    }
    const KernelSet& set = kernels_under_test();
    if (at_once && !set.find(calls.back().kind).together(calls)) return false;
    if (!at_once)
      for (const KernelCall& call : calls) set.find(call.kind).run(call);
    stream_->synchronize();
    for (const auto& one : all_) one->call->take();
    return true;
  }

 private:
  struct One {
    Trial trial;
    std::unique_ptr<DeviceCall> call;
    std::vector<View> ins;
  };
  int64_t shift_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<std::unique_ptr<One>> all_;
};

// Runs the trial on the device and by the reference; outputs begin as copies of `outs`. If emulated, with warps of 32
// and 64, and with aligned and misaligned operands.
inline void compare_on_device(const Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor>& outs,
                              DeviceTolerance tolerance = {}) {
  static const auto reference = reference_kernels();
  std::vector<Tensor> want = outs;
  std::vector<Tensor*> want_outs;
  for (Tensor& x : want) want_outs.push_back(x.type().dtype == DType::f64 && x.elements() == 0 ? nullptr : &x);
  run_kernel(*reference, trial, ins, want_outs);
  for (int warp : {32, 64}) {
    for (int64_t shift : {0, 1}) {
      if (warp == 64 && device_under_test().kind() != "emulated") continue;
      device::emulate::set_warp(warp);
      device::emulate::set_order((warp == 32) == (shift == 0) ? device::emulate::Order::first_to_last
                                                              : device::emulate::Order::last_to_first);
      std::vector<Tensor> got = outs;
      std::vector<Tensor*> got_outs;
      for (size_t i = 0; i < got.size(); ++i) got_outs.push_back(want_outs[i] ? &got[i] : nullptr);
      run_on_device(trial, ins, got_outs, shift);
      for (size_t i = 0; i < outs.size(); ++i) {
        if (!got_outs[i]) continue;
        // Accumulation in 16 bits may round an intermediate result.
        const double unit = device_unit_of(got[i].type().dtype), before = trial.accumulate >> i & 1 ? unit : 0;
        expect_close(got[i], want[i], tolerance.relative + unit, tolerance.absolute + before,
                     trial.kind + " output " + std::to_string(i) + " " + std::string(name_of(got[i].type().dtype)) +
                         " warp " + std::to_string(warp) + " shift " + std::to_string(shift));
      }
    }
  }
  device::emulate::set_warp(32);
  device::emulate::set_order(device::emulate::Order::first_to_last);
}

// Limits the shared memory of emulated blocks during its lifetime.
struct SharedMemory {
  explicit SharedMemory(size_t bytes) { device::emulate::set_most_shared(bytes); }
  ~SharedMemory() { device::emulate::set_most_shared(0); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
};
// NVIDIA compute capabilities 8.6, 8.9 and 12.0; 9.0.
constexpr size_t kLittleShared = 99 * 1024, kMuchShared = 227 * 1024;

// An absent output in the lists above.
inline Tensor absent() {
  return Tensor(Shape({{"none", 0}}), DType::f64);
}

}  // namespace kintsugi::kernels::test

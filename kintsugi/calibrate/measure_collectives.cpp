#include "kintsugi/calibrate/measure_collectives.h"

#include <algorithm>
#include <chrono>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/same_on_all.h"

namespace kintsugi::calibrate {

using comm::Communicator;
using comm::Event;
using program::Collective;
using tensor::DType;

namespace {

constexpr int64_t kRotated = int64_t{16} << 20;  // bytes of values used in rotation
constexpr int kLeastTimes = 5, kMostTimes = 2000;

using Clock = std::chrono::steady_clock;

// Rotating values of the full size, each in `in` and in `out`.
class Values {
 public:
  Values(int64_t bytes, int ranks)
      : bytes_(static_cast<size_t>(bytes)),
        part_(bytes_ / static_cast<size_t>(ranks)),
        copies_(static_cast<size_t>(std::clamp<int64_t>(kRotated / std::max<int64_t>(1, bytes), 1, 64))),
        in_(copies_ * bytes_ / sizeof(float), 1.0f),
        out_(in_.size(), 1.0f) {}

  void next() { at_ = (at_ + 1) % copies_; }
  std::span<std::byte> in() { return place(in_); }
  std::span<std::byte> out() { return place(out_); }
  std::span<std::byte> part_of_in() { return in().first(part_); }
  std::span<std::byte> part_of_out() { return out().first(part_); }

 private:
  std::span<std::byte> place(std::vector<float>& of) {
    return std::as_writable_bytes(std::span(of)).subspan(at_ * bytes_, bytes_);
  }

  size_t bytes_, part_, copies_, at_ = 0;
  std::vector<float> in_, out_;
};

Event start(Communicator& c, Operation operation, Values& v) {
  const auto sum = comm::Reduction::sum;
  switch (operation) {
    case Operation::all_reduce:
      return c.all_reduce(v.in(), v.out(), DType::f32, sum);
    case Operation::reduce:
      return c.reduce(v.in(), v.out(), DType::f32, sum, 0);
    case Operation::broadcast:
      return c.broadcast(v.in(), 0);
    case Operation::all_gather:
      return c.all_gather(v.part_of_in(), v.out());
    case Operation::scatter:
      return c.scatter(v.in(), v.part_of_out(), 0);
    case Operation::gather:
      return c.gather(v.part_of_in(), v.out(), 0);
    case Operation::reduce_scatter:
      return c.reduce_scatter(v.in(), v.part_of_out(), DType::f32, sum);
    case Operation::all_to_all:
      return c.all_to_all(v.in(), v.out());
    case Operation::shift: {
      const int next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
      return c.exchange(std::array{comm::Message::from(last, v.out()), comm::Message::to(next, v.in())});
    }
    case Operation::send:  // back and forth
      if (c.rank() == 0) {
        c.wait(c.send(v.in(), 1));
        return c.receive(v.out(), 1);
      }
      if (c.rank() != 1) return c.exchange({});
      c.wait(c.receive(v.out(), 0));
      return c.send(v.in(), 0);
    case Operation::barrier:
      return c.barrier();
  }
  throw base::InternalError("calibrate", "no operation {}", static_cast<int>(operation));
}

double of_slowest(Communicator& c, double mine) {
  double all = 0;
  c.wait(c.all_reduce(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&all, 1)), DType::f64,
                      comm::Reduction::max));
  return all;
}

double seconds_of(Communicator& c, Operation operation, Values& v) {
  v.next();
  c.wait(c.barrier());
  const Clock::time_point begin = Clock::now();
  c.wait(start(c, operation, v));
  return std::chrono::duration<double>(Clock::now() - begin).count() / (operation == Operation::send ? 2 : 1);
}

double measure(Communicator& c, Operation operation, int64_t bytes, double seconds) {
  Values values(bytes, c.size());
  for (int i = 0; i < 2; ++i) seconds_of(c, operation, values);  // touch pages
  const double once = of_slowest(c, seconds_of(c, operation, values));
  const int times =
      static_cast<int>(std::clamp(seconds / std::max(1e-7, once), double{kLeastTimes}, double{kMostTimes}));
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.push_back(seconds_of(c, operation, values));
  std::ranges::nth_element(all, all.begin() + times / 2);
  return of_slowest(c, all[static_cast<size_t>(times / 2)]);
}

}  // namespace

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce:
      return "reduce";
    case Operation::broadcast:
      return "broadcast";
    case Operation::all_gather:
      return "all_gather";
    case Operation::scatter:
      return "scatter";
    case Operation::gather:
      return "gather";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::shift:
      return "shift";
    case Operation::send:
      return "send";
    case Operation::barrier:
      return "barrier";
  }
  throw base::InternalError("calibrate", "no operation {}", static_cast<int>(operation));
}

std::vector<Operation> operations() {
  using enum Operation;
  return {all_reduce, reduce, broadcast, all_gather, scatter, gather, reduce_scatter, all_to_all, shift, send, barrier};
}

std::optional<Collective> collective_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return Collective::all_reduce;
    case Operation::all_gather:
      return Collective::all_gather;
    case Operation::reduce_scatter:
      return Collective::reduce_scatter;
    case Operation::all_to_all:
      return Collective::all_to_all;
    case Operation::shift:
      return Collective::shift;
    case Operation::send:
      return Collective::send;
    default:
      return std::nullopt;
  }
}

double sent_bytes(Operation operation, int ranks, double bytes) {
  const double others = bytes * (ranks - 1) / ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::barrier:
      return 0;
    case Operation::reduce:
    case Operation::broadcast:
    case Operation::shift:
    case Operation::send:
      return bytes;
    default:
      return others;
  }
}

double moved_bytes(Operation operation, int ranks, double bytes) {
  switch (operation) {
    case Operation::all_reduce:
    case Operation::all_to_all:
    case Operation::shift:
      return 2 * ranks * bytes;  // all ranks read and write the whole value
    case Operation::reduce:
    case Operation::reduce_scatter:
      return (ranks + 1) * bytes;  // all ranks read it, one writes it
    case Operation::broadcast:
      return ranks * bytes;  // one reads it, all but the root write it
    case Operation::all_gather:
      return (ranks + 1) * bytes;
    case Operation::scatter:
    case Operation::gather:
    case Operation::send:
      return 2 * bytes;
    case Operation::barrier:
      return 0;
  }
  throw base::InternalError("calibrate", "no operation {}", static_cast<int>(operation));
}

std::vector<CollectiveTime> measure_collectives(comm::World& world, const CollectiveOptions& options) {
  const auto all = comm::group_of_all(world);
  std::vector<CollectiveTime> times;
  for (const Operation operation : operations())
    for (const int64_t size : options.sizes) {
      const bool empty = operation == Operation::barrier;
      if (empty && size != options.sizes.front()) continue;
      // Parts are multiples of the fp32 size.
      const int64_t unit = int64_t{4} * all->size(), bytes = std::max(unit, size / unit * unit);
      if (options.progress && world.rank() == 0) options.progress(operation, bytes);
      times.push_back({operation, all->size(), empty ? 0 : bytes, measure(*all, operation, bytes, options.seconds)});
    }
  return times;
}

}  // namespace kintsugi::calibrate

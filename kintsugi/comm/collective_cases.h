// Test cases for every backend: compares each collective, bit for bit, with a serial computation over the data of all
// ranks. Every function is collective and returns the first error, or "".
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm::cases {

using Bytes = std::vector<std::byte>;
constexpr std::array kDTypes = {tensor::DType::f64, tensor::DType::f32, tensor::DType::bf16,
                                tensor::DType::f16, tensor::DType::i64, tensor::DType::i32};
constexpr std::array kReductions = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min};

template <typename F>
auto for_type(tensor::DType dtype, F&& f) {
  if (dtype == tensor::DType::i64) return f(int64_t{});
  if (dtype == tensor::DType::i32) return f(int32_t{});
  return tensor::dispatch(dtype, f);
}

inline std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32);
}

inline Bytes noise(size_t bytes, uint64_t seed) {
  Bytes data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(mix(seed * 1'000'003 + i + 1));
  return data;
}

// Numbers of widely different magnitudes, so that the order of additions is visible; if the backend guarantees no
// order, small integers that sum to the same bits in any order.
inline Bytes numbers(size_t count, tensor::DType dtype, uint64_t seed, bool ordered = true) {
  Bytes data(count * tensor::size_of(dtype));
  for_type(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t h = mix(seed * 1'000'003 + i + 1);
      T x;
      if (!ordered) {
        x = static_cast<T>(static_cast<float>(h % 8));
      } else if constexpr (std::is_integral_v<T>) {
        x = static_cast<T>(h);
      } else {
        const double mantissa = std::ldexp(static_cast<double>(static_cast<int64_t>(h)), -52);  // up to 2,048
        x = T(static_cast<tensor::arithmetic_t<T>>(std::ldexp(mantissa, 1 - static_cast<int>(h % 20))));
      }
      std::memcpy(data.data() + i * sizeof(T), &x, sizeof(T));
    }
  });
  return data;
}

template <typename W>
W join(W a, W b, Reduction reduction) {
  if (reduction == Reduction::max) return b > a ? b : a;
  if (reduction == Reduction::min) return b < a ? b : a;
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::make_unsigned_t<W>>(a) + static_cast<std::make_unsigned_t<W>>(b));
  } else {
    return a + b;
  }
}

inline Bytes reduce_serially(const std::vector<Bytes>& ins, tensor::DType dtype, Reduction reduction) {
  Bytes out(ins[0].size());
  for_type(dtype, [&]<typename T>(T) {
    using W = std::conditional_t<std::is_integral_v<T>, T, tensor::arithmetic_t<T>>;
    for (size_t at = 0; at < out.size(); at += sizeof(T)) {
      T x;
      std::memcpy(&x, ins[0].data() + at, sizeof(T));
      W sum = static_cast<W>(x);
      for (size_t k = 1; k < ins.size(); ++k) {
        std::memcpy(&x, ins[k].data() + at, sizeof(T));
        sum = join(sum, static_cast<W>(x), reduction);
      }
      if (reduction == Reduction::mean) sum = sum / static_cast<W>(ins.size());
      const T y = static_cast<T>(sum);
      std::memcpy(out.data() + at, &y, sizeof(T));
    }
  });
  return out;
}

inline std::string compare(const std::string& what, std::span<const std::byte> got, std::span<const std::byte> want) {
  if (got.size() != want.size()) return fmt::format("{}: {} bytes, not {}; ", what, got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != want[i]) return fmt::format("{}: byte {} of {} differs; ", what, i, got.size());
  }
  return "";
}

// all_reduce, reduce, reduce_scatter of `part` elements for each rank, and their forms in place.
inline std::string reductions(Communicator& comm, size_t part, tensor::DType dtype, Reduction reduction) {
  const int n = comm.size(), me = comm.rank();
  std::vector<Bytes> ins;
  const bool ordered = comm.backend().adds_in_rank_order;
  for (int r = 0; r < n; ++r) ins.push_back(numbers(part * n, dtype, 17 + r, ordered));
  const Bytes want = reduce_serially(ins, dtype, reduction);
  const Bytes& in = ins[me];
  const size_t bytes = part * tensor::size_of(dtype);
  const auto mine = [&](Bytes& b) { return std::span(b).subspan(me * bytes, bytes); };
  const std::string name =
      fmt::format("{} {} x {} on {} of {}", name_of(reduction), part, tensor::name_of(dtype), me, n);
  std::string wrong;

  Bytes out(in.size()), x = in, y = in, kept = in, piece(bytes), only(in.size());
  const int root = static_cast<int>(part) % n;
  std::vector<Event> events = {
      comm.all_reduce(in, out, dtype, reduction),
      comm.all_reduce(x, x, dtype, reduction),
      comm.reduce(kept, me == root ? std::span(only) : std::span<std::byte>(), dtype, reduction, root),
      comm.reduce_scatter(in, piece, dtype, reduction),
      comm.reduce_scatter(y, mine(y), dtype, reduction),
  };
  comm.wait(events.back());
  wrong += compare(name + " all_reduce", out, want);
  wrong += compare(name + " all_reduce in place", x, want);
  if (me == root) wrong += compare(name + " reduce", only, want);
  wrong += compare(name + " what reduce reads", kept, in);
  wrong += compare(name + " reduce_scatter", piece, std::span(want).subspan(me * bytes, bytes));
  wrong += compare(name + " reduce_scatter in place", mine(y), std::span(want).subspan(me * bytes, bytes));
  comm.wait(comm.reduce(x, x, dtype, Reduction::max, root));  // all inputs are equal here
  wrong += compare(name + " reduce in place", x, want);
  return wrong;
}

// The collectives that only move bytes, with parts of `bytes`.
inline std::string movements(Communicator& comm, size_t bytes) {
  const int n = comm.size(), me = comm.rank();
  std::string wrong;
  std::vector<Bytes> ins;
  Bytes all, to_me;
  for (int r = 0; r < n; ++r) {
    ins.push_back(noise(bytes * n, 91 + r));
    all.insert(all.end(), ins[r].begin(), ins[r].begin() + bytes);
    to_me.insert(to_me.end(), ins[r].begin() + me * bytes, ins[r].begin() + (me + 1) * bytes);
  }
  const auto part = [&](auto& b, int r) { return std::span(b).subspan(r * bytes, bytes); };
  const auto name = [&](std::string_view what) {
    return fmt::format("{} of {} bytes on {} of {}", what, bytes, me, n);
  };

  Bytes out(bytes * n), x(bytes * n), exchanged(bytes * n);
  std::copy_n(ins[me].begin(), bytes, part(x, me).begin());
  comm.all_gather(part(ins[me], 0), out);
  comm.all_gather(part(x, me), x);
  comm.wait(comm.all_to_all(ins[me], exchanged));
  wrong += compare(name("all_gather"), out, all);
  wrong += compare(name("all_gather in place"), x, all);
  wrong += compare(name("all_to_all"), exchanged, to_me);
  for (int root = 0; root < n; ++root) {
    const bool is_root = me == root;
    Bytes data = is_root ? ins[root] : Bytes(bytes * n), piece(bytes), whole(is_root ? bytes * n : 0);
    comm.broadcast(data, root);
    comm.scatter(is_root ? std::span<const std::byte>(ins[root]) : std::span<const std::byte>(), piece, root);
    comm.wait(comm.gather(part(ins[me], 0), whole, root));
    comm.wait(comm.barrier());
    wrong += compare(name("broadcast"), data, ins[root]);
    wrong += compare(name("scatter"), piece, part(ins[root], me));
    if (is_root) wrong += compare(name("gather"), whole, all);
  }
  return wrong;
}

// Ring shifts with `count` messages of different lengths in flight; each rank enqueues all of them before it waits.
inline std::string messages(Communicator& comm, int count, size_t bytes) {
  const int n = comm.size(), me = comm.rank();
  if (n == 1) return "";
  const int next = (me + 1) % n, last = (me + n - 1) % n;
  std::vector<Bytes> sent, received;
  for (int i = 0; i < count; ++i) {
    sent.push_back(noise(bytes + i, me * count + i));
    received.emplace_back(bytes + i);
  }
  Event event;
  for (int i = 0; i < count; ++i) event = comm.send(sent[i], next);
  for (int i = 0; i < count; ++i) event = comm.receive(received[i], last);
  comm.wait(event);
  std::string wrong;
  for (int i = 0; i < count; ++i) {
    wrong += compare(fmt::format("message {} on {} of {}", i, me, n), received[i], noise(bytes + i, last * count + i));
  }
  return wrong;
}

// Ring exchanges: `count` messages each to the next rank, the previous rank and itself. Even ranks receive first, odd
// ranks send first.
inline std::string exchange(Communicator& comm, int count, size_t bytes) {
  const int n = comm.size(), me = comm.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const auto data = [&](int from, int which, int i) { return noise(bytes + i, (from * 3 + which) * count + i); };
  std::vector<Bytes> sent, received, want;
  std::vector<Message> messages;
  sent.reserve(3 * count), received.reserve(3 * count);
  const auto add = [&](int to, int from, int which, int i) {
    want.push_back(data(from, which, i));
    const Message out = Message::to(to, sent.emplace_back(data(me, which, i)));
    const Message in = Message::from(from, received.emplace_back(bytes + i));
    messages.push_back(me % 2 == 0 ? in : out);
    messages.push_back(me % 2 == 0 ? out : in);
  };
  for (int i = 0; i < count; ++i) {
    add(next, before, 0, i);
    if (n != 2) add(before, next, 1, i);  // of two ranks, next and previous are the same
    add(me, me, 2, i);
  }
  comm.wait(comm.exchange(messages));
  std::string wrong;
  for (size_t i = 0; i < want.size(); ++i) {
    wrong += compare(fmt::format("message {} of an exchange on {} of {}", i, me, n), received[i], want[i]);
  }
  return wrong;
}

// Exchanges interleaved with other messages of the same ranks, and an empty exchange.
inline std::string exchanges(Communicator& comm) {
  const int n = comm.size(), me = comm.rank();
  std::string wrong;
  for (const size_t bytes : {0, 5, 200'000}) wrong += exchange(comm, 3, bytes);
  wrong += exchange(comm, 10, 9);
  comm.wait(comm.exchange({}));
  if (n == 1) return wrong;
  // Only one end of a message may be part of an exchange.
  const int peer = me ^ 1;
  if (peer >= n || comm.backend().one_at_a_time) return wrong;
  const Bytes first = noise(40, me), second = noise(50, me + 100), third = noise(60, me + 200);
  Bytes a(40), b(50), c(60);
  if (me % 2 == 0) {
    comm.send(first, peer);
    const Event both = comm.exchange(std::array{Message::to(peer, second), Message::from(peer, a)});
    comm.send(third, peer);
    comm.receive(b, peer);
    comm.wait(both);
    comm.wait(comm.receive(c, peer));
  } else {
    comm.wait(comm.exchange(std::array{Message::from(peer, a), Message::from(peer, b), Message::to(peer, first),
                                       Message::to(peer, second), Message::from(peer, c)}));
    comm.wait(comm.send(third, peer));
  }
  wrong += compare("first message", a, noise(40, peer)) + compare("second message", b, noise(50, peer + 100)) +
           compare("third message", c, noise(60, peer + 200));
  return wrong;
}

// More messages than may be in flight: the oldest complete first, as the receiver proceeds.
inline std::string many_sends(Communicator& comm) {
  const int n = comm.size(), me = comm.rank();
  std::vector<int> numbers(300, -1);
  for (int i = 0; i < 300; ++i) {
    const auto one = std::as_writable_bytes(std::span(&numbers[i], 1));
    if (me == 0) numbers[i] = i;
    if (me == 0 && n > 1) comm.send(one, 1);
    if (me == 1) comm.wait(comm.receive(one, 0));
  }
  comm.wait(comm.barrier());
  if (me > 1) return "";
  for (int i = 0; i < 300; ++i) {
    if (numbers[i] != i) return fmt::format("message {} of many is {}; ", i, numbers[i]);
  }
  return "";
}

// Non-default group options: messages only, few collectives, and 300 messages in flight, which rank 0 sends and rank 1
// receives before either waits.
inline std::string group_options(World& world) {
  const std::vector<int> all = all_ranks(world.size());
  const auto small = world.group(all, {.collectives = 2, .messages = 60});
  std::string wrong = reductions(*small, 100, tensor::DType::f32, Reduction::sum) + exchange(*small, 3, 5);
  const auto wide = world.group(all, {.collectives = 0, .messages = 300});
  const int me = wide->rank(), n = wide->size();
  if (n == 1 || me > 1) return wrong;
  std::vector<int> numbers(300, -1);
  for (int i = 0; i < 300; ++i) {
    const auto one = std::as_writable_bytes(std::span(&numbers[i], 1));
    if (me == 0) numbers[i] = i;
    me == 0 ? wide->send(one, 1) : wide->receive(one, 0);
  }
  // Both ranks wait only now, and for another group first: with a smaller limit both would deadlock.
  const auto other = world.group(std::array{0, 1}, {.collectives = 1, .messages = 1});
  other->wait(other->barrier());
  wide->wait({300});
  for (int i = 0; i < 300; ++i) {
    if (numbers[i] != i) wrong += fmt::format("message {} of a wide group is {}; ", i, numbers[i]);
  }
  return wrong;
}

// A mesh of 2 x (size / 2) ranks with a collective in flight on both axes; every second rank waits in the opposite
// order.
inline std::string two_axes(World& world, int rounds) {
  const int columns = world.size() / 2, row = world.rank() / columns, column = world.rank() % columns;
  std::vector<int> along_row(columns);
  std::iota(along_row.begin(), along_row.end(), row * columns);
  const std::vector<int> along_column = {column, column + columns};
  const auto x = world.group(along_row), y = world.group(along_column);
  std::string wrong;
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> a(20'000, static_cast<float>(world.rank() + round)), b = a;
    const Event in_row = x->all_reduce(std::as_bytes(std::span(a)), std::as_writable_bytes(std::span(a)),
                                       tensor::DType::f32, Reduction::sum);
    const Event in_column = y->all_reduce(std::as_bytes(std::span(b)), std::as_writable_bytes(std::span(b)),
                                          tensor::DType::f32, Reduction::max);
    x->progress();
    if ((world.rank() + round) % 2 == 0) {
      x->wait(in_row);
      y->wait(in_column);
    } else {
      y->wait(in_column);
      x->wait(in_row);
    }
    float sum = 0;
    for (const int r : along_row) sum += static_cast<float>(r + round);
    const float most = static_cast<float>(column + columns + round);
    if (a != std::vector<float>(a.size(), sum)) wrong += fmt::format("row sum of round {}; ", round);
    if (b != std::vector<float>(b.size(), most)) wrong += fmt::format("column maximum of round {}; ", round);
  }
  return wrong;
}

// Random calls, several in flight, in the same sequence on all ranks; each rank pauses and waits at random times.
inline std::string at_random(Communicator& comm, uint64_t seed, int calls) {
  struct Open {
    std::string name;
    Event event;
    Bytes in, out, want;
  };
  const int n = comm.size(), me = comm.rank();
  std::mt19937_64 common(seed), own(seed * 31 + me + 1);
  std::vector<Open> open;
  std::string wrong;
  const auto close = [&](size_t keep) {
    while (open.size() > keep) {
      comm.wait(open.front().event);
      wrong += compare(open.front().name, open.front().out, open.front().want);
      open.erase(open.begin());
    }
  };
  for (int call = 0; call < calls; ++call) {
    const size_t part = common() % 3 == 0 ? common() % (40'000 / n) : common() % 300;
    const auto dtype = kDTypes[common() % kDTypes.size()];
    const auto reduction = kReductions[common() % kReductions.size()];
    const int kind = static_cast<int>(common() % 4), root = static_cast<int>(common() % n);
    const size_t bytes = part * tensor::size_of(dtype);
    std::vector<Bytes> ins;
    const bool ordered = comm.backend().adds_in_rank_order;
    for (int r = 0; r < n; ++r) ins.push_back(numbers(part * n, dtype, seed + call * 64 + r, ordered));
    open.push_back({fmt::format("call {} of seed {} on {}", call, seed, me), {}, ins[me], Bytes(bytes * n), {}});
    Open& o = open.back();
    if (kind == 0) {
      o.want = reduce_serially(ins, dtype, reduction);
      o.event = comm.all_reduce(o.in, o.out, dtype, reduction);
    } else if (kind == 1) {
      o.want = ins[root];
      if (me == root) o.out = o.in;
      o.event = comm.broadcast(o.out, root);
    } else if (kind == 2) {
      for (int r = 0; r < n; ++r) o.want.insert(o.want.end(), ins[r].begin(), ins[r].begin() + bytes);
      o.event = comm.all_gather(std::span(o.in).first(bytes), o.out);
    } else {
      const Bytes whole = reduce_serially(ins, dtype, reduction);
      o.out.resize(bytes);
      o.want.assign(whole.begin() + me * bytes, whole.begin() + (me + 1) * bytes);
      o.event = comm.reduce_scatter(o.in, o.out, dtype, reduction);
    }
    if (own() % 4 == 0) comm.progress();
    if (own() % 2 == 0) close(own() % 6);
  }
  close(0);
  return wrong;
}

}  // namespace kintsugi::comm::cases

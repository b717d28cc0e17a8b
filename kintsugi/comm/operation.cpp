#include "kintsugi/comm/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::comm {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce:
      return "reduce";
    case Kind::broadcast:
      return "broadcast";
    case Kind::all_gather:
      return "all_gather";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::scatter:
      return "scatter";
    case Kind::gather:
      return "gather";
    case Kind::all_to_all:
      return "all_to_all";
    case Kind::barrier:
      return "barrier";
    case Kind::send:
      return "send";
    case Kind::receive:
      return "receive";
  }
  throw base::InternalError("comm", "kind {}", static_cast<int>(kind));
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::mean:
      return "mean";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
  }
  throw base::InternalError("comm", "reduction {}", static_cast<int>(reduction));
}

bool Operation::reduces() const {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

bool Operation::has_parts() const {
  return kind == Kind::all_gather || kind == Kind::reduce_scatter || kind == Kind::scatter || kind == Kind::gather ||
         kind == Kind::all_to_all;
}

bool Operation::agrees_with(const Operation& other) const {
  if (kind != other.kind || bytes != other.bytes || root != other.root) return false;
  return !reduces() || (dtype == other.dtype && reduction == other.reduction);
}

std::string Operation::text() const {
  if (kind == Kind::barrier) return "barrier";
  return fmt::format("{} of {} bytes", name_of(kind), bytes);
}

std::string Operation::text_in_full() const {
  if (reduces() && root >= 0) {
    return fmt::format("{} ({} of {}, root {})", text(), name_of(reduction), tensor::name_of(dtype), root);
  }
  if (reduces()) return fmt::format("{} ({} of {})", text(), name_of(reduction), tensor::name_of(dtype));
  if (root >= 0) return fmt::format("{} (root {})", text(), root);
  return text();
}

void CheckedCommunicator::check_root(Kind kind, int root) const {
  base::require(root >= 0 && root < size(), "comm", "{} with rank {} of a group of {}", name_of(kind), root, size());
}

void CheckedCommunicator::check_size(Kind kind, std::string_view buffer, size_t have, size_t need) const {
  base::require(have == need, "comm", "{} among {} ranks: {} has {} bytes, not {}", name_of(kind), size(), buffer, have,
                need);
}

void CheckedCommunicator::check_elements(Kind kind, size_t bytes, tensor::DType dtype) const {
  base::require(dtype != tensor::DType::u8 && dtype != tensor::DType::i8 && dtype != tensor::DType::u16, "comm",
                "{} of {}", name_of(kind), tensor::name_of(dtype));
  base::require(bytes % tensor::size_of(dtype) == 0, "comm", "{} of {} bytes, which are no whole number of {}",
                name_of(kind), bytes, tensor::name_of(dtype));
}

Event CheckedCommunicator::all_reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                                      Reduction reduction) {
  check_size(Kind::all_reduce, "out", out.size(), in.size());
  check_elements(Kind::all_reduce, in.size(), dtype);
  return enqueue({Kind::all_reduce, dtype, reduction, -1, in.size(), in.data(), out.data()});
}

Event CheckedCommunicator::reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                                  Reduction reduction, int root) {
  check_root(Kind::reduce, root);
  if (rank() == root) check_size(Kind::reduce, "out", out.size(), in.size());
  check_elements(Kind::reduce, in.size(), dtype);
  return enqueue({Kind::reduce, dtype, reduction, root, in.size(), in.data(), rank() == root ? out.data() : nullptr});
}

Event CheckedCommunicator::broadcast(std::span<std::byte> data, int root) {
  check_root(Kind::broadcast, root);
  return enqueue({.kind = Kind::broadcast, .root = root, .bytes = data.size(), .in = data.data(), .out = data.data()});
}

Event CheckedCommunicator::all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
  check_size(Kind::all_gather, "out", out.size(), in.size() * size());
  return enqueue({.kind = Kind::all_gather, .bytes = out.size(), .in = in.data(), .out = out.data()});
}

Event CheckedCommunicator::reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                                          Reduction reduction) {
  check_size(Kind::reduce_scatter, "in", in.size(), out.size() * size());
  check_elements(Kind::reduce_scatter, out.size(), dtype);
  return enqueue({Kind::reduce_scatter, dtype, reduction, -1, in.size(), in.data(), out.data()});
}

Event CheckedCommunicator::scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) {
  check_root(Kind::scatter, root);
  const size_t bytes = out.size() * size();
  if (rank() == root) check_size(Kind::scatter, "in", in.size(), bytes);
  return enqueue({.kind = Kind::scatter,
                  .root = root,
                  .bytes = bytes,
                  .in = rank() == root ? in.data() : nullptr,
                  .out = out.data()});
}

Event CheckedCommunicator::gather(std::span<const std::byte> in, std::span<std::byte> out, int root) {
  check_root(Kind::gather, root);
  const size_t bytes = in.size() * size();
  if (rank() == root) check_size(Kind::gather, "out", out.size(), bytes);
  return enqueue({.kind = Kind::gather,
                  .root = root,
                  .bytes = bytes,
                  .in = in.data(),
                  .out = rank() == root ? out.data() : nullptr});
}

Event CheckedCommunicator::all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
  check_size(Kind::all_to_all, "out", out.size(), in.size());
  base::require(in.size() % size() == 0, "comm", "all_to_all of {} bytes among {} ranks, which are no equal parts",
                in.size(), size());
  return enqueue({.kind = Kind::all_to_all, .bytes = in.size(), .in = in.data(), .out = out.data()});
}

Event CheckedCommunicator::send(std::span<const std::byte> data, int to) {
  check_root(Kind::send, to);
  base::require(to != rank(), "comm", "send from rank {} to itself", to);
  return enqueue({.kind = Kind::send, .root = to, .bytes = data.size(), .in = data.data()});
}

Event CheckedCommunicator::receive(std::span<std::byte> data, int from) {
  check_root(Kind::receive, from);
  base::require(from != rank(), "comm", "receive of rank {} from itself", from);
  return enqueue({.kind = Kind::receive, .root = from, .bytes = data.size(), .out = data.data()});
}

Event CheckedCommunicator::exchange(std::span<const Message> messages) {
  base::require(messages.size() <= kMaxExchange, "comm", "an exchange of {} messages; at most {} start together",
                messages.size(), kMaxExchange);
  for (const Message& m : messages) check_root(m.receives ? Kind::receive : Kind::send, m.rank);
  send_to_itself(messages);
  std::array<Operation, kMaxExchange> operations;
  size_t count = 0;
  for (const Message& m : messages) {
    if (m.rank == rank()) continue;
    operations[count++] =
        m.receives
            ? Operation{.kind = Kind::receive, .root = m.rank, .bytes = m.received.size(), .out = m.received.data()}
            : Operation{.kind = Kind::send, .root = m.rank, .bytes = m.sent.size(), .in = m.sent.data()};
  }
  return count == 0 ? Event{} : enqueue({operations.data(), count});
}

// Pairs the n-th message sent to itself with the n-th received from itself.
void CheckedCommunicator::send_to_itself(std::span<const Message> messages) {
  const auto next = [&](size_t at, bool receives) {
    while (at < messages.size() && (messages[at].rank != rank() || messages[at].receives != receives)) ++at;
    return at;
  };
  size_t from = next(0, false), to = next(0, true);
  for (; from < messages.size() && to < messages.size(); from = next(from + 1, false), to = next(to + 1, true)) {
    const auto& sent = messages[from].sent;
    const auto& received = messages[to].received;
    base::require(sent.size() == received.size(), "comm", "rank {} sends itself {} bytes and receives {}", rank(),
                  sent.size(), received.size());
    copy_own(sent.data(), received.data(), sent.size());
  }
  base::require(from >= messages.size() && to >= messages.size(), "comm", "rank {} {}", rank(),
                to >= messages.size() ? "sends itself more messages than it receives"
                                      : "receives more messages from itself than it sends");
}

void CheckedCommunicator::copy_own(const std::byte* from, std::byte* to, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

Event CheckedCommunicator::barrier() {
  return enqueue({.kind = Kind::barrier});
}

Event meet(Communicator& host, std::span<const Operation> operations) {
  if (!operations[0].is_message()) return host.barrier();
  std::array<Message, kMaxExchange> empty;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& o = operations[i];
    empty[i] = o.kind == Kind::send ? Message::to(o.root, {}) : Message::from(o.root, {});
  }
  return host.exchange(std::span(empty).first(operations.size()));
}

void check_group(std::span<const int> ranks, int rank, int size) {
  std::vector<bool> seen(size);
  for (const int r : ranks) {
    const bool good = r >= 0 && r < size && !seen[r];
    base::require(good, "comm", "a group of ranks {} in a world of {}", fmt::join(ranks, " "), size);
    seen[r] = true;
  }
  base::require(seen[rank], "comm", "rank {} asks for a group of ranks {}", rank, fmt::join(ranks, " "));
}

void check_room(std::span<const Operation> operations, const GroupOptions& options) {
  const Operation& first = operations.front();
  if (first.is_message()) {
    base::require(operations.size() <= options.messages, "comm", "{} messages at once in a group for {}",
                  operations.size(), options.messages);
  } else {
    base::require(options.collectives > 0, "comm", "{} in a group for messages alone", name_of(first.kind));
  }
}

void check_options(const WorldOptions& options) {
  if (options.time_limit.count() <= 0) {
    throw base::UserError("comm", "a time limit of {:g} s; every wait needs some, as 600 s",
                          static_cast<double>(options.time_limit.count()) / 1e3);
  }
}

}  // namespace kintsugi::comm

#include "kintsugi/comm/through_host.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {
namespace {

class HostCommunicator : public CheckedCommunicator {
 public:
  HostCommunicator(std::unique_ptr<Communicator> group, device::Device& device, device::Stream& compute,
                   HostStaging staging)
      : group_(std::move(group)), device_(device), compute_(compute), synchronize_(std::move(staging.synchronize)) {
    open_.reserve(staging.transfers);
    for (size_t i = 0; i < staging.transfers; ++i) {
      places_.push_back(std::make_unique<Place>());
      reserve(*places_.back(), static_cast<size_t>(staging.bytes));
    }
  }

  const Backend& backend() const override { return group_->backend(); }
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void progress() override { group_->progress(); }

  void wait(Event event) override {
    group_->wait(event);
    std::erase_if(open_, [&](const Open& o) {
      if (o.event.number > event.number) return false;
      for (const Copy& copy : o.place->copies) compute_.copy(copy.to, copy.from, static_cast<int64_t>(copy.bytes));
      o.place->is_read = !o.place->copies.empty();
      o.place->is_open = false;
      return true;
    });
  }

 protected:
  Event enqueue(std::span<const Operation> operations) override {
    size_t sent = 0, received = 0;
    for (const Operation& o : operations) sent += bytes_in(o), received += bytes_out(o);
    Place& place = free_place(std::max(sent, received));
    place.copies.clear();
    // The device may still be reading the results of an earlier transfer there.
    bool waits = std::exchange(place.is_read, false);
    std::byte *to = place.sent ? place.sent->data() : nullptr,
              *from = place.received ? place.received->data() : nullptr;
    std::array<Operation, kMaxExchange> staged;
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& o = staged[i] = operations[i];
      if (bytes_in(o) > 0) {
        compute_.copy(to, o.in, static_cast<int64_t>(bytes_in(o)));
        staged[i].in = to;
        to += bytes_in(o);
        waits = true;
      }
      if (bytes_out(o) > 0) {
        place.copies.push_back({operations[i].out, from, bytes_out(o)});
        staged[i].out = from;
        from += bytes_out(o);
      }
    }
    if (waits) synchronize_();
    const Event event = start(std::span(staged).first(operations.size()));
    place.is_open = true;
    open_.push_back({event, &place});
    return event;
  }

  void copy_own(const std::byte* from, std::byte* to, size_t bytes) override {
    if (bytes > 0) compute_.copy(to, from, static_cast<int64_t>(bytes));
  }

 private:
  struct Copy {
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };
  struct Place {
    std::unique_ptr<device::Memory> sent, received;  // pinned
    std::vector<Copy> copies;                        // of the results
    bool is_open = false, is_read = false;           // by a copy that may still be running
  };
  struct Open {
    Event event;
    Place* place;
  };

  size_t bytes_in(const Operation& o) const {
    if (o.in == nullptr) return 0;
    const bool part = o.kind == Kind::all_gather || o.kind == Kind::gather;
    return part ? o.bytes / static_cast<size_t>(size()) : o.bytes;
  }
  size_t bytes_out(const Operation& o) const {
    if (o.out == nullptr) return 0;
    const bool part = o.kind == Kind::reduce_scatter || o.kind == Kind::scatter;
    return part ? o.bytes / static_cast<size_t>(size()) : o.bytes;
  }

  void reserve(Place& place, size_t bytes) {
    if (bytes == 0 || (place.sent && place.sent->bytes() >= static_cast<int64_t>(bytes))) return;
    place.sent = device_.allocate_pinned(static_cast<int64_t>(bytes));
    place.received = device_.allocate_pinned(static_cast<int64_t>(bytes));
    place.copies.reserve(kMaxExchange);
  }

  Place& free_place(size_t bytes) {
    auto place = std::ranges::find_if(places_, [](const auto& p) { return !p->is_open; });
    if (place == places_.end()) place = places_.insert(places_.end(), std::make_unique<Place>());
    const bool grows = bytes > 0 && (!(*place)->sent || (*place)->sent->bytes() < static_cast<int64_t>(bytes));
    if (grows && (*place)->is_read) synchronize_();
    reserve(**place, bytes);
    return **place;
  }

  Event start(std::span<const Operation> operations) {
    const Operation& o = operations[0];
    const std::span<const std::byte> in(o.in, bytes_in(o));
    const std::span<std::byte> out(o.out, bytes_out(o));
    switch (o.kind) {
      case Kind::all_reduce:
        return group_->all_reduce(in, out, o.dtype, o.reduction);
      case Kind::reduce:
        return group_->reduce(in, out, o.dtype, o.reduction, o.root);
      case Kind::broadcast:  // the input was copied in place
        if (!in.empty()) std::copy(in.begin(), in.end(), out.begin());
        return group_->broadcast(out, o.root);
      case Kind::all_gather:
        return group_->all_gather(in, out);
      case Kind::reduce_scatter:
        return group_->reduce_scatter(in, out, o.dtype, o.reduction);
      case Kind::scatter:
        return group_->scatter(in, out, o.root);
      case Kind::gather:
        return group_->gather(in, out, o.root);
      case Kind::all_to_all:
        return group_->all_to_all(in, out);
      case Kind::barrier:
        return group_->barrier();
      case Kind::send:
      case Kind::receive: {
        if (operations.size() == 1)
          return o.kind == Kind::send ? group_->send(in, o.root) : group_->receive(out, o.root);
        std::array<Message, kMaxExchange> messages;
        for (size_t i = 0; i < operations.size(); ++i) {
          const Operation& m = operations[i];
          messages[i] =
              m.kind == Kind::send ? Message::to(m.root, {m.in, m.bytes}) : Message::from(m.root, {m.out, m.bytes});
        }
        return group_->exchange(std::span(messages).first(operations.size()));
      }
    }
    throw base::InternalError("comm", "no kind of operation {}", static_cast<int>(o.kind));
  }

  const std::unique_ptr<Communicator> group_;
  device::Device& device_;
  device::Stream& compute_;
  const std::function<void()> synchronize_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<Open> open_;
};

}  // namespace

std::unique_ptr<Communicator> through_host(std::unique_ptr<Communicator> group, device::Device& device,
                                           device::Stream& compute, HostStaging staging) {
  if (!staging.synchronize) staging.synchronize = [&compute] { compute.synchronize(); };
  return std::make_unique<HostCommunicator>(std::move(group), device, compute, std::move(staging));
}

}  // namespace kintsugi::comm

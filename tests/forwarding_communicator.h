// A communicator that forwards everything to another, for tests that count, delay or interfere.
#pragma once

#include <span>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::tests {

class ForwardingCommunicator : public comm::Communicator {
 public:
  using In = std::span<const std::byte>;
  using Out = std::span<std::byte>;
  explicit ForwardingCommunicator(comm::Communicator& inner) : inner_(inner) {}

  const comm::Backend& backend() const override { return inner_.backend(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  comm::Event all_reduce(In in, Out out, tensor::DType d, comm::Reduction r) override {
    enqueues(in.size());
    return inner_.all_reduce(in, out, d, r);
  }
  comm::Event reduce(In in, Out out, tensor::DType d, comm::Reduction r, int root) override {
    enqueues(in.size());
    return inner_.reduce(in, out, d, r, root);
  }
  comm::Event broadcast(Out data, int root) override {
    enqueues(data.size());
    return inner_.broadcast(data, root);
  }
  comm::Event all_gather(In in, Out out) override {
    enqueues(out.size());
    return inner_.all_gather(in, out);
  }
  comm::Event reduce_scatter(In in, Out out, tensor::DType d, comm::Reduction r) override {
    enqueues(in.size());
    return inner_.reduce_scatter(in, out, d, r);
  }
  comm::Event scatter(In in, Out out, int root) override {
    enqueues(out.size());
    return inner_.scatter(in, out, root);
  }
  comm::Event gather(In in, Out out, int root) override {
    enqueues(in.size());
    return inner_.gather(in, out, root);
  }
  comm::Event all_to_all(In in, Out out) override {
    enqueues(in.size());
    return inner_.all_to_all(in, out);
  }
  comm::Event send(In data, int to) override {
    enqueues(data.size());
    return inner_.send(data, to);
  }
  comm::Event receive(Out data, int from) override {
    enqueues(data.size());
    return inner_.receive(data, from);
  }
  comm::Event exchange(std::span<const comm::Message> messages) override {
    for (const comm::Message& m : messages) enqueues(m.sent.size() + m.received.size());
    return inner_.exchange(messages);
  }
  comm::Event barrier() override {
    enqueues(0);
    return inner_.barrier();
  }
  void wait(comm::Event event) override {
    inner_.wait(event);
    waited();
  }
  void progress() override { inner_.progress(); }

 protected:
  virtual void enqueues(size_t) {}  // called before an operation, with the bytes of its larger buffer
  virtual void waited() {}          // called after a wait

 private:
  comm::Communicator& inner_;
};

}  // namespace kintsugi::tests

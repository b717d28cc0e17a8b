#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm::self_test {
namespace {

using Floats = std::array<float, 3>;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::InternalError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Self, EveryCollectiveOfOneRankIsACopy) {
  const auto world = self_world();
  EXPECT_EQ(world->backend().name, "self");
  EXPECT_EQ(world->size(), 1);
  const std::array<int, 1> members = {0};
  const auto one = world->group(members);
  const Floats x = {1, 2, 3};
  const auto in = std::as_bytes(std::span(x));
  const auto copies = [&](const std::function<Event(std::span<std::byte>)>& call) {
    Floats y = {};
    one->wait(call(std::as_writable_bytes(std::span(y))));
    return y == x;
  };
  EXPECT_TRUE(copies([&](auto out) { return one->all_reduce(in, out, tensor::DType::f32, Reduction::mean); }));
  EXPECT_TRUE(copies([&](auto out) { return one->reduce(in, out, tensor::DType::f32, Reduction::sum, 0); }));
  EXPECT_TRUE(copies([&](auto out) { return one->all_gather(in, out); }));
  EXPECT_TRUE(copies([&](auto out) { return one->reduce_scatter(in, out, tensor::DType::f32, Reduction::sum); }));
  EXPECT_TRUE(copies([&](auto out) { return one->scatter(in, out, 0); }));
  EXPECT_TRUE(copies([&](auto out) { return one->gather(in, out, 0); }));
  EXPECT_TRUE(copies([&](auto out) { return one->all_to_all(in, out); }));
  EXPECT_TRUE(copies([&](auto out) { return one->exchange(std::array{Message::from(0, out), Message::to(0, in)}); }));
  Floats y = x;
  const auto both = std::as_writable_bytes(std::span(y));
  one->wait(one->all_reduce(both, both, tensor::DType::f32, Reduction::sum));
  one->wait(one->broadcast(both, 0));
  one->wait(one->barrier());
  EXPECT_EQ(x, y);
}

TEST(Self, WrongCallsAreErrors) {
  const auto one = self_communicator();
  Floats x = {}, y = {};
  const auto in = std::as_bytes(std::span(x));
  const auto out = std::as_writable_bytes(std::span(y));
  using tensor::DType;
  EXPECT_EQ(error_of([&] { one->all_gather(in, out.first(4)); }),
            "[comm] internal error: all_gather among 1 ranks: out has 4 bytes, not 12");
  EXPECT_EQ(error_of([&] { one->all_reduce(in, out, DType::f64, Reduction::sum); }),
            "[comm] internal error: all_reduce of 12 bytes, which are no whole number of fp64");
  EXPECT_EQ(error_of([&] { one->reduce_scatter(in, out, DType::u8, Reduction::sum); }),
            "[comm] internal error: reduce_scatter of uint8");
  EXPECT_EQ(error_of([&] { one->broadcast(out, 1); }), "[comm] internal error: broadcast with rank 1 of a group of 1");
  EXPECT_EQ(error_of([&] { one->send(in, 1); }), "[comm] internal error: send with rank 1 of a group of 1");
  EXPECT_EQ(error_of([&] { one->receive(out, 0); }), "[comm] internal error: receive of rank 0 from itself");
  const auto exchange = [&](const std::vector<Message>& messages) {
    return error_of([&] { one->exchange(messages); });
  };
  EXPECT_EQ(exchange({Message::to(1, in)}), "[comm] internal error: send with rank 1 of a group of 1");
  EXPECT_EQ(exchange({Message::to(0, in), Message::from(0, out.first(4))}),
            "[comm] internal error: rank 0 sends itself 12 bytes and receives 4");
  EXPECT_EQ(exchange({Message::to(0, in)}),
            "[comm] internal error: rank 0 sends itself more messages than it receives");
  EXPECT_EQ(exchange({Message::from(0, out)}),
            "[comm] internal error: rank 0 receives more messages from itself than it sends");
  EXPECT_EQ(exchange(std::vector(65, Message::to(0, in))),
            "[comm] internal error: an exchange of 65 messages; at most 64 start together");
  const std::array<int, 2> members = {0, 1};
  EXPECT_EQ(error_of([&] { self_world()->group(members); }),
            "[comm] internal error: a group of ranks 0 1 in a world of 1");
}

}  // namespace kintsugi::comm::self_test

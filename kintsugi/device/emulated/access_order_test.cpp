#include "kintsugi/device/emulated/access_order.h"

#include <gtest/gtest.h>

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/device/emulated/emulated.h"

namespace kintsugi::device::access_order_test {
namespace {

using Bytes = std::span<const std::byte>;

class Order : public testing::Test {
 protected:
  std::unique_ptr<Device> device = open_device("emulated");
  std::unique_ptr<Memory> memory = device->allocate(1024), other = device->allocate(1024);
  std::unique_ptr<Stream> a = device->stream(), b = device->stream();
  std::unique_ptr<Event> event = device->event();

  Bytes bytes(size_t first, size_t count) const { return {memory->data() + first, count}; }
  static void read(Stream& stream, Bytes x, std::string_view what = "reader") {
    stream.announce({.what = what, .reads = {&x, 1}, .writes = {}});
  }
  static void write(Stream& stream, Bytes x, std::string_view what = "writer") {
    stream.announce({.what = what, .reads = {}, .writes = {&x, 1}});
  }
  template <typename F>
  std::string error_of(const F& f) {
    try {
      f();
    } catch (const base::InternalError& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(Order, AStreamIsInOrderWithItself) {
  write(*a, bytes(0, 100));
  read(*a, bytes(0, 100));
  write(*a, bytes(50, 100));
}

TEST_F(Order, TwoStreamsNeedAnEvent) {
  write(*a, bytes(0, 100), "the first");
  EXPECT_NE(error_of([&] {
              read(*b, bytes(99, 1), "the second");
            }).find("the second reads memory that the first writes, and nothing orders the two"),
            std::string::npos);
  read(*b, bytes(100, 1));
  a->record(*event);
  b->wait(*event);
  read(*b, bytes(99, 1));
}

TEST_F(Order, AWriteWaitsForAllReaders) {
  const auto c = device->stream();
  read(*a, bytes(0, 8));
  read(*b, bytes(4, 8));
  a->record(*event);
  c->wait(*event);
  write(*c, bytes(0, 4));
  EXPECT_NE(error_of([&] { write(*c, bytes(0, 5)); }), "");
}

TEST_F(Order, OnlyWhatWasRecordedIsKnown) {
  a->record(*event);
  write(*a, bytes(0, 8));
  b->wait(*event);
  EXPECT_NE(error_of([&] { write(*b, bytes(0, 8)); }), "");
}

TEST_F(Order, TheHostOrdersWhatItWaitedFor) {
  write(*a, bytes(0, 8));
  a->synchronize();
  read(*b, bytes(0, 8));
}

TEST_F(Order, CopiesAnnounceThemselvesAlsoInGraphs) {
  a->begin_capture();
  a->copy(memory->data(), other->data(), 16);
  const auto graph = a->end_capture();
  write(*a, {other->data(), 16});
  a->launch(*graph);
  EXPECT_NE(error_of([&] { read(*b, bytes(8, 1)); }).find("a copy"), std::string::npos);
}

TEST_F(Order, TheHostMustNotTouchWhatIsCopied) {
  const auto pinned = device->allocate_pinned(64);
  const Bytes all(pinned->data(), 64);
  a->copy(memory->data(), pinned->data(), 64);
  a->record(*event);
  EXPECT_NE(error_of([&] { device->announce({.what = "the host", .reads = {}, .writes = {&all, 1}}); }), "");
  event->wait();
  device->announce({.what = "the host", .reads = {}, .writes = {&all, 1}});
}

TEST_F(Order, OnlyMemoryOfDevicesIsLookedAt) {
  const std::array<std::byte, 8> own = {};
  write(*a, own);
  write(*b, own);
}

TEST_F(Order, FreedMemoryIsForgotten) {
  write(*a, bytes(0, 1024));
  const std::byte* was = memory->data();
  memory.reset();
  memory = device->allocate(1024);
  if (memory->data() == was) write(*b, bytes(0, 1024));
}

// A launch would lack work submitted before the capture was reached; work from before the capture started precedes it.
TEST_F(Order, AStreamThatComesTooLateToACaptureIsSeen) {
  b->zero(other->data(), 8);
  a->begin_capture();
  write(*a, bytes(0, 8));
  a->record(*event);
  b->wait(*event);
  b->record(*event);
  a->wait(*event);
  a->end_capture();
  a->begin_capture();
  write(*a, bytes(0, 8));
  a->record(*event);
  b->zero(other->data(), 8);
  EXPECT_NE(error_of([&] { b->wait(*event); }).find("after it has worked outside of it"), std::string::npos);
}

TEST_F(Order, AWaitCanBeLeftOut) {
  write(*a, bytes(0, 8));
  a->record(*event);
  emulate::leave_out_wait(emulate::waits().all);
  b->wait(*event);
  EXPECT_NE(error_of([&] { read(*b, bytes(0, 8)); }), "");
  a->zero(other->data(), 8);
  a->record(*event);
  b->wait(*event);
  read(*b, bytes(0, 8));
}

// Waits of streams for events, as submitted to the device.
int64_t waits() {
  return emulate::waits().all;
}

TEST_F(Order, OnlyWhatIsNewIsWaitedFor) {
  const auto c = device->stream();
  const auto second = device->event(), third = device->event();
  const int64_t before = waits();
  b->wait(*event);  // which was never recorded
  a->record(*event);
  b->wait(*event);  // of nothing
  EXPECT_EQ(waits(), before);
  a->zero(memory->data(), 8);
  a->record(*event);
  a->zero(memory->data(), 8);
  a->record(*second);
  b->wait(*second);
  EXPECT_EQ(waits(), before + 1);
  b->wait(*event);    // which came before
  a->wait(*second);   // its own
  b->record(*third);  // nothing of its own, but what it waited for
  c->wait(*third);
  EXPECT_EQ(waits(), before + 2);
  c->wait(*second);
  EXPECT_EQ(waits(), before + 2);
  write(*c, bytes(0, 8));
  EXPECT_TRUE(c->follows(*a));
  EXPECT_FALSE(a->follows(*c));
  c->zero(memory->data(), 8);
  a->wait_for(*c, *event);
  EXPECT_EQ(waits(), before + 3);
  a->wait_for(*c, *event);
  EXPECT_EQ(waits(), before + 3);
  EXPECT_TRUE(a->follows(*c));
}

// A capture blocks the streams that wait for it, in order, at each launch.
TEST_F(Order, ACaptureOfTwoStreams) {
  const auto second = device->event();
  b->wait_for(*a, *event);
  a->begin_capture();
  a->zero(memory->data(), 8);
  EXPECT_FALSE(b->follows(*a));
  b->wait_for(*a, *event);
  b->copy(other->data(), memory->data(), 8);
  a->wait_for(*b, *second);
  a->copy(memory->data() + 8, other->data(), 8);
  const auto graph = a->end_capture();
  EXPECT_TRUE(event->done());
  for (int launch = 0; launch < 3; ++launch) {
    for (const std::byte* x : {memory->data(), other->data(), memory->data() + 8}) {
      const Bytes all(x, 8);
      device->announce({.what = "the host", .reads = {}, .writes = {&all, 1}});
    }
    memory->data()[0] = memory->data()[8] = other->data()[0] = std::byte{7};
    a->launch(*graph);
    EXPECT_EQ(memory->data()[8], std::byte{7});
    a->synchronize();
    EXPECT_EQ(memory->data()[8], std::byte{0});
  }
}

TEST_F(Order, ACaptureWithoutAWaitIsSeen) {
  a->begin_capture();
  a->zero(memory->data(), 8);
  a->record(*event);
  b->wait(*event);
  b->zero(memory->data(), 8);
  const auto second = device->event();
  b->record(*second);
  a->zero(memory->data(), 8);  // beside that of b
  a->wait(*second);
  const auto graph = a->end_capture();
  EXPECT_NE(error_of([&] { a->launch(*graph); }).find("nothing orders the two"), std::string::npos);
}

TEST_F(Order, ACaptureWaitsForItsStreamsAndForNoOther) {
  a->begin_capture();
  b->wait_for(*a, *event);
  b->zero(memory->data(), 8);
  EXPECT_NE(error_of([&] { a->end_capture(); }).find("before it has waited for all its streams"), std::string::npos);
  const auto c = device->stream(), d = device->stream();
  c->zero(memory->data(), 8);
  d->begin_capture();
  EXPECT_NE(error_of([&] { d->wait_for(*c, *event); }).find("what is captured waits for what is not"),
            std::string::npos);
}

}  // namespace
}  // namespace kintsugi::device::access_order_test

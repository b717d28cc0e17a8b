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

TEST_F(Order, AWaitCanBeLeftOut) {
  write(*a, bytes(0, 8));
  a->record(*event);
  emulate::leave_out_wait(emulate::waits().all);
  b->wait(*event);
  EXPECT_NE(error_of([&] { read(*b, bytes(0, 8)); }), "");
  b->wait(*event);
  read(*b, bytes(0, 8));
  const int64_t known = emulate::waits().known;
  b->wait(*event);
  EXPECT_EQ(emulate::waits().known, known + 1);
}

}  // namespace
}  // namespace kintsugi::device::access_order_test

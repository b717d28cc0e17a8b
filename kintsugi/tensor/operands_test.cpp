#include "kintsugi/tensor/operands.h"

#include <gtest/gtest.h>

#include <functional>

namespace kintsugi::tensor::operands_test {
namespace {

constexpr OperandList kMiddle = {"q", optional("starts"), "o", optional("bias")}, kSums = {"count", rest("blocks")};

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Operands, ReadAsText) {
  EXPECT_EQ(to_string(kMiddle), "q, [starts], o, [bias]");
  EXPECT_EQ(to_string(kSums), "count, blocks ...");
  EXPECT_EQ(to_string(OperandList()), "none");
}

TEST(Operands, AreEqualWhereNamesAndOrderAre) {
  EXPECT_EQ(kMiddle, (OperandList{"q", optional("starts"), "o", optional("bias")}));
  EXPECT_NE(kMiddle, (OperandList{"q", "starts", "o", optional("bias")}));
  EXPECT_NE(kMiddle, (OperandList{"q", "o", optional("starts"), optional("bias")}));
  EXPECT_NE(kMiddle, (OperandList{"q", optional("starts"), "o"}));
}

TEST(Operands, PlacesAndPositions) {
  const uint32_t none = 0, starts = 0b10, both = 0b1010;
  EXPECT_EQ(kMiddle.place("o", none), 2u);
  EXPECT_EQ(kMiddle.place("o", starts), 1u);
  EXPECT_EQ(kMiddle.place("starts", starts), std::nullopt);
  EXPECT_EQ(kMiddle.place("bias", starts), 2u);
  EXPECT_EQ(kMiddle.at(1, starts).name, "o");
  EXPECT_EQ(kMiddle.at(1, none).name, "starts");
  EXPECT_EQ(kSums.at(5, none).name, "blocks");
  EXPECT_EQ(position_of(1, starts), 2u);
  EXPECT_EQ(position_of(2, starts), 3u);
  EXPECT_EQ(position_of(40, starts), 41u);
  EXPECT_EQ(place_of(41, starts), 40u);
  EXPECT_EQ(bits_by_position(0b11, starts), 0b101u);
  EXPECT_EQ(kMiddle.absent_behind(3), 0b1000u);
  EXPECT_EQ(kMiddle.absent_behind(1), both);
  const std::vector<int> there = {7, 8};
  EXPECT_EQ(by_position(std::span(there), both, -1), (std::vector<int>{7, -1, 8, -1}));
  EXPECT_EQ(by_position(std::span(there), none, -1), there);
  EXPECT_EQ(by_position(std::span(there).first(0), 0b1, -1), std::vector<int>{-1});
}

TEST(Operands, OneThatWasAbsentIsPutInItsPlace) {
  std::vector<int> there = {7, 8};
  uint32_t absent = 0b1010;
  insert(there, absent, 1, 9);
  EXPECT_EQ(there, (std::vector<int>{7, 9, 8}));
  EXPECT_EQ(absent, 0b1000u);
  insert(there, absent, 3, 6);
  EXPECT_EQ(there, (std::vector<int>{7, 9, 8, 6}));
  EXPECT_EQ(absent, 0u);
}

TEST(Operands, HowManyThereMayBe) {
  EXPECT_TRUE(kMiddle.allows(4, 0));
  EXPECT_TRUE(kMiddle.allows(2, 0b1010));
  EXPECT_FALSE(kMiddle.allows(2, 0));       // two, but no mask of those absent
  EXPECT_FALSE(kMiddle.allows(3, 0b1));     // q is not optional
  EXPECT_FALSE(kMiddle.allows(3, 0b1010));  // one too many
  EXPECT_FALSE(kMiddle.allows(4, 0b10000));
  EXPECT_TRUE(kSums.allows(1, 0));
  EXPECT_TRUE(kSums.allows(100, 0));
  EXPECT_FALSE(kSums.allows(0, 0));
  EXPECT_TRUE(OperandList().allows(0, 0));
}

TEST(Operands, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(error_of([] { kMiddle.position("k"); }),
            "[operands] internal error: no \"k\" among q, [starts], o, [bias]");
  EXPECT_EQ(error_of([] { kMiddle.place("k", 0); }),
            "[operands] internal error: no \"k\" among q, [starts], o, [bias]");
  EXPECT_EQ(error_of([] { kMiddle.at(2, 0b10); }), "");
  EXPECT_EQ(error_of([] { kMiddle.at(4, 0); }), "[operands] internal error: no 4 among q, [starts], o, [bias]");
  EXPECT_EQ(error_of([] { OperandList({rest("x"), "y"}); }), "[operands] internal error: \"y\" stands behind the last");
}

}  // namespace kintsugi::tensor::operands_test

// Threads that request one value concurrently compute it once.
#include "kintsugi/search/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kintsugi::search::once_test {

TEST(Once, OneThreadMakesWhatAllAskFor) {
  Once<int, int> values;
  std::atomic<int> made = 0, right = 0;
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < 8; ++t)
      team.emplace_back([&] {
        for (int key = 0; key < 4; ++key) {
          const auto value = values.get(key, [&] {
            ++made;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the others come meanwhile
            return std::make_shared<const int>(10 * key);
          });
          if (*value == 10 * key) ++right;
        }
      });
  }
  EXPECT_EQ(made, 4);
  EXPECT_EQ(right, 32);
}

TEST(Once, WhatFailedIsMadeAgain) {
  Once<int, int> values;
  EXPECT_THROW(values.get(1, []() -> std::shared_ptr<const int> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(*values.get(1, [] { return std::make_shared<const int>(7); }), 7);
}

TEST(Once, OldValuesAreForgotten) {
  Once<int, int> values;
  int made = 0;
  const auto ask = [&](int key) {
    values.get(key, [&] {
      ++made;
      return std::make_shared<const int>(key);
    });
  };
  ask(1), ask(2);
  values.forget(3, [](int) { return true; });  // there are fewer
  ask(1), ask(2);
  EXPECT_EQ(made, 2);
  values.forget(2, [](int key) { return key == 1; });
  ask(1), ask(2);
  EXPECT_EQ(made, 3);
}

}  // namespace kintsugi::search::once_test

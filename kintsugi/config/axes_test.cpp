#include "kintsugi/config/axes.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/config/context.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config::axes_test {

TEST(Axes, EachIsAKey) {
  std::set<std::string> names;
  for (const Axis& axis : axes()) {
    EXPECT_TRUE(names.insert(axis.key()).second) << axis.name;
    const Key& key = keys()[static_cast<size_t>(key_index(axis.key()))];
    Settings s;
    EXPECT_EQ(key.get(s), Value(int64_t{1})) << axis.name;
    key.set(s, Value(int64_t{6}));
    EXPECT_EQ(axis.size(s.parallel), 6) << axis.name;
    EXPECT_EQ(ranks_of(s.parallel), 6) << axis.name;
    for (const std::string_view name : axis.keys) EXPECT_NO_THROW(key_index(name));
    for (const std::string_view name : axis.divides) EXPECT_NO_THROW(key_index(name));
  }
}

TEST(Axes, Order) {
  EXPECT_EQ(default_mesh_order(), "pipe data context expert space tensor");
  EXPECT_EQ(Parallel{}.mesh_order, default_mesh_order());
  std::string product;
  for (const Axis* axis : axes_of_product()) product += std::string(axis->name) + " ";
  EXPECT_EQ(product, "pipe data tensor context space expert ");
}

TEST(Axes, RanksStayInRange) {
  constexpr int64_t kSize = 1'000'000;
  EXPECT_EQ(ranks_of({.data = kSize, .tensor = kSize, .context = kSize, .pipe = kSize}), 1'000'000'000'000);
}

TEST(Context, WordsAreValues) {
  for (size_t i = 0; i < context_methods().size(); ++i)
    EXPECT_EQ(static_cast<size_t>(context_method({.context_method = std::string(context_methods()[i])})), i);
  EXPECT_EQ(context_balance({}), ContextBalance::zigzag);
  EXPECT_EQ(context_balance({.context_method = "ulysses"}), ContextBalance::contiguous);
  EXPECT_EQ(context_balance({.context_method = "ulysses", .context_balance = "zigzag"}), ContextBalance::zigzag);
  EXPECT_EQ(name_of(ContextBalance::contiguous), "contiguous");
}

}  // namespace kintsugi::config::axes_test

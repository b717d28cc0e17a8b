// Rows of memory moved as a whole.
#pragma once

#include <cstring>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::cpu {

// The local position of a global index, -1 if this block lacks it.
inline int64_t local_of(const tensor::DimIndex& index, int64_t global) {
  int64_t at = 0;
  for (const tensor::Segment& s : index.segments()) {
    if (s.global >= 0 && global >= s.global && global < s.global + s.count) return at + global - s.global;
    at += s.count;
  }
  return -1;
}

// Copies a row of a table, or zeros if `row` is -1.
inline void copy_row(std::byte* to, const std::byte* table, int64_t row, int64_t bytes) {
  if (row < 0) {
    std::memset(to, 0, static_cast<size_t>(bytes));
  } else {
    std::memcpy(to, table + row * bytes, static_cast<size_t>(bytes));
  }
}

// table[row(i)] += dy[i] for rows i of dy in order, unless row(i) is -1; table is fp32 and zeroed first unless `add`.
// Each thread has some of the columns, so that the order of sums does not depend on the number of threads.
// dy: [rows columns] of a fast dtype
struct ScatterRows {
  tensor::DType dtype;
  const std::byte* dy;
  int64_t rows, columns;
  float* table;
  int64_t table_rows;
  bool add;
};
void clear_table(const ScatterRows& s, base::ThreadTeam& team);
void add_to_row(const ScatterRows& s, int64_t i, int64_t row, base::Range columns);

template <typename F>
void scatter_rows(const ScatterRows& s, base::ThreadTeam& team, const F& row_of) {
  if (!s.add) clear_table(s, team);
  team.for_shares(s.columns, 16, [&](base::Range columns, int) {
    for (int64_t i = 0; i < s.rows; ++i) {
      const int64_t row = row_of(i);
      if (row >= 0) add_to_row(s, i, row, columns);
    }
  });
}

}  // namespace kintsugi::kernels::cpu

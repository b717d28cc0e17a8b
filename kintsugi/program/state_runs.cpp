#include "kintsugi/program/state_runs.h"

#include <algorithm>
#include <vector>

namespace kintsugi::program {
namespace {

// Merges runs that continue the previous one.
class Joined {
 public:
  explicit Joined(const std::function<void(const Run&)>& f) : f_(f) {}
  void add(const Run& run) {
    if (run.at == run_.at + run_.count && run.whole == run_.whole + run_.count) {
      run_.count += run.count;
    } else {
      end();
      run_ = run;
    }
  }
  void end() {
    if (run_.count > 0) f_(run_);
  }

 private:
  const std::function<void(const Run&)>& f_;
  Run run_;
};

}  // namespace

void for_each_run(const Program& p, const StateInfo& s, int rank, const std::function<void(const Run&)>& f) {
  const tensor::Shape& whole = s.whole.shape;
  std::vector<tensor::DimIndex> index;
  for (const tensor::Dim& d : whole)
    index.push_back(mesh::local_index(p.mesh, d.name, d.size, s.layout.of(d.name), rank));
  // This rank holds elements [begin, end) of the block, the first at `shift` in the buffer.
  int64_t block = 1;
  for (const tensor::DimIndex& i : index) block *= i.local();
  int64_t begin = 0, end = block, shift = 0;
  if (s.in_bucket) {
    const tensor::DimIndex flat = p.index(s.buffer, "flat", rank);
    const int64_t from = flat.segments().front().global;
    begin = std::max<int64_t>(0, from - s.first);
    end = std::min(block, from + flat.local() - s.first);
    shift = s.first - from;
  }
  if (begin >= end) return;
  if (index.empty()) return f({shift, 0, 1});
  Joined joined(f);
  const int64_t row = index.back().local();
  for (int64_t r = begin / row; r * row < end; ++r) {
    int64_t base = 0, left = r, above = block / row;
    bool padding = false;
    for (size_t d = 0; d + 1 < index.size(); ++d) {
      above /= index[d].local();
      const int64_t at = index[d][left / above];
      left %= above;
      padding |= at < 0;
      base = base * whole[d].size + at;
    }
    if (padding) continue;
    int64_t at = r * row;
    for (const tensor::Segment& segment : index.back().segments()) {
      const int64_t from = std::max(at, begin), until = std::min(at + segment.count, end);
      if (segment.global >= 0 && from < until)
        joined.add({shift + from, base * whole[whole.rank() - 1].size + segment.global + from - at, until - from});
      at += segment.count;
    }
  }
  joined.end();
}

}  // namespace kintsugi::program

#include "kintsugi/run/state_blocks.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kintsugi::run {

using program::BufferId;
using program::Run;
using program::StateInfo;

namespace {

constexpr int64_t kBlock = int64_t{4} << 20;  // bytes

void wait_for_read(const Executor& e, BufferId id, int64_t begin, std::span<std::byte> to) {
  e.read_file(e.program().in_file(id, 0, e.rank()) + begin, to);
}

void wait_for_write(const Executor& e, BufferId id, int64_t begin, std::span<const std::byte> from) {
  e.write_file(e.program().in_file(id, 0, e.rank()) + begin, from);
}

// A moving window over a state that the host cannot access directly.
class Window {
 public:
  Window(const Executor& e, BufferId id, bool changes)
      : e_(e), id_(id), bytes_(e.program().buffer(id).bytes()), changes_(changes) {}

  // The bytes from `at` that are in the same block.
  std::span<std::byte> at(int64_t at) {
    if (at < begin_ || at >= begin_ + static_cast<int64_t>(block_.size())) {
      store();
      begin_ = at / kBlock * kBlock;
      block_.resize(static_cast<size_t>(std::min(kBlock, bytes_ - begin_)));
      read_state(e_, id_, begin_, block_);
    }
    return std::span(block_).subspan(static_cast<size_t>(at - begin_));
  }
  void store() {
    if (!changes_ || block_.empty()) return;
    if (e_.in_file(id_)) return wait_for_write(e_, id_, begin_, block_);
    e_.copy_from_host(e_.state_view(id_).data + begin_, block_);
  }

 private:
  const Executor& e_;
  BufferId id_;
  int64_t bytes_;
  bool changes_;
  int64_t begin_ = 0;
  std::vector<std::byte> block_;
};

template <typename F>
void for_each_block(const Executor& e, BufferId id, bool changes, const F& f) {
  const int64_t bytes = e.program().buffer(id).bytes();
  if (e.on_host(id)) return f(std::span(e.state_view(id).data, static_cast<size_t>(bytes)));
  Window window(e, id, changes);
  for (int64_t at = 0; at < bytes; at += kBlock) f(window.at(at));
  window.store();
}

template <typename F>
void for_each_piece(const Executor& e, const StateInfo& s, bool changes, const F& f) {
  const int64_t size = tensor::size_of(e.program().buffer(s.buffer).type.dtype);
  if (e.on_host(s.buffer)) {
    std::byte* const data = e.state_view(s.buffer).data;
    program::for_each_run(e.program(), s, e.rank(), [&](const Run& run) { f(run, data + run.at * size); });
    return;
  }
  Window window(e, s.buffer, changes);
  program::for_each_run(e.program(), s, e.rank(), [&](Run run) {
    while (run.count > 0) {
      const std::span<std::byte> block = window.at(run.at * size);
      Run piece = run;
      piece.count = std::min(run.count, static_cast<int64_t>(block.size()) / size);
      f(piece, block.data());
      run = {run.at + piece.count, run.whole + piece.count, run.count - piece.count};
    }
  });
  window.store();
}

}  // namespace

void read_state(const Executor& e, BufferId id, int64_t begin, std::span<std::byte> to) {
  if (e.in_file(id)) return wait_for_read(e, id, begin, to);
  const std::byte* from = e.state_view(id).data + begin;
  if (e.on_device()) return e.copy_to_host(from, to);
  std::memcpy(to.data(), from, to.size());
}

void write_state(Executor& e, BufferId id, int64_t begin, std::span<const std::byte> from) {
  if (e.in_file(id)) return wait_for_write(e, id, begin, from);
  std::byte* to = e.state_view(id).data + begin;
  if (e.on_device()) return e.copy_from_host(to, from);
  std::memcpy(to, from.data(), from.size());
}

void look_at_blocks(const Executor& e, BufferId id, const std::function<void(std::span<const std::byte>)>& f) {
  for_each_block(e, id, false, f);
}

void change_blocks(Executor& e, BufferId id, const std::function<void(std::span<std::byte>)>& f) {
  for_each_block(e, id, true, f);
}

void look_at_runs(const Executor& e, const StateInfo& s, const std::function<void(const Run&, const std::byte*)>& f) {
  for_each_piece(e, s, false, f);
}

void change_runs(Executor& e, const StateInfo& s, const std::function<void(const Run&, std::byte*)>& f) {
  for_each_piece(e, s, true, f);
}

}  // namespace kintsugi::run

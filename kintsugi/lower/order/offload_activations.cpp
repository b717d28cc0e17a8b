// Offloads activations to the file between forward and backward; see offload.h.
#include <algorithm>
#include <map>

#include "kintsugi/lower/order/copies.h"
#include "kintsugi/lower/order/offload.h"
#include "kintsugi/lower/order/offload_parts.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using program::Region;
using program::Work;

namespace {

constexpr int64_t kSmallest = int64_t{64} << 10;  // minimum bytes of a buffer worth moving

// The positions in a body where its layers begin: the first compute instruction of each. Between two of them are the
// instructions of a layer, and those of adjacent layers that were moved there.
std::vector<size_t> layer_begins(const std::vector<Instruction>& list) {
  std::map<int, size_t> first;
  for (size_t at = 0; at < list.size(); ++at)
    if (list[at].kind == Kind::compute) first.try_emplace(list[at].layer, at);
  std::vector<size_t> begins;
  for (const auto& [layer, at] : first) begins.push_back(at);
  std::sort(begins.begin(), begins.end());
  return begins;
}

// The layer that contains an instruction.
size_t layer_at(const std::vector<size_t>& begins, size_t at) {
  const auto next = std::upper_bound(begins.begin(), begins.end(), at);
  return next == begins.begin() ? 0 : static_cast<size_t>(next - begins.begin()) - 1;
}

class ActivationsInFile {
 public:
  ActivationsInFile(Program& p, const program::CallList& train, int& events) : p_(p), train_(train), events_(events) {
    touched_by_.resize(p.buffers.size());
    for (size_t b = 0; b < p.bodies.size(); ++b) {
      const std::vector<Instruction>& list = p.bodies[b].instructions;
      const auto touch = [&](BufferId id, size_t at) -> Touch& {
        return touched_by_[static_cast<size_t>(p.root(id))]
            .try_emplace(p.base(static_cast<int>(b)), Touch{at})
            .first->second;
      };
      for (size_t at = 0; at < list.size(); ++at) {
        for (BufferId id : list[at].ins) touch(id, at);
        for (BufferId id : list[at].outs) {
          touch(id, at).writes = true;
          touch(id, at).makes |= id == p.root(id);
        }
      }
    }
  }

  void run() {
    const size_t bodies = p_.bodies.size();
    for (size_t b = 0; b < bodies; ++b)
      if (p_.bodies[b].does(Work::forward) && p_.bodies[b].variant_of < 0) move(static_cast<int>(b));
  }

 private:
  // How a body uses a buffer.
  struct Touch {
    size_t first = 0;     // index of the first instruction
    bool writes = false;  // some of it
    bool makes = false;   // all of it at once
  };

  const Body& body(int b) const { return p_.bodies[static_cast<size_t>(b)]; }

  // The buffers that a forward body leaves for later bodies.
  void move(int forward) {
    std::vector<int> readers;
    for (size_t b = 0; b < p_.bodies.size(); ++b) {
      const Body& other = p_.bodies[b];
      if ((other.does(Work::backward) || other.does(Work::weight)) && other.chunk == body(forward).chunk &&
          other.variant_of < 0)
        readers.push_back(static_cast<int>(b));
    }
    const bool at_once = follows_at_once(forward);
    std::map<int, std::vector<size_t>> begins;  // [reader]: where its layers begin
    for (int reader : readers) begins[reader] = layer_begins(body(reader).instructions);
    std::vector<BufferId> moved;
    const size_t buffers = touched_by_.size();
    for (size_t b = 0; b < buffers; ++b) {
      const auto id = static_cast<BufferId>(b);
      if (may_move(id, forward, readers) && !(at_once && is_read_soon(id, begins))) moved.push_back(id);
    }
    if (moved.empty()) return;
    const int64_t copies = under_way(forward);
    std::map<BufferId, BufferId> files;
    for (BufferId id : moved) files[id] = add_like(p_, id, Region::file, ".kept", copies);
    for (size_t b = 0; b < p_.bodies.size(); ++b)
      if (p_.base(static_cast<int>(b)) == forward) store_after(p_.bodies[b], files);
    for (int reader : readers) {
      fetched_.clear();
      for (size_t b = 0; b < p_.bodies.size(); ++b)
        if (p_.base(static_cast<int>(b)) == reader) fetch_before(p_.bodies[b], files);
    }
  }

  bool may_move(BufferId id, int forward, const std::vector<int>& readers) const {
    const program::Buffer& b = p_.buffer(id);
    const std::map<int, Touch>& by = touched_by_[static_cast<size_t>(id)];
    if (b.same_as != program::kNoBuffer || b.region != Region::arena || b.bytes() < kSmallest || !b.input.empty() ||
        !b.output.empty() || !by.contains(forward))
      return false;
    bool read = false, made = false;
    for (const auto& [other, touch] : by) {
      made |= touch.makes;
      if (other == forward) continue;
      const bool reads = std::find(readers.begin(), readers.end(), other) != readers.end();
      const bool receives = body(other).role == program::Role::receives;
      if ((!reads && !receives) || (reads && touch.writes)) return false;
      read |= reads;
    }
    return read && made;
  }

  // Whether the backward of each micro-batch directly follows its forward.
  bool follows_at_once(int forward) const {
    const program::Call* before = nullptr;
    for (const program::Call& call : train_.calls) {
      if (body(call.body).role != program::Role::work) continue;
      if (before && p_.base(before->body) == forward &&
          (body(call.body).work != Work::backward || body(call.body).chunk != body(forward).chunk ||
           call.micro_batch != before->micro_batch))
        return false;
      before = &call;
    }
    return true;
  }

  // By a reader in the first layers of its body; `begins`: where the layers of each reader begin.
  bool is_read_soon(BufferId id, const std::map<int, std::vector<size_t>>& begins) const {
    const std::map<int, Touch>& by = touched_by_[static_cast<size_t>(id)];
    return std::any_of(begins.begin(), begins.end(), [&](const auto& reader) {
      const auto touch = by.find(reader.first);
      return touch != by.end() && layer_at(reader.second, touch->second.first) <= 1;
    });
  }

  // Maximum number of micro-batches, first to last, between forward and backward at one time.
  int64_t under_way(int forward) const {
    std::map<int64_t, std::pair<size_t, size_t>> calls;  // [micro-batch]: from, to
    for (size_t c = 0; c < train_.calls.size(); ++c) {
      const program::Call& call = train_.calls[c];
      const Body& b = body(call.body);
      if (b.chunk != body(forward).chunk) continue;
      if (b.does(Work::forward) || b.does(Work::backward) || b.does(Work::weight))
        calls.try_emplace(call.micro_batch, c, c).first->second.second = c;
    }
    int64_t most = 1;
    for (const auto& [m, own] : calls)
      for (const auto& [n, other] : calls)
        if (n > m && other.first < own.second) most = std::max(most, n - m + 1);
    return most;
  }

  // For each moved buffer: the first and last instruction of a body that touches it.
  struct Use {
    size_t first = 0, last = 0;
  };
  std::map<BufferId, Use> uses_in(const Body& body, const std::map<BufferId, BufferId>& files) const {
    std::map<BufferId, Use> uses;
    for (size_t at = 0; at < body.instructions.size(); ++at)
      for (const auto* list : {&body.instructions[at].ins, &body.instructions[at].outs})
        for (BufferId id : *list)
          if (files.contains(p_.root(id))) uses.try_emplace(p_.root(id), Use{at, at}).first->second.last = at;
    return uses;
  }

  void store_after(Body& body, const std::map<BufferId, BufferId>& files) {
    const std::vector<size_t> begins = layer_begins(body.instructions);
    Copies copies(p_, events_);
    for (const auto& [id, use] : uses_in(body, files)) {
      const int copy = copies.store(use.last + 1, id, files.at(id), body.instructions[use.last]);
      const size_t after_next = layer_at(begins, use.last) + 2;
      copies.wait(after_next < begins.size() ? begins[after_next] : body.instructions.size(), copy);
    }
    copies.put_into(body);
  }

  void fetch_before(Body& body, const std::map<BufferId, BufferId>& files) {
    const std::vector<size_t> begins = layer_begins(body.instructions);
    std::vector<std::pair<size_t, BufferId>> order;  // in order of need
    for (const auto& [id, use] : uses_in(body, files)) order.push_back({use.first, id});
    std::sort(order.begin(), order.end());
    Copies copies(p_, events_);
    for (const auto& [first, id] : order) {
      const size_t layer = layer_at(begins, first);
      const int copy =
          copies.fetch(layer > 0 ? begins[layer - 1] : 0, files.at(id), fetched(id), body.instructions[first]);
      copies.wait(first, copy);
    }
    for (Instruction& i : body.instructions)
      for (BufferId& b : i.ins)
        if (files.contains(p_.root(b))) b = fetched(b);
    copies.put_into(body);
  }

  // The replacement of a buffer, or of a view of it, in a reader.
  BufferId fetched(BufferId id) {
    const auto [at, fresh] = fetched_.try_emplace(id, program::kNoBuffer);
    if (!fresh) return at->second;
    const BufferId of = p_.buffer(id).same_as;
    const BufferId made = add_like(p_, id, Region::arena, of == program::kNoBuffer ? ".fetched" : "");
    if (of != program::kNoBuffer) {
      const BufferId whole = fetched(of);
      p_.buffer(made).same_as = whole;
    }
    return fetched_[id] = made;
  }

  Program& p_;
  const program::CallList& train_;
  int& events_;
  std::vector<std::map<int, Touch>> touched_by_;  // [root][body without variants]
  std::map<BufferId, BufferId> fetched_;          // of the current reader
};

}  // namespace

void offload_activations(Program& p, int& events) {
  for (const program::CallList& list : p.lists)
    if (list.step == program::Step::train) ActivationsInFile(p, list, events).run();
}

}  // namespace kintsugi::lower

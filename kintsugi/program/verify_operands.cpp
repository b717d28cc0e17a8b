#include "kintsugi/program/verify_operands.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::program {
namespace {

class OperandVerifier {
 public:
  OperandVerifier(const Program& p, const Instruction& i, const std::function<std::string()>& where)
      : p_(p), i_(i), where_(where) {}

  void check_copy() const {
    check_counts(1, 1);
    const auto region = [&](BufferId b) { return p_.buffer(p_.root(b)).region; };
    const Region from = region(i_.ins[0]), to = region(i_.outs[0]);
    const bool fetches = i_.copy == Copy::fetch;
    require(from == (fetches ? Region::file : Region::arena) && to == (fetches ? Region::arena : Region::file),
            "it goes from {} to {}", name_of(from), name_of(to));
    require(in().bytes() == out().bytes(), "{} bytes become {}", in().bytes(), out().bytes());
  }

  void check_collective(const std::vector<ByteRange>& ranges) const {
    require(!i_.group.empty(), "it has no group");
    for (size_t f = 0; f < i_.group.size(); ++f)
      require(i_.group[f] >= 0 && i_.group[f] < static_cast<int>(p_.mesh.factors().size()) &&
                  std::count(i_.group.begin(), i_.group.end(), i_.group[f]) == 1,
              "factor {} of its group is not in the mesh, or is there twice", f);
    const bool sends = i_.collective != Collective::receive, receives = i_.collective != Collective::send;
    check_counts(sends ? 1 : 0, receives ? 1 : 0);
    const int64_t n = p_.mesh.count(i_.group);
    require(is_message(i_) ? i_.peer >= 0 && i_.peer < n : i_.peer == -1, "it has peer {} of {} places", i_.peer, n);
    if (!sends || !receives) return;
    if (i_.collective == Collective::halo) {
      check_halo();
    } else {
      check_sizes(n);
    }
    if (ranges[static_cast<size_t>(i_.ins[0])].overlaps(ranges[static_cast<size_t>(i_.outs[0])])) check_in_place();
  }

 private:
  template <typename... Args>
  void require(bool fits, fmt::format_string<Args...> format, Args&&... args) const {
    if (!fits)
      throw base::InternalError("verify", "{}: {}", where_(), fmt::format(format, std::forward<Args>(args)...));
  }

  const Buffer& in() const { return p_.buffer(i_.ins[0]); }
  const Buffer& out() const { return p_.buffer(i_.outs[0]); }

  void check_counts(size_t ins, size_t outs) const {
    require(i_.ins.size() == ins && i_.outs.size() == outs, "it has {} inputs and {} outputs", i_.ins.size(),
            i_.outs.size());
  }

  void check_sizes(int64_t n) const {
    require(in().type.dtype == out().type.dtype, "{} becomes {}", name_of(in().type.dtype), name_of(out().type.dtype));
    const int64_t from = in().type.shape.elements(), to = out().type.shape.elements();
    const bool cut = i_.collective == Collective::reduce_scatter || i_.collective == Collective::all_to_all;
    require(!cut || from % n == 0, "{} elements are not {} equal parts", from, n);
    const int64_t expected = output_elements(from, n);
    require(to == expected, "{} elements become {} instead of {}", from, to, expected);
  }

  // The rows must cover the ranks that send and receive the most; the other dims must match.
  void check_halo() const {
    require(i_.cuts.halo && i_.cuts.exchanges && i_.cuts.factors == i_.group, "it has no halo of its group");
    require(in().type.dtype == out().type.dtype, "{} becomes {}", name_of(in().type.dtype), name_of(out().type.dtype));
    const HaloSizes sizes = halo_sizes(p_.mesh, i_.cuts);
    const tensor::Shape &from = in().type.shape, &to = out().type.shape;
    require(from.rank() > 0 && from[0] == tensor::Dim{std::string(tensor::kHalo), sizes.sent} &&
                to == packed_shape(from, tensor::kHalo, sizes.received),
            "{} becomes {}, of {} rows sent and {} received", to_string(from), to_string(to), sizes.sent,
            sizes.received);
  }

  // The number of elements that `from` elements become in a group of n.
  int64_t output_elements(int64_t from, int64_t n) const {
    switch (i_.collective) {
      case Collective::all_gather:
        return from * n;
      case Collective::reduce_scatter:
        return from / n;
      case Collective::all_reduce:
      case Collective::all_to_all:
      case Collective::shift:
      case Collective::halo:
      case Collective::send:
      case Collective::receive:
        return from;
    }
    throw base::InternalError("verify", "no collective {}", static_cast<int>(i_.collective));
  }

  // The whole, or the own part of the larger. The beginning of a buffer is a sum over the coordinates of a rank: what
  // holds on rank 0 and its neighbours along each factor holds on all.
  void check_in_place() const {
    const bool gathers = i_.collective == Collective::all_gather;
    require(reduces(i_) || gathers, "its output overlaps its input");
    std::vector<int> ranks = {0};
    for (const mesh::FactorInfo& f : p_.mesh.factors()) ranks.push_back(static_cast<int>(f.stride));
    const int64_t part = i_.collective == Collective::all_reduce ? 0 : std::min(in().bytes(), out().bytes());
    for (int rank : ranks) {
      const int64_t behind =
          begin(gathers ? i_.ins[0] : i_.outs[0], rank) - begin(gathers ? i_.outs[0] : i_.ins[0], rank);
      require(behind == p_.mesh.position(rank, i_.group) * part, "on rank {}, its output overlaps its input", rank);
    }
  }

  int64_t begin(BufferId b, int rank) const { return p_.buffer(p_.root(b)).offset + p_.begin(b, rank); }

  const Program& p_;
  const Instruction& i_;
  const std::function<std::string()>& where_;
};

}  // namespace

void verify_operands(const Program& p, const std::vector<ByteRange>& ranges, const Instruction& i,
                     const std::function<std::string()>& where) {
  const OperandVerifier verifier(p, i, where);
  switch (i.kind) {
    case Kind::copy:
      return verifier.check_copy();
    case Kind::collective:
      return verifier.check_collective(ranges);
    case Kind::compute:
    case Kind::wait:
      return;
  }
}

}  // namespace kintsugi::program

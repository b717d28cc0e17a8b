#include "kintsugi/checkpoint/neighbour_copies.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/where.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/texts_of_all.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kLeastPiece = uint64_t{4} << 20, kMostPiece = uint64_t{256} << 20;
constexpr uint64_t kPieces = 16;      // of a long part
constexpr size_t kMostIncoming = 32;  // copies that one rank keeps

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - began_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace

// The copy of the part of another rank.
struct NeighbourCopies::Incoming {
  int from = 0;
  uint64_t bytes = 0, described = 0;  // of its file and its description
  fs::path path = {};
  std::optional<base::FileWriter> file = {};  // none: it cannot be written
  std::vector<std::byte> buffer = {};
  bool complete = false;

  // Calls f, which writes; on failure the copy is dropped.
  template <typename F>
  void writing(F&& f) {
    try {
      f();
    } catch (const base::UserError& error) {
      spdlog::warn("no copy of the part of rank {} is kept: {}", from, error.what());
      drop();
    }
  }
  void drop() {
    file.reset();
    complete = false;
    if (!path.empty()) remove_part(path);
  }
};

std::vector<int> neighbours_of(const std::vector<std::string>& hosts) {
  std::vector<std::string> nodes;  // in order of their first ranks
  std::vector<std::vector<int>> ranks;
  std::vector<std::pair<size_t, size_t>> places;  // of each rank: its node and its position there
  for (size_t r = 0; r < hosts.size(); ++r) {
    const auto node = static_cast<size_t>(std::ranges::find(nodes, hosts[r]) - nodes.begin());
    if (node == nodes.size()) {
      nodes.push_back(hosts[r]);
      ranks.emplace_back();
    }
    places.emplace_back(node, ranks[node].size());
    ranks[node].push_back(static_cast<int>(r));
  }
  std::vector<int> to(hosts.size(), -1);
  if (nodes.size() < 2) return to;
  std::vector<size_t> kept(hosts.size());
  for (size_t r = 0; r < hosts.size(); ++r) {
    const auto& [node, position] = places[r];
    const std::vector<int>& next = ranks[(node + 1) % nodes.size()];
    const int keeper = next[position % next.size()];
    if (++kept[static_cast<size_t>(keeper)] <= kMostIncoming) to[r] = keeper;
  }
  return to;
}

NeighbourCopies::NeighbourCopies(comm::World& world, const std::string& host, fs::path local)
    : all_(comm::group_of_all(world)), local_(std::move(local)) {
  const std::vector<int> to = neighbours_of(comm::texts_of_all(*all_, host));
  several_nodes_ = std::ranges::any_of(to, [](int rank) { return rank >= 0; });
  to_ = to[static_cast<size_t>(all_->rank())];
  for (size_t r = 0; r < to.size(); ++r) {
    if (to[r] != all_->rank()) continue;
    incoming_.push_back(std::make_unique<Incoming>());
    incoming_.back()->from = static_cast<int>(r);
  }
}

NeighbourCopies::~NeighbourCopies() = default;

void NeighbourCopies::begin(const fs::path& run_folder, const LocalPart& mine) {
  base::require(!under_way(), kWhere, "copies begin while others are in progress");
  seconds_ = 0;
  const Stopwatch watch(seconds_);
  description_ = describe(mine);
  file_ = base::ReadOnlyFile(mine.file);
  const std::vector<std::string> sizes =
      comm::texts_of_all(*all_, fmt::format("{} {}", file_.size(), description_.size()));
  uint64_t most = 1;
  for (size_t r = 0; r < sizes.size(); ++r) {
    std::istringstream in(sizes[r]);
    uint64_t bytes = 0, described = 0;
    in >> bytes >> described;
    most = std::max(most, bytes);
    for (const auto& from : incoming_)
      if (from->from == static_cast<int>(r)) from->bytes = bytes, from->described = described;
  }
  piece_bytes_ = std::clamp(most / kPieces, kLeastPiece, kMostPiece);
  pieces_ = static_cast<int64_t>((most + piece_bytes_ - 1) / piece_bytes_) + 1;
  next_ = 0;
  for (const auto& from : incoming_) {
    from->path = local_file(local_, run_folder, from->from, LocalKind::copy);
    from->complete = false;
    remove_part(from->path);
    from->writing([&] {
      base::make_folders(local_);
      from->file.emplace(from->path);
    });
  }
}

uint64_t NeighbourCopies::size_of_piece(uint64_t bytes) const {
  const uint64_t at = static_cast<uint64_t>(next_) * piece_bytes_;
  return at < bytes ? std::min(piece_bytes_, bytes - at) : 0;
}

bool NeighbourCopies::advance() {
  if (!under_way()) return true;
  const Stopwatch watch(seconds_);
  receive_piece();
  if (next_ == pieces_) return true;
  const bool last = next_ + 1 == pieces_;
  std::vector<comm::Message> messages;
  if (to_ >= 0) {
    if (last) {
      sent_.resize(description_.size());
      std::memcpy(sent_.data(), description_.data(), sent_.size());
    } else {
      sent_.resize(size_of_piece(file_.size()));
      file_.read_at(static_cast<uint64_t>(next_) * piece_bytes_, sent_);
    }
    if (!sent_.empty()) messages.push_back(comm::Message::to(to_, sent_));
  }
  for (const auto& from : incoming_) {
    from->buffer.resize(last ? from->described : size_of_piece(from->bytes));
    if (!from->buffer.empty()) messages.push_back(comm::Message::from(from->from, from->buffer));
  }
  event_ = all_->exchange(messages);
  ++next_;
  return false;
}

void NeighbourCopies::receive_piece() {
  if (!event_) return;
  all_->wait(*event_);
  event_.reset();
  for (const auto& from : incoming_) {
    if (!from->file) continue;
    from->writing([&] {
      if (next_ < pieces_) return from->file->write(from->buffer);
      from->file->close_unsynced();
      from->file.reset();
      write_description(from->path,
                        std::string(reinterpret_cast<const char*>(from->buffer.data()), from->buffer.size()));
      from->complete = true;
    });
  }
}

void NeighbourCopies::end() {
  if (event_) all_->wait(*event_);
  event_.reset();
  pieces_ = 0;
  file_ = {};
  for (const auto& from : incoming_) from->drop();
  sent_ = {};
  for (const auto& from : incoming_) from->buffer = {};
}

}  // namespace kintsugi::checkpoint

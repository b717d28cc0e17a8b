#include "kintsugi/report/measured_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "kintsugi/base/format.h"
#include "kintsugi/base/xml.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

using profile::Block;
using profile::OperationTime;
using profile::Part;
using profile::QueueBlocks;
using profile::RankProfile;
using profile::StepProfile;

constexpr double kWide = 1000, kLeftOf = 72, kRightOf = 14;  // px
constexpr size_t kMostRows = 32, kMostDrawn = 3000;
constexpr double kShown = 5e-3;  // of a step: shown in the legend

// Kernels by time; distinguishable with red-green blindness.
constexpr std::array<std::string_view, 7> kOperationColours = {"#4c72b0", "#f0a35e", "#7fb3e6", "#b07aa1",
                                                               "#d9b64c", "#8c6d5a", "#5aa7a7"};
constexpr std::string_view kOtherColour = "#b5b5b5", kCommunicationColour = "#8fd19e", kWaitingColour = "#eeeeee",
                           kTransferColour = "#4f9a6a", kExposedColour = "#cfeccf", kInputsColour = "#dcbeb0";

std::string_view colour_of_work(std::string_view work) {
  if (work == "forward") return "#7fb3e6";
  if (work == "backward") return "#f0a35e";
  if (work == "weight") return "#8fd19e";
  if (work == "waiting") return kWaitingColour;
  if (work == "transfer") return kExposedColour;
  if (work == "inputs") return kInputsColour;
  return "#c9b3de";  // gradient accumulation, the update
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", 1e3 * seconds);
}

class RankRows {
 public:
  RankRows(const StepProfile& profile, double row, double bottom) : profile_(profile), row_(row) {
    rows_ = std::min(profile.of_ranks.size(), kMostRows);
    for (size_t r = 0; r < rows_; ++r) longest_ = std::max(longest_, profile.of_ranks[r].seconds);
    end_ = kTop + row_ * static_cast<double>(rows_);
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" )"
        R"(font-family="sans-serif" font-size="12" fill="#222222">)",
        kWide, end_ + bottom);
    box(0, 0, kWide, end_ + bottom, "#ffffff", "");
  }

  static constexpr double kTop = 12;

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  static std::string rectangle(double x, double y, double width, double height) {
    return fmt::format("M{:.2f} {:.1f}h{:.2f}v{:.1f}h{:.2f}z", x, y, width, height, -width);
  }
  void box(double x, double y, double width, double height, std::string_view fill, const std::string& tip) {
    add(R"(<path d="{}" fill="{}">{}</path>)", rectangle(x, y, width, height), fill,
        tip.empty() ? "" : fmt::format("<title>{}</title>", base::escape_xml(tip)));
  }
  void label(double x, double y, const std::string& label, std::string_view anchor = "start") {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, base::escape_xml(label));
  }

  double x(double seconds) const { return kLeftOf + scale() * seconds; }
  double scale() const { return longest_ > 0 ? (kWide - kLeftOf - kRightOf) / longest_ : 0; }
  double y(size_t row) const { return kTop + row_ * static_cast<double>(row); }
  size_t rows() const { return rows_; }
  double end() const { return end_; }

  void names(std::string_view row = "rank") {
    for (size_t r = 0; r < rows_; ++r)
      label(kLeftOf - 8, y(r) + 16, fmt::format("{} {}", row, profile_.of_ranks[r].rank), "end");
  }

  void time_axis() {
    add(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="#333333"/>)", kLeftOf, end_, kWide - kRightOf);
    const double most = 1e3 * longest_, step = round_step(std::max(most, 1e-6), 8);
    for (int i = 0; i * step <= most; ++i) {
      const double at = x(1e-3 * i * step);
      add(R"(<path d="M{:.1f} {:.1f}v4" stroke="#333333"/>)", at, end_);
      const bool last = (i + 1) * step > most;
      label(at, end_ + 17, fmt::format("{:g}{}", i * step, last ? " ms" : ""), at > kWide - 40 ? "end" : "middle");
    }
  }

  struct Key {
    std::string name;
    std::string_view colour;
  };
  // In lines, from `y` down.
  void legend(const std::vector<Key>& keys, double y) {
    double at = kLeftOf;
    for (const Key& key : keys) {
      const double width = 40 + 6.6 * static_cast<double>(key.name.size());
      if (at > kLeftOf && at + width > kWide - kRightOf) at = kLeftOf, y += 20;
      box(at, y, 14, 14, key.colour, "");
      label(at + 20, y + 12, key.name);
      at += width;
    }
  }

  std::string take() {
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  const StepProfile& profile_;
  double row_, longest_ = 0, end_ = 0;
  size_t rows_ = 0;
  std::string text_;
};

struct Piece {
  std::string name;
  std::string_view colour;
  double seconds = 0;
};

std::vector<Piece> pieces_of(const RankProfile& r, std::span<const std::string> operations) {
  std::vector<Piece> pieces;
  double others = r.of(Part::compute);
  for (size_t i = 0; i < operations.size(); ++i) {
    double seconds = 0;
    for (const OperationTime& o : r.operations)
      if (o.part == Part::compute && o.operation == operations[i]) seconds += o.seconds;
    others -= seconds;
    pieces.push_back({operations[i], kOperationColours[i], seconds});
  }
  pieces.push_back({"other kernels", kOtherColour, std::max(0.0, others)});
  pieces.push_back({"communication", kCommunicationColour, r.of(Part::communication)});
  for (const profile::WaitedFor& waited : r.waits)
    pieces.push_back({fmt::format("waiting for rank {}", waited.rank), kWaitingColour, waited.seconds});
  pieces.push_back({"inputs", kInputsColour, r.inputs});
  pieces.push_back({"between instructions", "#555555", std::max(0.0, r.between)});
  return pieces;
}

bool has_waits(const StepProfile& profile) {
  return std::ranges::any_of(profile.of_ranks, [](const RankProfile& r) { return !r.waits.empty(); });
}

}  // namespace

std::vector<std::string> heaviest_operations(std::span<const StepProfile* const> steps) {
  std::map<std::string, double> shares;
  for (const StepProfile* step : steps)
    for (const RankProfile& r : step->of_ranks)
      for (const OperationTime& o : r.operations)
        if (o.part == Part::compute && r.seconds > 0)
          shares[o.operation] += o.seconds / r.seconds / static_cast<double>(step->of_ranks.size());
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, share] : shares) sorted.push_back({share, name});
  std::ranges::sort(sorted, std::ranges::greater());
  std::vector<std::string> names;
  for (const auto& [share, name] : sorted)
    if (names.size() < kOperationColours.size()) names.push_back(name);
  return names;
}

namespace {

std::vector<RankRows::Key> keys_of(const StepProfile& profile, std::span<const std::string> operations) {
  std::vector<RankRows::Key> keys;
  for (size_t i = 0; i < operations.size(); ++i) keys.push_back({operations[i], kOperationColours[i]});
  keys.push_back({"other kernels", kOtherColour});
  if (profile.ranks > 1) keys.push_back({"communication", kCommunicationColour});
  if (has_waits(profile)) keys.push_back({"waiting", kWaitingColour});
  if (std::ranges::any_of(profile.of_ranks, [](const RankProfile& r) { return r.inputs > kShown * r.seconds; }))
    keys.push_back({"inputs", kInputsColour});
  return keys;
}

}  // namespace

std::string step_legend(const StepProfile& profile, std::span<const std::string> operations) {
  std::string html = "<ul class=\"legend narrow\">\n";
  for (const RankRows::Key& key : keys_of(profile, operations))
    html += fmt::format(
        "<li><svg viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path class=\"box\" style=\"stroke:{}\" "
        "d=\"M0 5h22\"/></svg>{}</li>\n",
        key.colour, base::escape_xml(key.name));
  return html + "</ul>\n";
}

std::string step_picture(const StepProfile& profile, std::span<const std::string> operations) {
  RankRows drawing(profile, 30, 72);
  drawing.names();
  for (size_t row = 0; row < drawing.rows(); ++row) {
    const RankProfile& r = profile.of_ranks[row];
    double at = 0;
    for (const Piece& piece : pieces_of(r, operations)) {
      if (piece.seconds <= 0) continue;
      const double width = drawing.scale() * piece.seconds;
      drawing.box(
          drawing.x(at), drawing.y(row), width, 22, piece.colour,
          fmt::format("{}: {}, {:.1f}%", piece.name, milliseconds(piece.seconds), 100 * piece.seconds / r.seconds));
      if (piece.colour == kWaitingColour && piece.name.size() * 6.2 < width)
        drawing.add(R"(<text x="{:.1f}" y="{:.1f}" font-size="11" text-anchor="middle" fill="#555555">{}</text>)",
                    drawing.x(at) + width / 2, drawing.y(row) + 15, piece.name);
      at += piece.seconds;
    }
  }
  drawing.time_axis();
  drawing.legend(keys_of(profile, operations), drawing.end() + 28);
  return drawing.take();
}

namespace {

// If there are very many blocks, the earliest have tooltips and numbers: those that begin before `end`.
struct Drawn {
  double end = std::numeric_limits<double>::infinity();
  int64_t named = 0, blocks = 0, all = 0;  // all: including those that the profile omitted

  std::string text() const {
    const auto first = [](int64_t some, int64_t of, std::string_view what) {
      return fmt::format("the first {} of {} blocks{}", base::group_digits(some), base::group_digits(of), what);
    };
    if (blocks < all) return first(blocks, all, "");
    return named < blocks ? first(named, blocks, " have a tooltip") : "";
  }
};

Drawn blocks_to_draw(const StepProfile& profile) {
  Drawn drawn;
  std::vector<double> begins;
  for (size_t row = 0; row < std::min(profile.of_ranks.size(), kMostRows); ++row)
    for (const QueueBlocks& queue : profile.of_ranks[row].queues) {
      for (const Block& block : queue.blocks) begins.push_back(block.begin);
      drawn.all += queue.left_out;
    }
  drawn.blocks = std::ssize(begins);
  drawn.all += drawn.blocks;
  if (begins.size() > kMostDrawn) {
    std::ranges::nth_element(begins, begins.begin() + kMostDrawn);
    drawn.end = begins[kMostDrawn];
  }
  drawn.named = std::ranges::count_if(begins, [&](double begin) { return begin < drawn.end; });
  return drawn;
}

bool has_block(const StepProfile& profile, auto&& wanted) {
  return std::ranges::any_of(profile.of_ranks, [&](const RankProfile& r) {
    return std::ranges::any_of(r.queues, [&](const QueueBlocks& queue) {
      return std::ranges::any_of(queue.blocks, [&](const Block& block) { return wanted(queue, block); });
    });
  });
}

std::string tip_of(const Block& block) {
  std::string tip = block.work;
  if (block.work == "waiting" && block.waited_for >= 0) tip += fmt::format(" for rank {}", block.waited_for);
  if (block.work == "transfer") tip = "exposed transfer";
  if (block.micro_batch >= 0) tip += fmt::format(" of chunk {}", block.chunk);
  if (block.micro_batch >= 0) tip += fmt::format(", micro-batch {}", block.micro_batch);
  return tip;
}

void draw_block(RankRows& drawing, double y, const Block& block, const std::string& tip) {
  const double x = drawing.x(block.begin), width = drawing.scale() * (block.end - block.begin);
  drawing.box(x, y, width > 4 ? width - 1 : width, 24, colour_of_work(block.work), tip);
  if (block.micro_batch < 0) return;
  const std::string number = fmt::format("{}", block.micro_batch);
  if (width > 6.2 * static_cast<double>(number.size()) + 2)
    drawing.add(R"(<text x="{:.2f}" y="{:.1f}" font-size="11" text-anchor="middle">{}</text>)", x + width / 2, y + 16,
                number);
}

std::vector<RankRows::Key> schedule_keys(const StepProfile& profile, std::string_view row) {
  const auto has_work = [&](std::string_view work) {
    return has_block(profile, [&](const QueueBlocks&, const Block& block) { return block.work == work; });
  };
  std::vector<RankRows::Key> keys = {{"forward", colour_of_work("forward")}, {"backward", colour_of_work("backward")}};
  if (has_work("weight")) keys.push_back({"weight gradient", colour_of_work("weight")});
  keys.push_back({"sums of gradients, update", colour_of_work("update")});
  if (has_work("waiting")) keys.push_back({fmt::format("waiting for another {}", row), kWaitingColour});
  if (has_work("transfer")) keys.push_back({"exposed transfer", kExposedColour});
  if (has_work("inputs")) keys.push_back({"inputs", kInputsColour});
  if (has_block(profile, [](const QueueBlocks& queue, const Block&) { return queue.queue != "compute"; }))
    keys.push_back({"transfers under way", kTransferColour});
  return keys;
}

}  // namespace

std::string run_schedule_picture(const StepProfile& profile, std::string_view row_name) {
  const Drawn drawn = blocks_to_draw(profile);
  const std::string some = drawn.text();
  RankRows drawing(profile, 36, some.empty() ? 76 : 96);
  drawing.names(row_name);
  for (size_t row = 0; row < drawing.rows(); ++row) {
    const double y = drawing.y(row);
    drawing.box(drawing.x(0), y, drawing.scale() * profile.of_ranks[row].seconds, 24, "#f8f8f8", "");
    std::map<std::string_view, std::string> others;  // by colour: a path
    for (const QueueBlocks& queue : profile.of_ranks[row].queues)
      for (const Block& block : queue.blocks) {
        const bool computes = queue.queue == "compute";
        const std::string_view colour = computes ? colour_of_work(block.work) : kTransferColour;
        const double x = drawing.x(block.begin), width = drawing.scale() * (block.end - block.begin);
        if (block.begin >= drawn.end) {
          others[colour] += RankRows::rectangle(x, computes ? y : y + 26, width, computes ? 24 : 4);
          continue;
        }
        const std::string when = fmt::format(": {} to {}", milliseconds(block.begin), milliseconds(block.end));
        if (computes)
          draw_block(drawing, y, block, tip_of(block) + when);
        else
          drawing.box(x, y + 26, width, 4, colour,
                      fmt::format("transfers over {}, {}{}", queue.queue, block.work, when));
      }
    for (const auto& [colour, path] : others) drawing.add(R"(<path d="{}" fill="{}"/>)", path, colour);
  }
  drawing.time_axis();
  drawing.legend(schedule_keys(profile, row_name), drawing.end() + 28);
  if (!some.empty()) drawing.label(kLeftOf, drawing.end() + 88, some);
  return drawing.take();
}

}  // namespace kintsugi::report

#include "kintsugi/report/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/xml.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/report/svg.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {

using program::Instant;
using program::MemoryTable;
using program::Program;

namespace {

constexpr double kWidth = 1000, kHeight = 506;  // px
constexpr double kLeft = 76, kRight = 14, kTop = 76, kBottom = 110;
constexpr double kStrip = 10;  // height of the phases below the axis
constexpr size_t kMost = 4000;

// From bottom to top; colours are distinguishable with red-green blindness.
struct Band {
  std::string_view name, colour;
  int64_t constant = 0;
  int64_t (*at)(const Instant&) = nullptr;

  int64_t bytes(const Instant& i) const { return constant + (at ? at(i) : 0); }
};

std::vector<Band> bands(const MemoryTable& t) {
  return {{"weights", "#4c72b0", t.weights, nullptr},
          {"optimizer", "#b8cfe8", t.optimizer, nullptr},
          {"other states", "#8c8c8c", t.statistics + t.caches + t.sums + t.staging, nullptr},
          {"gradients", "#7fb3e6", t.gradients, [](const Instant& i) { return i.live.gradients; }},
          {"workspace", "#c9b3de", 0, [](const Instant& i) { return i.live.workspace; }},
          {"communication", "#8fd19e", 0, [](const Instant& i) { return i.live.communication; }},
          {"activations", "#f0a35e", 0, [](const Instant& i) { return i.live.activations; }}};
}

// The phases of a step, below the axis: in colours not used by bands.
struct Phase {
  std::string_view name, colour;
};

Phase phase_of(program::Work work) {
  using program::Work;
  switch (work) {
    case Work::forward:
      return {"forward", "#5aa9a3"};
    case Work::backward:
      return {"backward", "#a0628d"};
    case Work::weight:
      return {"gradients of weights", "#c9a227"};
    case Work::reduce:
      return {"sums over ranks", "#b7b7b7"};
    case Work::update:
      return {"update", "#555555"};
    case Work::evaluate:
    case Work::sample:
    case Work::tasks:
    case Work::prefill:
    case Work::prefill_quarter:
    case Work::score:
    case Work::decode:
    case Work::decode_half:
    case Work::decode_quarter:
    case Work::decode_one:
      return {name_of(work), "#b8cfe8"};
  }
  throw base::InternalError("report", "no work {}", static_cast<int>(work));
}

std::string bytes_in_words(int64_t bytes) {
  return base::format_bytes(static_cast<uint64_t>(std::max<int64_t>(0, bytes)));
}

class Picture : public Svg {
 public:
  Picture(const Program& p, const std::string& title, int64_t limit)
      : Svg(kWidth, kHeight, kLeft, title),
        program_(p),
        table_(program::memory_table(p)),
        list_(program::largest_list(p)),
        instants_(program::memory_over(p, list_, kMost)),
        total_(p.bytes()),
        limit_(limit),
        top_(limit <= 2 * total_ ? std::max(limit, total_) : total_) {
    const size_t instructions = program::num_instructions(p, list_);
    by_instruction_ = instructions == instants_.size();
    all_ = by_instruction_ ? instructions : list_.calls.size();
    legend();
    areas();
    plan_and_limit();
    axes();
    phases();
    packing();
  }

 private:
  double x(double at) const {
    return kLeft + (kWidth - kLeft - kRight) * at / static_cast<double>(std::max<size_t>(all_, 1));
  }
  double y(double bytes) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * bytes / static_cast<double>(std::max<int64_t>(top_, 1));
  }

  void legend() {
    double at = kLeft;
    const std::vector<Band> list = bands(table_);
    for (auto band = list.rbegin(); band != list.rend(); ++band) {
      add(R"(<rect x="{:.0f}" y="34" width="12" height="12" fill="{}"/>)", at, band->colour);
      add(R"(<text x="{:.0f}" y="44">{}</text>)", at + 16, band->name);
      at += 36 + 7.0 * static_cast<double>(band->name.size());
    }
  }

  // Each band from the top of the one below to its own top.
  void areas() {
    std::vector<int64_t> below(instants_.size(), 0);
    for (const Band& band : bands(table_)) {
      std::vector<int64_t> above = below;
      for (size_t i = 0; i < instants_.size(); ++i) above[i] += band.bytes(instants_[i]);
      if (above != below)
        add(R"(<path d="{}{}Z" fill="{}"><title>{}</title></path>)", outline(above, true), outline(below, false),
            band.colour, band.name);
      below = std::move(above);
    }
  }

  // Steps from left to right, or back; draws a step only where the height changes.
  std::string outline(const std::vector<int64_t>& bytes, bool forward) const {
    std::string path;
    const size_t n = bytes.size();
    for (size_t k = 0; k < n; ++k) {
      const size_t i = forward ? k : n - 1 - k;
      const double begin = begin_of(i), end = i + 1 < n ? begin_of(i + 1) : static_cast<double>(all_);
      const size_t before = forward ? i - 1 : i + 1;
      const std::string height = fmt::format("{:.1f}", y(static_cast<double>(bytes[i])));
      if (k == 0)
        path += fmt::format("{}{:.1f} {}", forward ? 'M' : 'L', x(forward ? begin : end), height);
      else if (bytes[before] != bytes[i])
        path += fmt::format("H{:.1f}V{}", x(forward ? begin : end), height);
      if (k + 1 == n) path += fmt::format("H{:.1f}", x(forward ? end : begin));
    }
    return path;
  }

  double begin_of(size_t i) const { return static_cast<double>(by_instruction_ ? i : instants_[i].call); }

  void plan_and_limit() {
    level(total_, "#333333");
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end" fill="#333333">allocated: {} ({} bytes)</text>)",
        kWidth - kRight, y(static_cast<double>(total_)) - 5, bytes_in_words(total_), base::group_digits(total_));
    if (limit_ <= 0) return;
    const bool shown = limit_ <= top_;
    if (shown) level(limit_, "#c0392b");
    add(R"(<text x="{:.1f}" y="{:.1f}" fill="#c0392b">limit of a rank: {}{}</text>)", kLeft + 6,
        shown ? y(static_cast<double>(limit_)) - 5 : kTop - 8, bytes_in_words(limit_), shown ? "" : ", far above");
  }

  void level(int64_t bytes, std::string_view colour) {
    add(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="{}" stroke-dasharray="6 4"/>)", kLeft, y(static_cast<double>(bytes)),
        kWidth - kRight, colour);
  }

  void axes() {
    const double bottom = y(0);
    add(R"(<path d="M{0} {1}V{2}H{3}" fill="none" stroke="#333333"/>)", kLeft, kTop - 6, bottom, kWidth - kRight);
    constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double size = 1;
    while (unit + 1 < kUnits.size() && static_cast<double>(top_) >= 1024 * size) ++unit, size *= 1024;
    const double most = static_cast<double>(top_) / size, step = round_step(std::max(most, 1e-9), 6);
    for (int i = 0; i * step <= most; ++i)
      add(R"(<path d="M{0} {1:.1f}h-4" stroke="#333333"/><text x="{2}" y="{3:.1f}" text-anchor="end">{4:g} {5}</text>)",
          kLeft, y(i * step * size), kLeft - 7, y(i * step * size) + 4, i * step, kUnits[unit]);
    const double across = std::max(1.0, round_step(static_cast<double>(std::max<size_t>(all_, 1)), 8));
    for (int i = 0; i * across <= static_cast<double>(all_); ++i)
      add(R"(<path d="M{0:.1f} {1}v4" stroke="#333333"/><text x="{0:.1f}" y="{2}" text-anchor="middle">{3}</text>)",
          x(i * across), bottom + kStrip + 1, bottom + kStrip + 17,
          base::group_digits(static_cast<int64_t>(i * across)));
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{} of a step, in order</text>)",
        (kLeft + kWidth - kRight) / 2, bottom + kStrip + 35, by_instruction_ ? "instructions" : "calls");
    add(R"svg(<text transform="translate(14 {:.1f}) rotate(-90)" text-anchor="middle">memory of a rank</text>)svg",
        (kTop + bottom) / 2);
  }

  // Merges adjacent calls of one kind.
  void phases() {
    const double top = y(0) + 1;
    std::vector<std::string_view> named;
    double label = kLeft;
    size_t begin = 0, end = 0;
    const program::Walk calls = program::walk(program_, list_);
    for (size_t i = 0; i < list_.calls.size(); ++i) {
      const program::Work work = calls[i].body.work;
      end += by_instruction_ ? calls[i].body.instructions.size() : 1;
      if (i + 1 < list_.calls.size() && calls[i + 1].body.work == work) continue;
      const Phase phase = phase_of(work);
      add(R"(<path d="M{:.1f} {:.1f}H{:.1f}v{}H{:.1f}Z" fill="{}"><title>{}</title></path>)",
          x(static_cast<double>(begin)), top, x(static_cast<double>(end)), kStrip, x(static_cast<double>(begin)),
          phase.colour, phase.name);
      begin = end;
      if (std::ranges::count(named, phase.name) > 0) continue;
      named.push_back(phase.name);
      add(R"(<rect x="{0:.0f}" y="{1:.0f}" width="12" height="12" fill="{2}"/><text x="{3:.0f}" y="{4:.0f}">{5}</text>)",
          label, y(0) + 56, phase.colour, label + 16, y(0) + 66, phase.name);
      label += 36 + 7.0 * static_cast<double>(phase.name.size());
    }
    add(R"(<text x="{:.0f}" y="{:.0f}" fill="#555555">below the axis</text>)", label, y(0) + 66);
  }

  // What the dashed line is, and why it is above the maximum.
  void packing() {
    const int64_t over = list_.arena_bytes - list_.lower_bound_bytes;
    const double share =
        100 * static_cast<double>(over) / static_cast<double>(std::max<int64_t>(1, list_.lower_bound_bytes));
    const std::string both[] = {
        fmt::format("Allocated: {} of states and {} for all else. What is empty below the dashed line is not in use at "
                    "that instant.",
                    bytes_in_words(program_.state_bytes), bytes_in_words(program_.arena_bytes)),
        fmt::format("Packing: values that are not live at the same time share memory. At most {} are live at once, "
                    "placed in {}: {:.2f}% more.",
                    bytes_in_words(list_.lower_bound_bytes), bytes_in_words(list_.arena_bytes), share)};
    double line = y(0) + 86;
    for (const std::string& text : both) {
      add(R"(<text x="{}" y="{:.0f}" fill="#555555">{}</text>)", kLeft, line, base::escape_xml(text));
      line += 17;
    }
  }

  const Program& program_;
  MemoryTable table_;
  const program::CallList& list_;
  std::vector<Instant> instants_;
  int64_t total_, limit_, top_;  // top_: of the vertical axis
  bool by_instruction_ = false;
  size_t all_ = 0;  // along the horizontal axis
};

}  // namespace

std::string memory_picture(const Program& p, const std::string& title, int64_t limit) {
  return Picture(p, title, limit).take();
}

}  // namespace kintsugi::report

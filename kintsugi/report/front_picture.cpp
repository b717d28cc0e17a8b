#include "kintsugi/report/front_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/format.h"
#include "kintsugi/base/xml.h"
#include "kintsugi/report/svg.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

constexpr double kFrontWidth = 1000, kFrontHeight = 520;  // px
constexpr double kFrontLeft = 76, kFrontRight = 24, kFrontTop = 48, kFrontBottom = 48;
constexpr double kGiB = 1 << 30;

class FrontPicture : public Svg {
 public:
  FrontPicture(const std::vector<TimeAndMemory>& front, const std::vector<TimeAndMemory>& others, int64_t limit,
               const std::string& title)
      : Svg(kFrontWidth, kFrontHeight, kFrontLeft, title), limit_(static_cast<double>(limit) / kGiB) {
    for (const auto* list : {&front, &others})
      for (const TimeAndMemory& p : *list) {
        slowest_ = std::max(slowest_, p.seconds);
        largest_ = std::max(largest_, static_cast<double>(p.bytes) / kGiB);
      }
    if (limit_ <= 2 * largest_) largest_ = std::max(largest_, limit_);
    slowest_ *= 1.05;
    largest_ *= 1.05;
    axes();
    if (limit_ <= largest_) {
      add(R"(<path d="M{0:.1f} {1}V{2}" stroke="#c0392b" stroke-dasharray="6 4"/>)", x(limit_), kFrontTop, y(0));
      add(R"(<text x="{:.1f}" y="{}" text-anchor="end" fill="#c0392b">memory of a device</text>)", x(limit_) - 5,
          kFrontTop + 12);
    }
    for (const TimeAndMemory& p : others) dot(p, "#8c8c8c", 3);
    std::string path;
    for (const TimeAndMemory& p : front)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p), y(p.seconds));
    if (front.size() > 1) add(R"(<path d="{}" fill="none" stroke="#4c72b0"/>)", path);
    for (const TimeAndMemory& p : front) {
      dot(p, "#4c72b0", 4);
      const bool at_right = x(p) > kFrontWidth / 2;
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x(p) + (at_right ? -8 : 8), y(p.seconds) - 7,
          at_right ? "end" : "start", base::escape_xml(p.name));
    }
  }

 private:
  double x(double gib) const {
    return kFrontLeft + (kFrontWidth - kFrontLeft - kFrontRight) * gib / std::max(largest_, 1e-9);
  }
  double x(const TimeAndMemory& p) const { return x(static_cast<double>(p.bytes) / kGiB); }
  double y(double seconds) const {
    return kFrontHeight - kFrontBottom -
           (kFrontHeight - kFrontTop - kFrontBottom) * seconds / std::max(slowest_, 1e-12);
  }

  void dot(const TimeAndMemory& p, std::string_view colour, int radius) {
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"><title>{}: {:.4g} s, {}</title></circle>)", x(p),
        y(p.seconds), radius, colour, base::escape_xml(p.name), p.seconds,
        base::format_bytes(static_cast<uint64_t>(p.bytes)));
  }

  void axes() {
    add(R"(<path d="M{0} {1}V{2}H{3}" fill="none" stroke="#333333"/>)", kFrontLeft, kFrontTop - 6, y(0),
        kFrontWidth - kFrontRight);
    for (const double tick : ticks(0, slowest_, 6))
      add(R"(<path d="M{0} {1:.1f}h-4" stroke="#333333"/><text x="{2}" y="{3:.1f}" text-anchor="end">{4:g} s</text>)",
          kFrontLeft, y(tick), kFrontLeft - 7, y(tick) + 4, tick);
    for (const double tick : ticks(0, largest_, 8))
      add(R"(<path d="M{0:.1f} {1}v4" stroke="#333333"/><text x="{0:.1f}" y="{2}" text-anchor="middle">{3:g} GiB</text>)",
          x(tick), y(0), y(0) + 17, tick);
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">memory of the rank that needs most</text>)",
        (kFrontLeft + kFrontWidth - kFrontRight) / 2, kFrontHeight - 10);
    add(R"svg(<text transform="translate(14 {:.1f}) rotate(-90)" text-anchor="middle">time of a step</text>)svg",
        (kFrontTop + y(0)) / 2);
  }

  double limit_ = 0, slowest_ = 0, largest_ = 0;  // GiB and seconds
};

}  // namespace

std::string front_picture(const std::vector<TimeAndMemory>& front, const std::vector<TimeAndMemory>& others,
                          int64_t limit, const std::string& title) {
  return FrontPicture(front, others, limit, title).take();
}

}  // namespace kintsugi::report

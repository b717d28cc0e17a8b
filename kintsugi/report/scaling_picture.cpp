#include "kintsugi/report/scaling_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kintsugi/base/format.h"
#include "kintsugi/base/xml.h"
#include "kintsugi/report/svg.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

constexpr double kScalingWidth = 800, kScalingHeight = 480;  // px
constexpr double kScalingLeft = 110, kScalingRight = 30, kScalingTop = 70, kScalingBottom = 56;
constexpr std::array<std::string_view, 4> kInks = {"#4c72b0", "#c44e52", "#55a868", "#8172b3"};

class ScalingPicture : public Svg {
 public:
  ScalingPicture(const std::vector<ScalingCurve>& curves, const std::string& title)
      : Svg(kScalingWidth, kScalingHeight, kScalingLeft, title) {
    for (const ScalingCurve& curve : curves)
      for (const auto* points : {&curve.points, &curve.measured})
        for (const Point& p : *points) {
          counts_.insert(p.x);
          low_ = {std::min(low_.x, p.x), std::min(low_.y, p.y)};
          high_ = {std::max(high_.x, p.x), std::max(high_.y, p.y)};
        }
    if (low_.x > high_.x) low_ = high_ = {1, 1};
    for (const ScalingCurve& curve : curves)
      if (!curve.points.empty()) high_.y = std::max(high_.y, ideal(curve).y);
    low_ = {low_.x / 1.2, low_.y / 1.3};
    high_ = {high_.x * 1.2, high_.y * 1.3};
    axes();
    for (size_t i = 0; i < curves.size(); ++i) draw(curves[i], kInks[i % kInks.size()], i);
    add(R"(<path d="M{0} 56h24" stroke="#8c8c8c" stroke-dasharray="5 4"/><text x="{1}" y="60">each device as fast as with the fewest</text>)",
        legend(curves.size()), legend(curves.size()) + 30);
    if (std::ranges::any_of(curves, [](const ScalingCurve& c) { return !c.measured.empty(); }))
      add(R"(<text x="{}" y="{:.1f}" text-anchor="end">rings: as measured</text>)", kScalingWidth - kScalingRight,
          kScalingHeight - 14);
  }

 private:
  static double legend(size_t i) { return kScalingLeft + 190 * static_cast<double>(i); }
  Point ideal(const ScalingCurve& curve) const {
    const Point& first = curve.points.front();
    return {curve.points.back().x, first.y * curve.points.back().x / first.x};
  }
  double x(double devices) const {
    return kScalingLeft +
           (kScalingWidth - kScalingLeft - kScalingRight) * std::log(devices / low_.x) / std::log(high_.x / low_.x);
  }
  double y(double rate) const {
    return kScalingHeight - kScalingBottom -
           (kScalingHeight - kScalingTop - kScalingBottom) * std::log(rate / low_.y) / std::log(high_.y / low_.y);
  }

  void axes() {
    add(R"(<path d="M{0} {1}V{2}H{3}" fill="none" stroke="#333333"/>)", kScalingLeft, kScalingTop, y(low_.y),
        kScalingWidth - kScalingRight);
    for (const double tick : log_ticks(low_.y, high_.y, 6))
      add(R"(<path d="M{0} {1:.1f}H{2}" stroke="#e4e4e4"/><text x="{3}" y="{4:.1f}" text-anchor="end">{5}</text>)",
          kScalingLeft, y(tick), kScalingWidth - kScalingRight, kScalingLeft - 6, y(tick) + 4,
          base::format_rate(tick, "tokens/s"));
    for (const double tick : counts_)
      add(R"(<path d="M{0:.1f} {1:.1f}v4" stroke="#333333"/><text x="{0:.1f}" y="{2:.1f}" text-anchor="middle">{3:g}</text>)",
          x(tick), y(low_.y), y(low_.y) + 18, tick);
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">devices</text>)",
        (kScalingLeft + kScalingWidth - kScalingRight) / 2, kScalingHeight - 14);
  }

  void draw(const ScalingCurve& curve, std::string_view ink, size_t number) {
    add(R"(<path d="M{0} 56h24" stroke="{1}" stroke-width="2"/><text x="{2}" y="60">{3}</text>)", legend(number), ink,
        legend(number) + 30, base::escape_xml(curve.name));
    for (const Point& p : curve.measured)
      add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="7" fill="none" stroke="{}" stroke-width="2"><title>{}, measured: {:g} devices, {}</title></circle>)",
          x(p.x), y(p.y), ink, base::escape_xml(curve.name), p.x, base::format_rate(p.y, "tokens/s"));
    if (curve.points.empty()) return;
    const Point first = curve.points.front(), end = ideal(curve);
    add(R"(<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="#8c8c8c" stroke-dasharray="5 4"/>)", x(first.x), y(first.y),
        x(end.x), y(end.y));
    std::string path;
    for (const Point& p : curve.points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.x), y(p.y));
    add(R"(<path d="{}" fill="none" stroke="{}" stroke-width="2"/>)", path, ink);
    for (const Point& p : curve.points)
      add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"><title>{}: {:g} devices, {}</title></circle>)", x(p.x),
          y(p.y), ink, base::escape_xml(curve.name), p.x, base::format_rate(p.y, "tokens/s"));
  }

  Point low_ = {HUGE_VAL, HUGE_VAL}, high_ = {0, 0};
  std::set<double> counts_;  // of devices
};

}  // namespace

std::string scaling_picture(const std::vector<ScalingCurve>& curves, const std::string& title) {
  return ScalingPicture(curves, title).take();
}

}  // namespace kintsugi::report

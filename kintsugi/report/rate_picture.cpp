#include "kintsugi/report/rate_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/report/svg.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

constexpr double kRateWidth = 800, kRateHeight = 420, kRateLeft = 70, kRateRight = 30, kRateTop = 60,
                 kRateBottom = 56;  // px

class RatePicture : public Svg {
 public:
  RatePicture(const RateCurve& curve, const std::string& title) : Svg(kRateWidth, kRateHeight, kRateLeft, title) {
    for (const Point& p : curve.losses) low_ = {std::min(low_.x, p.x), low_.y}, high_ = {std::max(high_.x, p.x), 0};
    double top = 0;
    for (const Point& p : curve.smooth) low_.y = std::min(low_.y, p.y), top = std::max(top, p.y);
    for (const Point& p : curve.losses) low_.y = std::min(low_.y, p.y);
    if (curve.losses.empty()) low_ = {1e-7, 0}, high_ = {10, 0}, top = 1;
    // A loss that diverges would leave no room for the rest.
    const double first = curve.smooth.empty() ? top : curve.smooth.front().y;
    high_.y = std::min(top, first + 1.5 * (first - low_.y)) + 0.05 * std::max(first - low_.y, 1e-3 * first);
    low_.y -= 0.05 * (high_.y - low_.y);
    axes();
    line(curve.losses, "#b8cfe8", 1);
    line(curve.smooth, "#4c72b0", 2);
    if (curve.marked)
      add(R"(<path d="M{0:.1f} {1}V{2}" stroke="#c44e52" stroke-dasharray="5 4"/><text x="{3:.1f}" y="{4}" fill="#c44e52">{5:.1e}</text>)",
          x(*curve.marked), kRateTop, kRateHeight - kRateBottom, x(*curve.marked) + 6, kRateTop + 12, *curve.marked);
  }

 private:
  double x(double rate) const {
    const double wide = std::max(high_.x / low_.x, 1.0 + 1e-9);
    return kRateLeft + (kRateWidth - kRateLeft - kRateRight) * std::log(rate / low_.x) / std::log(wide);
  }
  double y(double loss) const {
    const double share = (std::min(loss, high_.y) - low_.y) / (high_.y - low_.y);
    return kRateHeight - kRateBottom - (kRateHeight - kRateTop - kRateBottom) * share;
  }

  void axes() {
    const double bottom = kRateHeight - kRateBottom, right = kRateWidth - kRateRight;
    for (const double tick : ticks(low_.y, high_.y, 6))
      add(R"(<path d="M{0} {1:.1f}H{2}" stroke="#e4e4e4"/><text x="{3}" y="{4:.1f}" text-anchor="end">{5:g}</text>)",
          kRateLeft, y(tick), right, kRateLeft - 6, y(tick) + 4, tick);
    for (double tick = std::pow(10, std::ceil(std::log10(low_.x) - 1e-9)); tick <= high_.x * (1 + 1e-9); tick *= 10)
      add(R"(<path d="M{0:.1f} {1:.1f}v4" stroke="#333333"/><text x="{0:.1f}" y="{2:.1f}" text-anchor="middle">{3:g}</text>)",
          x(tick), bottom, bottom + 18, tick);
    add(R"(<path d="M{0} {1}V{2}H{3}" fill="none" stroke="#333333"/>)", kRateLeft, kRateTop, bottom, right);
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">learning rate</text>)", (kRateLeft + right) / 2,
        kRateHeight - 14);
    add(R"(<text x="{:.1f}" y="{:.1f}">loss: of each step, and smooth</text>)", kRateLeft, kRateTop - 8);
  }

  void line(const std::vector<Point>& points, std::string_view ink, int width) {
    std::string path;
    for (const Point& p : points) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.x), y(p.y));
    if (!path.empty()) add(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{}"/>)", path, ink, width);
  }

  Point low_ = {HUGE_VAL, HUGE_VAL}, high_ = {0, 0};
};

}  // namespace

std::string rate_picture(const RateCurve& curve, const std::string& title) {
  return RatePicture(curve, title).take();
}

}  // namespace kintsugi::report

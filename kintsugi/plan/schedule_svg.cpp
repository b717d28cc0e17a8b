#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kintsugi/base/xml.h"
#include "kintsugi/plan/schedule_picture.h"

namespace kintsugi::plan {

namespace {

constexpr double kWidth = 1000, kLeft = 72, kRight = 14;  // pixels
constexpr double kTop = 44, kModel = 18, kRow = 30, kBar = 24;
constexpr double kAxis = 22;  // height below the rows
constexpr std::string_view kIdle = "#eeeeee";
constexpr double kDigit = 6.2;  // width of a digit in a bar

// Light enough for dark numbers; distinguishable without red and green.
std::string_view colour(Work work) {
  return work == Work::forward ? "#7fb3e6" : work == Work::backward ? "#f0a35e" : "#8fd19e";
}

std::string_view full_name(const Schedule& schedule, Work work) {
  switch (work) {
    case Work::forward:
      return "forward";
    case Work::backward:
      return schedule.split ? "backward: input gradient" : "backward: input and weight gradient";
    default:
      return "weight gradient";
  }
}

// 1, 2 or 5 times a power of ten, giving about ten ticks up to `most`.
double tick_of(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 10)));
  for (const double times : {1.0, 2.0, 5.0})
    if (most / (times * power) <= 12) return times * power;
  return 10 * power;
}

// The time after which nothing is drawn, so that about `most` tasks are.
double last_begin(const Timeline& timeline, size_t most) {
  std::vector<double> begins;
  for (const std::vector<Span>& spans : timeline.spans)
    for (const Span& span : spans) begins.push_back(span.begin);
  if (begins.size() <= most || most == 0) return timeline.length;
  const auto at = begins.begin() + static_cast<std::ptrdiff_t>(most - 1);
  std::nth_element(begins.begin(), at, begins.end());
  return *at;
}

struct Picture {
  std::string text;

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  }
  // Not a <rect>, of which there is exactly one per task.
  void box(double x, double y, double width, double height, std::string_view fill) {
    add(R"(<path d="M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z" fill="{}"/>)", x, y, width, height, -width, fill);
  }
};

}  // namespace

std::string svg_picture(const Schedule& schedule, const Timeline& timeline, std::string_view unit, size_t most,
                        std::string_view model) {
  const double last = last_begin(timeline, most);
  double length = 0;  // of the drawn part
  size_t drawn = 0, all = 0;
  for (const std::vector<Span>& spans : timeline.spans) {
    all += spans.size();
    for (const Span& span : spans)
      if (span.begin <= last) {
        length = std::max(length, span.end);
        ++drawn;
      }
  }
  const double scale = length > 0 ? (kWidth - kLeft - kRight) / length : 0;
  // Fits the longest number, so that tasks of equal length either all show theirs or none does.
  const double number_width = kDigit * static_cast<double>(fmt::formatted_size("{}", schedule.micro_batches - 1)) + 2;
  const double top = kTop + (model.empty() ? 0 : kModel), rows = top + kRow * schedule.stages;
  const double bottom = rows + kAxis, height = bottom + (drawn < all ? 64 : 44);

  Picture p;
  p.add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" )"
        R"(font-family="sans-serif" font-size="12" fill="#222222">)",
        kWidth, height);
  const std::string title = base::escape_xml(headline(schedule, timeline, unit));
  p.add("<title>{}</title>", title);
  p.box(0, 0, kWidth, height, "#ffffff");
  p.add(R"(<text x="{:.0f}" y="26" font-size="16">{}</text>)", kLeft, title);
  if (!model.empty()) p.add(R"(<text x="{:.0f}" y="46" fill="#555555">{}</text>)", kLeft, base::escape_xml(model));
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const double y = top + kRow * stage;
    p.box(kLeft, y, length * scale, kBar, kIdle);
    p.add(R"(<text x="{:.0f}" y="{:.0f}" text-anchor="end">stage {}</text>)", kLeft - 8, y + 16, stage);
    const std::vector<Task>& tasks = schedule.tasks[static_cast<size_t>(stage)];
    const std::vector<Span>& spans = timeline.spans[static_cast<size_t>(stage)];
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto [begin, end] = spans[i];
      if (begin > last) continue;
      const int own = tasks[i].chunk / schedule.stages;
      const double shade = schedule.chunks > 1 ? 0.45 + 0.55 * own / (schedule.chunks - 1) : 1;
      const double x = kLeft + begin * scale, width = (end - begin) * scale;
      p.add(R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="{:.0f}" fill="{}" fill-opacity="{:.2f}" )"
            R"(stroke="#ffffff" stroke-width="{}"><title>{}: {:.4g} to {:.4g} {}</title></rect>)",
            x, y, width, kBar, colour(tasks[i].work), shade, width > 4 ? 1 : 0, to_string(tasks[i]), begin, end,
            base::escape_xml(unit));
      if (width >= number_width)
        p.add(R"(<text x="{:.2f}" y="{:.0f}" font-size="11" text-anchor="middle">{}</text>)", x + width / 2, y + 16,
              tasks[i].micro_batch);
    }
  }
  const double tick = length > 0 ? tick_of(length) : 1;
  for (int i = 0; i * tick <= length * (1 + 1e-9); ++i)
    p.add(R"(<path d="M{0:.2f} {1:.0f}v4" stroke="#555555"/><text x="{0:.2f}" y="{2:.0f}" text-anchor="{3}" )"
          R"(font-size="11">{4:.6g}{5}</text>)",
          kLeft + i * tick * scale, rows - kRow + kBar + 2, rows + 14, i == 0 ? "start" : "middle", i * tick,
          i == 0 ? " " + base::escape_xml(unit) : "");
  double x = kLeft;
  for (Work work : {Work::forward, Work::backward, Work::weight}) {
    if (work == Work::weight && !schedule.split) continue;
    const std::string_view name = full_name(schedule, work);
    p.box(x, bottom + 12, 16, 16, colour(work));
    p.add(R"(<text x="{:.0f}" y="{:.0f}">{}</text>)", x + 22, bottom + 24, name);
    x += 50 + 7.0 * static_cast<double>(name.size());
  }
  p.box(x, bottom + 12, 16, 16, kIdle);
  p.add(R"(<text x="{:.0f}" y="{:.0f}">idle</text>)", x + 22, bottom + 24);
  x += 50 + 7.0 * 4;
  if (schedule.chunks > 1)
    p.add(R"(<text x="{:.0f}" y="{:.0f}">darker: a later chunk of the stage</text>)", x, bottom + 24);
  if (drawn < all)
    p.add(R"(<text x="{:.0f}" y="{:.0f}">the first {} of {} tasks</text>)", kLeft, bottom + 48, drawn, all);
  p.text += "</svg>\n";
  return p.text;
}

}  // namespace kintsugi::plan

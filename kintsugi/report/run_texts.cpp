#include "kintsugi/report/run_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kintsugi/base/format.h"
#include "kintsugi/report/html.h"

namespace kintsugi::report {
namespace {

constexpr size_t kMostSteps = 40;    // of a run
constexpr size_t kMostTexts = 8;     // of a step
constexpr size_t kMostBytes = 2000;  // of a text

// Texts of one step.
using Written = std::span<const WrittenText>;

std::vector<Written> by_step(Written texts) {
  std::vector<Written> steps;
  for (size_t begin = 0, end; begin < texts.size(); begin = end) {
    end = begin + 1;
    while (end < texts.size() && texts[end].step == texts[begin].step) ++end;
    steps.push_back(texts.subspan(begin, end - begin));
  }
  return steps;
}

// At most `most`, evenly spaced, including the first and the last.
std::vector<Written> spread(const std::vector<Written>& steps, size_t most) {
  if (steps.size() <= most) return steps;
  std::vector<Written> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(steps[i * (steps.size() - 1) / (most - 1)]);
  return kept;
}

std::string beginning(const std::string& text) {
  if (text.size() <= kMostBytes) return escape_lines(text);
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return escape_lines(text.substr(0, end)) + "...";
}

std::string lines_of(Written texts) {
  std::string html;
  for (const WrittenText& text : texts.first(std::min(texts.size(), kMostTexts)))
    html += fmt::format("<p class=\"written\"><b>{}</b>{}</p>\n", beginning(text.prompt), beginning(text.text));
  if (texts.size() > kMostTexts)
    html += html_paragraph(fmt::format("{} more are in metrics.jsonl.", texts.size() - kMostTexts));
  return html;
}

std::string step_name(Written texts) {
  return "step " + base::group_digits(std::llround(texts[0].step));
}

// The texts of the last step, and the others collapsed, latest first.
std::string of_run(const ReportRun& run) {
  const std::vector<Written> all = by_step(run.metrics.texts), shown = spread(all, kMostSteps);
  std::string html = html_paragraph("After " + step_name(shown.back()) + ":") + lines_of(shown.back());
  if (shown.size() == 1) return html;
  std::string earlier;
  for (size_t i = shown.size() - 1; i-- > 0;)
    earlier += html_paragraph("After " + step_name(shown[i]) + ":") + lines_of(shown[i]);
  if (shown.size() < all.size())
    earlier += html_paragraph(fmt::format("{} of the {} steps with texts; all are in metrics.jsonl.", shown.size(),
                                          base::group_digits(static_cast<int64_t>(all.size()))));
  return html + html_details(fmt::format("Earlier: from {} back to {}", step_name(shown[shown.size() - 2]),
                                         step_name(shown.front())),
                             earlier);
}

}  // namespace

std::string html_texts(std::span<const ReportRun> runs) {
  std::string body;
  for (const ReportRun& run : runs) {
    if (run.metrics.texts.empty()) continue;
    if (runs.size() > 1) body += html_heading(run.name);
    body += of_run(run);
  }
  if (body.empty()) return "";
  return html_section("Texts written on the way", html_paragraph("What followed each prompt, which is bold.") + body);
}

}  // namespace kintsugi::report

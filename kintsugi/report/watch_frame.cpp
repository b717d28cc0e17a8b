#include "kintsugi/report/watch_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <tuple>

#include "kintsugi/base/format.h"
#include "kintsugi/report/text_chart.h"
#include "kintsugi/report/thin.h"

namespace kintsugi::report {
namespace {

constexpr int kTwoColumns = 68;     // minimum columns for a chart next to the loss
constexpr int kLeastChart = 6;      // rows
constexpr int kFewRows = 16;        // below this, the header shows only the essentials
constexpr size_t kMostNoisy = 200;  // maximum number of values to show without smoothing
constexpr size_t kMeanPoints =
    50;                         // number of points of the moving mean, each the mean over an equal part of the values
constexpr double kFall = 0.1;   // fraction of the steps that does not count for the scale
constexpr size_t kRecent = 20;  // steps over which to average for the remaining time
constexpr double kLongQuiet = 60;   // seconds without a line after which a run may have ended,
constexpr double kQuietSteps = 20;  // and steps
constexpr size_t kMostRanks = 8;    // maximum number of ranks to show individually
constexpr int kRankColumns = 38;    // per rank
constexpr int kRankBar = 14;
constexpr size_t kErrorRows = 3;  // of the error that ended a run

// As drawn: the moving mean if there are many values.
Measure smooth(const Measure& m) {
  if (m.values.size() <= kMostNoisy) return m;
  return {m.steps, moving_mean(m.values, m.values.size() / kMeanPoints / 2)};
}

double last_of(const Measure& m) {
  return m.values.empty() ? NAN : m.values.back();
}

// Joins as many parts as fit, from the first, separated by two spaces.
std::string fitting(const std::vector<std::string>& parts, int columns) {
  std::string line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string longer = line.empty() ? part : line + "  " + part;
    if (columns_of(longer) <= columns) line = longer;
  }
  return line;
}

// Wraps the beginning to at most `most` lines.
std::vector<std::string> wrapped(std::string_view text, int columns, size_t most) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < most) {
    const std::string_view part = first_columns(text, std::max(2, columns));
    lines.emplace_back(part);
    text.remove_prefix(part.size());
  }
  return lines;
}

std::string digits(int64_t number) {
  return base::group_digits(number);
}

std::string fixed(double value) {
  return std::isfinite(value) ? base::format_loss(value) : "not finite";
}

std::string named(std::string_view name, const Measure& m, std::string (*text)(double)) {
  return m.values.empty() ? "" : fmt::format("{} {}", name, text(m.values.back()));
}

// Seconds per step, over the last ones.
double step_seconds(const MetricsTable& metrics) {
  const std::vector<double>& all = metrics.measure("seconds").values;
  double sum = 0, count = 0;
  for (const double seconds : std::span(all).last(std::min(all.size(), kRecent)))
    if (std::isfinite(seconds)) sum += seconds, ++count;
  return count > 0 ? sum / count : 0;
}

// How long all others wait for a rank in a step, in seconds.
double awaited(const profile::StepProfile& measured, int rank) {
  double sum = 0;
  for (const profile::RankProfile& r : measured.of_ranks)
    for (const profile::WaitedFor& w : r.waits)
      if (w.rank == rank) sum += w.seconds;
  return sum;
}

// The ranks to show: all, or those waited for most; by number.
std::vector<const profile::RankProfile*> shown_ranks(const profile::StepProfile& measured) {
  std::vector<const profile::RankProfile*> ranks;
  for (const profile::RankProfile& r : measured.of_ranks) ranks.push_back(&r);
  if (ranks.size() > kMostRanks) {
    std::ranges::stable_sort(ranks, std::ranges::greater(), [&](const auto* r) { return awaited(measured, r->rank); });
    ranks.resize(kMostRanks);
    std::ranges::sort(ranks, {}, &profile::RankProfile::rank);
  }
  return ranks;
}

class Frame {
 public:
  Frame(const WatchedRun& run, const WatchLook& look)
      : run_(run), m_(*run.metrics), look_(look), canvas_(look.columns, look.rows, look.characters) {}

  std::vector<std::string> draw() {
    const bool small = look_.rows < kFewRows;
    draw_head(small);
    const int end = look_.rows - (look_.last_row.empty() || small ? 0 : 1);
    if (end < look_.rows) canvas_.write(end, 0, look_.last_row, Ink::soft);
    if (m_.num_steps == 0) {
      canvas_.write(row_, 0, "no step yet: there is nothing to draw", Ink::soft);
    } else {
      draw_body(end);
    }
    std::vector<std::string> lines = canvas_.lines(look_.colour);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

 private:
  bool done() const { return run_.steps > 0 && m_.last_step >= run_.steps; }
  bool ended() const { return done() || !run_.ended.empty(); }
  bool long_quiet() const {
    return !ended() && run_.quiet_seconds > std::max(kLongQuiet, kQuietSteps * step_seconds(m_));
  }

  std::string state() const {
    if (!run_.note.empty()) return run_.note;
    if (!run_.error.empty()) return run_.ended;
    if (done()) return "done";
    if (!run_.ended.empty()) return run_.ended;
    if (long_quiet())
      return fmt::format("no line for {}: it may have ended", base::format_duration(run_.quiet_seconds));
    return m_.num_steps == 0 ? "before its first step" : "running";
  }

  void line(const std::vector<std::string>& parts, Ink ink = Ink::normal) {
    const std::string text = fitting(parts, look_.columns);
    if (!text.empty()) canvas_.write(row_++, 0, text, ink);
  }

  void draw_head(bool small) {
    const std::string what = state();
    const bool bad = !run_.note.empty() || !run_.error.empty() || long_quiet();
    const std::string_view name = run_.name;
    const int room = look_.columns - columns_of(what) - 2;
    canvas_.write(0, 0, columns_of(name) <= room || room < 8 ? std::string(name) : end_of(name, room), Ink::strong);
    canvas_.write_before(0, look_.columns, what, bad ? Ink::bad : Ink::normal);
    row_ = 1;
    for (const std::string& part : wrapped(run_.error, look_.columns, small ? 1 : kErrorRows))
      canvas_.write(row_++, 0, part, Ink::bad);
    draw_progress();
    line({named("loss", m_.measure("loss"), fixed), named("validation", m_.measure("validation_loss"), fixed), best()});
    if (!small)
      line({named("learning rate", m_.measure("learning_rate"), [](double x) { return fmt::format("{:.2e}", x); }),
            named("gradient norm", m_.measure("gradient_norm"), [](double x) { return fmt::format("{:.3g}", x); }),
            speed(), arithmetic()});
    if (small) line({speed(), arithmetic()});
    line({checkpoint(), small ? "" : saved()});
    if (!small) line({run_.ranks, memory(), others()}, Ink::soft);
  }

  // The end of a long path is the distinctive part.
  static std::string end_of(std::string_view name, int columns) {
    while (columns_of(name) > columns - 3 && !name.empty())
      name.remove_prefix(std::max<size_t>(1, base::utf8_length(name)));
    return "..." + std::string(name);
  }

  void draw_progress() {
    const auto of = static_cast<double>(std::max<int64_t>(1, run_.steps));
    const double share = std::clamp(static_cast<double>(m_.last_step) / of, 0.0, 1.0);
    const double left = static_cast<double>(run_.steps - m_.last_step) * step_seconds(m_);
    const std::string count = fmt::format("step {}/{}", digits(m_.last_step), digits(run_.steps)),
                      percent = fmt::format("{:.0f}%", std::floor(100 * share)),
                      time = ended() || m_.num_steps == 0 || long_quiet()
                                 ? ""
                                 : fmt::format("about {} left", base::format_duration(left));
    const std::string text = fitting({count, percent, time}, look_.columns);
    const int bar = std::min(40, look_.columns - columns_of(text) - 4);
    if (bar < 6) return canvas_.write(row_++, 0, text);
    const auto full = static_cast<int>(std::lround(share * bar));
    canvas_.write(row_, 0, "[");
    canvas_.write(row_, 1, std::string(static_cast<size_t>(full), '='), Ink::first);
    canvas_.write(row_, 1 + bar, "]");
    canvas_.write(row_++, bar + 4, text);
  }

  std::string best() const {
    const Measure& v = m_.measure("validation_loss");
    std::optional<size_t> best;
    for (size_t i = 0; i < v.values.size(); ++i)
      if (std::isfinite(v.values[i]) && (!best || v.values[i] < v.values[*best])) best = i;
    return best ? fmt::format("best {} at step {}", fixed(v.values[*best]), digits(std::llround(v.steps[*best]))) : "";
  }
  std::string speed() const {
    const std::vector<double>& speeds = m_.measure("tokens_per_second").values;
    return speeds.empty() ? "" : base::format_rate(speeds.back(), run_.unit + "/s");
  }
  std::string arithmetic() const {
    const Measure& share = m_.measure("peak_share");
    return last_of(share) > 0 ? fmt::format("{:.0f}% of the peak", 100 * last_of(share)) : "";
  }
  std::string memory() const {
    const double bytes = last_of(m_.measure("memory_bytes"));
    return bytes > 0 ? base::format_bytes(static_cast<uint64_t>(bytes)) + " on a rank" : "";
  }

  // When the next checkpoint is due.
  std::string checkpoint() const {
    if (done()) return "";
    if (ended())
      return run_.saved_step ? fmt::format("--resume continues after step {}", digits(*run_.saved_step))
                             : "--resume begins anew";
    std::vector<std::string> when;
    if (run_.save_every > 0)
      when.push_back("at step " + digits(std::min(run_.steps, (m_.last_step / run_.save_every + 1) * run_.save_every)));
    if (run_.save_every_minutes > 0) {
      const double since = run_.saved_step ? std::min(run_.saved_seconds, run_.begun_seconds) : run_.begun_seconds;
      const double left = 60 * run_.save_every_minutes - since;
      when.push_back(left > 0 ? fmt::format("in {}", base::format_duration(left)) : "now");
    }
    if (when.empty()) when.emplace_back("at the end");
    return "next checkpoint " + when[0] + (when.size() > 1 ? " or " + when[1] : "");
  }
  std::string saved() const {
    if (!run_.saved_step) return "none yet";
    return fmt::format("newest: step {}, {} ago", digits(*run_.saved_step), base::format_duration(run_.saved_seconds));
  }

  // Measures without a place of their own, possibly from a later version.
  std::string others() const {
    constexpr std::array<std::string_view, 9> kKnown = {"loss",    "validation_loss",   "learning_rate",
                                                        "tokens",  "tokens_per_second", "gradient_norm",
                                                        "seconds", "flops_per_second",  "memory_bytes"};
    std::string text;
    for (const auto& [key, measure] : m_.measures)
      if (std::ranges::count(kKnown, key) == 0 && key != "peak_share" && !measure.values.empty())
        text += fmt::format("{}{} {:.4g}", text.empty() ? "" : "  ", key, measure.values.back());
    return text;
  }

  void draw_body(int end) {
    constexpr int kMostText = 3, kSteps = 3;  // rows, without the heading
    const std::vector<std::string> text = text_lines(kMostText);
    const int room = end - row_ - kLeastChart - 2, wanted = text.empty() ? 0 : 1 + static_cast<int>(text.size());
    const int sample = room >= wanted ? wanted : 0, of_ranks = rank_rows();
    const int ranks = room - sample >= of_ranks ? of_ranks : 0, steps = room - sample - ranks > kSteps ? 1 + kSteps : 0;
    draw_charts(end - steps - sample - ranks);
    if (ranks > 0) draw_ranks(end - steps - sample - ranks);
    if (sample > 0) draw_text(end - steps - sample, text);
    if (steps > 0) draw_steps(end - steps, steps);
  }

  void draw_charts(int end) {
    const int rows = end - row_;
    if (rows < 3) return;
    const bool two = look_.columns >= kTwoColumns && rows >= kLeastChart;
    const int wide = two ? (look_.columns - 2) * 3 / 5 : look_.columns;
    const Measure loss = smooth(m_.measure("loss"));
    const Measure& validation = m_.measure("validation_loss");
    TextChart chart = {
        .row = row_,
        .rows = rows,
        .columns = wide,
        .title = validation.values.empty() ? "loss" : "loss, and validation (o)",
        .first_step = static_cast<double>(m_.first_step),
        .last_step = static_cast<double>(m_.last_step),
        .scale_from = static_cast<double>(m_.first_step) + kFall * static_cast<double>(m_.last_step - m_.first_step)};
    const std::array<TextCurve, 2> curves = {
        {{.measure = &loss, .ink = Ink::first}, {.measure = &validation, .ink = Ink::second, .marks = true}}};
    draw_chart(canvas_, chart, curves);
    if (!two) return;
    const std::array<std::pair<std::string_view, std::string_view>, 3> others = {
        {{"learning_rate", "learning rate"}, {"gradient_norm", "gradient norm"}, {"tokens_per_second", speed_unit_}}};
    const int each = std::max(3, rows / 3);
    chart.column = wide + 2;
    chart.columns = look_.columns - chart.column;
    chart.axis = false;
    chart.scale_from = chart.first_step;
    for (const auto& [key, title] : others) {
      if (chart.row + 3 > end) return;
      chart.rows = std::min(each, end - chart.row);
      chart.title = title;
      chart.from_zero = key != "gradient_norm";
      const Measure measure = smooth(m_.measure(key));
      const std::array<TextCurve, 1> curve = {{{.measure = &measure, .ink = Ink::first}}};
      draw_chart(canvas_, chart, curve);
      chart.row += each;
    }
  }

  // The beginning of the first text of the last step with texts, in lines.
  std::vector<std::string> text_lines(size_t most) const {
    if (m_.texts.empty()) return {};
    const WrittenText* text = &m_.texts.back();
    while (text != &m_.texts.front() && text[-1].step == text->step) --text;
    const std::string whole = text->prompt + text->text;
    std::vector<std::string> lines;
    for (size_t begin = 0; begin <= whole.size() && lines.size() < most;) {
      const size_t end = std::min(whole.find('\n', begin), whole.size());
      const std::string safe = base::one_line(std::string_view(whole).substr(begin, end - begin), 4000);
      std::vector<std::string> parts = wrapped(safe, look_.columns - 2, most - lines.size());
      if (parts.empty()) parts.emplace_back();
      std::ranges::move(parts, std::back_inserter(lines));
      begin = end + 1;
    }
    return lines;
  }

  int ranks_in_row() const { return std::max(1, (look_.columns + 2) / (kRankColumns + 2)); }
  // 0 if there is nothing to show.
  int rank_rows() const {
    if (run_.measured == nullptr || run_.measured->of_ranks.size() < 2) return 0;
    const auto shown = static_cast<int>(std::min(run_.measured->of_ranks.size(), kMostRanks));
    return 1 + (shown + ranks_in_row() - 1) / ranks_in_row();
  }

  // Each rank's time in the measured step: = computing, + transfers, . waiting for others.
  void draw_ranks(int row) {
    const profile::StepProfile& measured = *run_.measured;
    const auto straggler = std::ranges::max_element(
        measured.of_ranks, {}, [&](const profile::RankProfile& r) { return awaited(measured, r.rank); });
    const double lost = awaited(measured, straggler->rank) / (straggler->seconds * static_cast<double>(measured.ranks));
    canvas_.write(row, 0,
                  fitting({fmt::format("ranks in step {}: = computing, + transfers, . waiting", digits(measured.step)),
                           lost >= 0.005 ? fmt::format("most for rank {}: {:.0f}%", straggler->rank, 100 * lost) : ""},
                          look_.columns),
                  Ink::strong);
    const std::vector<const profile::RankProfile*> ranks = shown_ranks(measured);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto in_row = static_cast<size_t>(ranks_in_row());
      draw_rank(row + 1 + static_cast<int>(i / in_row), static_cast<int>(i % in_row) * (kRankColumns + 2), *ranks[i]);
    }
  }

  void draw_rank(int row, int column, const profile::RankProfile& r) {
    using profile::Part;
    canvas_.write(row, column + 1, fmt::format("rank {}", r.rank));
    const int begin = column + 10;
    canvas_.write(row, begin - 1, "[");
    double before = 0;
    for (const auto& [part, mark, ink] :
         {std::tuple(Part::compute, '=', Ink::first), std::tuple(Part::communication, '+', Ink::second),
          std::tuple(Part::waiting, '.', Ink::bad)}) {
      const auto at = [&](double seconds) { return static_cast<int>(std::lround(kRankBar * seconds / r.seconds)); };
      const int from = at(before), to = at(before + r.of(part));
      before += r.of(part);
      canvas_.write(row, begin + from, std::string(static_cast<size_t>(std::max(0, to - from)), mark), ink);
    }
    canvas_.write(row, begin + kRankBar, "]");
    const double waits = r.of(Part::waiting) / r.seconds;
    const auto most = std::ranges::max_element(r.waits, {}, &profile::WaitedFor::seconds);
    if (waits >= 0.005 && most != r.waits.end())
      canvas_.write(row, begin + kRankBar + 2, fmt::format("{:.0f}% for {}", 100 * waits, most->rank));
  }

  void draw_text(int row, const std::vector<std::string>& lines) {
    canvas_.write(row, 0, fmt::format("written after step {}", digits(std::llround(m_.texts.back().step))),
                  Ink::strong);
    for (const std::string& line : lines) canvas_.write(++row, 2, line);
  }

  void draw_steps(int row, int rows) {
    const std::array<std::pair<std::string_view, std::string_view>, 5> columns = {{{"loss", "loss"},
                                                                                   {"validation_loss", "validation"},
                                                                                   {"learning_rate", "learning rate"},
                                                                                   {"gradient_norm", "gradient"},
                                                                                   {"tokens_per_second", speed_unit_}}};
    const auto steps = std::span(m_.measure("loss").steps);
    const auto shown = steps.last(std::min(steps.size(), static_cast<size_t>(rows - 1)));
    int right = 9;
    canvas_.write_before(row, right, "step", Ink::strong);
    for (size_t i = 0; i < shown.size(); ++i)
      canvas_.write_before(row + 1 + static_cast<int>(i), right, digits(std::llround(shown[i])));
    for (const auto& [key, name] : columns) {
      right += 14;
      if (right > look_.columns) return;
      const Measure& m = m_.measure(key);
      canvas_.write_before(row, right, name, Ink::strong);
      for (size_t i = 0; i < shown.size(); ++i) {
        const auto at = std::ranges::lower_bound(m.steps, shown[i]);
        if (at == m.steps.end() || *at != shown[i]) continue;
        const double value = m.values[static_cast<size_t>(at - m.steps.begin())];
        canvas_.write_before(row + 1 + static_cast<int>(i), right, cell(key, value));
      }
    }
  }

  static std::string cell(std::string_view key, double value) {
    if (!std::isfinite(value)) return "not finite";
    if (key == "learning_rate") return fmt::format("{:.2e}", value);
    if (key == "gradient_norm") return fmt::format("{:.3g}", value);
    return key == "tokens_per_second" ? fmt::format("{:.0f}", value) : fixed(value);
  }

  const WatchedRun& run_;
  const std::string speed_unit_ = run_.unit + "/s";
  const MetricsTable& m_;
  const WatchLook& look_;
  TextCanvas canvas_;
  int row_ = 0;  // next free row
};

}  // namespace

std::vector<std::string> watch_frame(const WatchedRun& run, const WatchLook& look) {
  return Frame(run, look).draw();
}

}  // namespace kintsugi::report

#include "kintsugi/corpus/corpus_page.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "kintsugi/base/format.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/base/xml.h"
#include "kintsugi/report/html.h"
#include "kintsugi/report/line_chart.h"
#include "kintsugi/report/svg.h"

namespace kintsugi::corpus {
namespace {

std::string digits(uint64_t n) {
  return base::group_digits(static_cast<int64_t>(n));
}

uint64_t sum(const std::array<uint64_t, kVerdicts>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

// A horizontal bar per domain, divided by verdict.
class Bars : public report::Svg {
 public:
  static constexpr double kWidth = 760, kLeft = 120, kBar = 560, kRow = 26;

  explicit Bars(const Cleaned& cleaned)
      : Svg(kWidth, 44 + kRow * static_cast<double>(cleaned.domains.size()) + 90, 10, "bytes of text by domain") {
    constexpr const char* kColours[kVerdicts] = {"#4c9f70", "#c9c9c9", "#a8a8a8", "#8ecae6", "#ffd166",
                                                 "#f4a261", "#e76f51", "#d4a5a5", "#b08968", "#cdb4db",
                                                 "#a2d2ff", "#9d0208", "#577590", "#8d99ae"};
    double y = 34;
    for (const Counts& domain : cleaned.domains) {
      const auto total = static_cast<double>(sum(domain.bytes));
      add(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, y + 14, base::escape_xml(domain.domain));
      double x = kLeft;
      for (size_t v = 0; v < kVerdicts && total > 0; ++v) {
        const double width = kBar * static_cast<double>(domain.bytes[v]) / total;
        if (width <= 0) continue;
        add(R"(<rect x="{:.2f}" y="{}" width="{:.2f}" height="18" fill="{}"><title>{}: {} documents, {}</title></rect>)",
            x, y, width, kColours[v], name_of(static_cast<Verdict>(v)), digits(domain.documents[v]),
            base::format_bytes(domain.bytes[v]));
        x += width;
      }
      add(R"(<text x="{}" y="{}">{}</text>)", kLeft + kBar + 8, y + 14, base::format_bytes(sum(domain.bytes)));
      y += kRow;
    }
    double x = kLeft;
    y += 14;
    for (size_t v = 0; v < kVerdicts; ++v) {
      uint64_t documents = 0;
      for (const Counts& domain : cleaned.domains) documents += domain.documents[v];
      if (documents == 0) continue;
      const std::string_view name = name_of(static_cast<Verdict>(v));
      const double width = 24 + 7 * static_cast<double>(name.size());
      if (x + width > kWidth) {
        x = kLeft;
        y += 20;
      }
      add(R"(<rect x="{}" y="{}" width="12" height="12" fill="{}"/>)", x, y - 10, kColours[v]);
      add(R"(<text x="{}" y="{}">{}</text>)", x + 16, y, name);
      x += width;
    }
  }
};

std::string counts_table(const Cleaned& cleaned) {
  report::Table table = {.align = "l", .head = {"documents"}};
  for (const Counts& domain : cleaned.domains) {
    table.align += "rr";
    table.head.push_back(domain.domain);
    table.head.push_back("text");
  }
  const auto row = [&](std::string name, auto&& count, auto&& bytes) {
    std::vector<std::string> cells = {std::move(name)};
    for (const Counts& domain : cleaned.domains) {
      cells.push_back(digits(count(domain)));
      cells.push_back(base::format_bytes(bytes(domain)));
    }
    table.rows.push_back(std::move(cells));
  };
  row(
      "read", [](const Counts& c) { return sum(c.documents); }, [](const Counts& c) { return sum(c.bytes); });
  for (size_t v = 0; v < kVerdicts; ++v) {
    uint64_t all = 0;
    for (const Counts& domain : cleaned.domains) all += domain.documents[v];
    if (all == 0 && v > 0) continue;
    row(
        v == 0 ? "kept" : fmt::format("dropped: {}", name_of(static_cast<Verdict>(v))),
        [v](const Counts& c) { return c.documents[v]; }, [v](const Counts& c) { return c.bytes[v]; });
  }
  table.wide = cleaned.domains.size() > 3;
  return report::html_table(table);
}

std::string lengths_chart(const Cleaned& cleaned) {
  report::Chart chart = {.heading = "length of the kept documents",
                         .x_name = "bytes, log2",
                         .y_name = "documents",
                         .curves = {},
                         .from_zero = true};
  int colour = 0;
  for (const Counts& domain : cleaned.domains) {
    report::Curve curve = {.name = domain.domain, .colour = colour++, .points = {}, .dots = true};
    for (size_t i = 0; i < domain.lengths.size(); ++i)
      curve.points.push_back({static_cast<double>(i), static_cast<double>(domain.lengths[i])});
    if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
  }
  return chart.curves.empty() ? "" : report::html_chart(chart);
}

std::string bands_chart(const Bands& bands) {
  report::Curve curve = {.name = "", .points = {}};
  for (int i = 0; i <= 100; ++i) curve.points.push_back({i / 100.0, bands.probability(i / 100.0)});
  return report::html_chart(
      {.heading = "near duplicates",
       .note = fmt::format("Probability that two documents are compared equal: {} bands of {} rows.", bands.bands,
                           bands.rows),
       .x_name = "Jaccard similarity",
       .y_name = "probability",
       .curves = {curve},
       .from_zero = true});
}

}  // namespace

std::string html_of(const Cleaned& cleaned, const Spec& spec, const std::string& title) {
  std::string body = report::html_section(
      "Documents", counts_table(cleaned) +
                       report::html_picture(Bars(cleaned).take(), "Bytes of text: kept, and dropped by reason."));
  body += report::html_section("Lengths", lengths_chart(cleaned));
  if (cleaned.bands.bands > 0) body += report::html_section("Duplicates", bands_chart(cleaned.bands));
  report::Table table = {.align = "lll", .head = {"domain", "format", "paths"}};
  for (const Source& source : spec.sources)
    table.rows.push_back(
        {source.domain, std::string(name_of(source.format)), fmt::format("{}", fmt::join(source.paths, ", "))});
  body += report::html_section("Sources", report::html_table(table));
  return report::html_page(title, body);
}

std::string json_of(const Cleaned& cleaned) {
  base::JsonWriter out(2);
  out.object([&] {
    out.key("domains").object([&] {
      for (const Counts& domain : cleaned.domains)
        out.key(domain.domain).object([&] {
          for (size_t v = 0; v < kVerdicts; ++v)
            out.key(name_of(static_cast<Verdict>(v))).object([&] {
              out.key("documents").value(domain.documents[v]);
              out.key("bytes").value(domain.bytes[v]);
            });
          out.key("bad lines").value(domain.bad_lines);
        });
    });
    out.key("bands").value(cleaned.bands.bands);
    out.key("rows").value(cleaned.bands.rows);
  });
  return out.text() + "\n";
}

std::string text_of(const Cleaned& cleaned) {
  std::string text;
  for (const Counts& domain : cleaned.domains) {
    text += fmt::format("{:<12} {} of {} documents kept, {} of {}\n", domain.domain, digits(domain.documents[0]),
                        digits(sum(domain.documents)), base::format_bytes(domain.bytes[0]),
                        base::format_bytes(sum(domain.bytes)));
    for (size_t v = 1; v < kVerdicts; ++v)
      if (domain.documents[v] > 0)
        text += fmt::format("  {:<22} {:>22}  {:>10}\n", name_of(static_cast<Verdict>(v)),
                            base::counted(static_cast<int64_t>(domain.documents[v]), "document"),
                            base::format_bytes(domain.bytes[v]));
    if (domain.bad_lines > 0)
      text +=
          fmt::format("  {:<22} {:>12}; the first: {}\n", "lines skipped", digits(domain.bad_lines), domain.a_bad_line);
  }
  return text;
}

}  // namespace kintsugi::corpus

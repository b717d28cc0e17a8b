#include "kintsugi/report/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/report/html.h"

namespace kintsugi::report {
namespace {

constexpr size_t kMostColumns = 20, kMostConfusions = 30;
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

std::string percent(int64_t part, int64_t of) {
  return fmt::format("{:.2f}%", 100 * static_cast<double>(part) / static_cast<double>(of));
}

std::string html_sample(const PredictedImage& sample) {
  const PredictedClass& best = sample.best.front();
  const bool wrong = sample.label >= 0 && sample.label != best.number;
  std::string text = fmt::format("{} ({:.0f}%)", best.number, 100 * best.probability);
  if (wrong) text += fmt::format(", label {}", sample.label);
  return fmt::format("<figure{}><img alt=\"\" src=\"data:image/bmp;base64,{}\"><figcaption>{}</figcaption></figure>\n",
                     wrong ? " class=\"wrong\"" : "", sample.bitmap, escape_html(text));
}

std::string matrix(const Predictions& p) {
  Table table = {.align = "r", .head = {"label"}, .wide = true};
  for (size_t c = 0; c < p.counts.size(); ++c) {
    table.align += 'r';
    table.head.push_back(fmt::format("{}", c));
  }
  table.align += 'r';
  table.head.emplace_back("recall");
  for (size_t label = 0; label < p.counts.size(); ++label) {
    const std::vector<int64_t>& row = p.counts[label];
    const int64_t images = std::accumulate(row.begin(), row.end(), int64_t{0});
    if (images == 0) continue;
    std::vector<std::string> cells = {fmt::format("{}", label)};
    for (const int64_t n : row) cells.push_back(n > 0 ? base::group_digits(n) : "");
    cells.push_back(percent(row[label], images));
    table.rows.push_back(std::move(cells));
  }
  return html_table(table);
}

// The most frequent confusions of many classes.
std::string confusions(const Predictions& p) {
  struct Confused {
    size_t label, predicted;
    int64_t count;
  };
  std::vector<Confused> list;
  for (size_t label = 0; label < p.counts.size(); ++label)
    for (size_t c = 0; c < p.counts[label].size(); ++c)
      if (c != label && p.counts[label][c] > 0) list.push_back({label, c, p.counts[label][c]});
  std::ranges::stable_sort(list, std::greater(), &Confused::count);
  if (list.size() > kMostConfusions) list.resize(kMostConfusions);
  Table table = {.align = "rrr", .head = {"label", "predicted", "images"}};
  for (const Confused& c : list)
    table.rows.push_back({fmt::format("{}", c.label), fmt::format("{}", c.predicted), base::group_digits(c.count)});
  return list.empty() ? "" : html_table(table);
}

}  // namespace

std::string write_predictions(const Predictions& p) {
  base::JsonWriter out;
  out.object([&] {
    out.key("checkpoint").value(base::one_line(p.checkpoint, 4 * p.checkpoint.size() + 1));
    out.key("images").value(base::one_line(p.images, 4 * p.images.size() + 1));
    out.key("labelled").value(p.labelled).key("first").value(p.first).key("five").value(p.five);
    out.key("counts").list([&] {
      for (const std::vector<int64_t>& row : p.counts)
        out.list([&] {
          for (const int64_t n : row) out.value(n);
        });
    });
    out.key("samples").list([&] {
      for (const PredictedImage& sample : p.samples)
        out.object([&] {
          out.key("label").value(sample.label);
          out.key("best").list([&] {
            for (const PredictedClass& c : sample.best)
              out.object([&] { out.key("class").value(c.number).key("probability").value(c.probability); });
          });
          out.key("bitmap").value(sample.bitmap);
        });
    });
  });
  return out.text() + "\n";
}

Predictions read_predictions(std::string_view name, std::string_view text) {
  const auto json = base::Json::parse("report", name, text);
  Predictions p = {.checkpoint = std::string(json.at("checkpoint").text()),
                   .images = std::string(json.at("images").text()),
                   .labelled = json.at("labelled").whole(),
                   .first = json.at("first").whole(),
                   .five = json.at("five").whole()};
  if (p.first > p.five || p.five > p.labelled) json.at("five").refuse("from \"first\" to \"labelled\"");
  const base::Json counts = json.at("counts");
  for (const base::Json& row : counts.list()) {
    if (row.list().size() != counts.list().size()) row.refuse("a list with a number for each class");
    std::vector<int64_t>& to = p.counts.emplace_back();
    for (const base::Json& n : row.list()) to.push_back(n.whole(0, int64_t{1} << 40));
  }
  for (const base::Json& sample : json.at("samples").list()) {
    PredictedImage& to = p.samples.emplace_back();
    to.label = sample.at("label").whole(-1);
    for (const base::Json& c : sample.at("best").list())
      to.best.push_back({c.at("class").whole(), c.at("probability").number()});
    if (to.best.empty()) sample.at("best").refuse("a list of classes");
    to.bitmap = sample.at("bitmap").text();
    if (to.bitmap.find_first_not_of(kBase64) != std::string::npos) sample.at("bitmap").refuse("base64");
  }
  return p;
}

std::string html_predictions(const Predictions& p) {
  std::string about = fmt::format("{}, classified by {}", p.images, p.checkpoint);
  if (p.labelled > 0)
    about += fmt::format(": top-1 {}, top-5 {} of {} images", percent(p.first, p.labelled), percent(p.five, p.labelled),
                         base::group_digits(p.labelled));
  std::string html = html_paragraph(about + ".");
  if (!p.samples.empty()) {
    html += "<div class=\"samples\">\n";
    for (const PredictedImage& sample : p.samples) html += html_sample(sample);
    html += "</div>\n";
  }
  if (p.labelled == 0) return html;
  const bool whole = p.counts.size() <= kMostColumns;
  html += html_heading(whole ? "Confusion matrix" : "Most frequent confusions");
  return html + (whole ? matrix(p) : confusions(p));
}

}  // namespace kintsugi::report

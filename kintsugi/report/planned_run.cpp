#include "kintsugi/report/planned_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/format.h"
#include "kintsugi/program/communication.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/stage_words.h"
#include "kintsugi/report/html.h"
#include "kintsugi/report/memory_picture.h"

namespace kintsugi::report {
namespace {

using program::Program;

constexpr size_t kMostSent = 40;  // rows of a table of what is sent

std::string bytes_text(double bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes + 0.5));
}

std::string stages_table(const PlannedRun& planned) {
  Table table = {.align = "rlrl", .head = {"stage", "ranks", "parameters", "holds"}};
  for (const Program& p : planned.stages) {
    const program::ModelShare share = program::model_share(p);
    table.rows.push_back({fmt::format("{}", p.stage), program::list_of(program::ranks_of(p)),
                          base::group_digits(share.parameters),
                          program::layers_in_words(share.layers, planned.layers)});
  }
  return html_table(table);
}

std::string memory_table(const PlannedRun& planned) {
  std::vector<program::MemoryTable> tables;
  for (const Program& p : planned.stages) tables.push_back(program::memory_table(p));
  Table table = {.align = "l" + std::string(tables.size(), 'r'), .head = {"bytes of a rank"}};
  for (const Program& p : planned.stages) table.head.push_back(fmt::format("stage {}", p.stage));
  const auto add_row = [&](std::string_view name, auto&& bytes) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.emplace_back(name);
    for (size_t i = 0; i < tables.size(); ++i) row.push_back(bytes_text(static_cast<double>(bytes(i))));
  };
  for (const program::MemoryPart& part : program::memory_parts())
    if (part.always || std::ranges::any_of(tables, [&](const auto& t) { return t.*part.bytes > 0; }))
      add_row(part.name, [&](size_t i) { return tables[i].*part.bytes; });
  add_row("total", [&](size_t i) { return planned.stages[i].bytes(); });
  if (std::ranges::any_of(planned.stages, [](const Program& p) { return p.file_bytes > 0; }))
    add_row("in its file", [&](size_t i) { return planned.stages[i].file_bytes; });
  table.marked.assign(table.rows.size(), false);
  return html_table(table);
}

std::string memory_of(const PlannedRun& planned) {
  const Program& most = *std::ranges::max_element(planned.stages, {}, [](const Program& p) { return p.bytes(); });
  std::string caption = planned.stages.size() == 1 ? "" : fmt::format("Of stage {}, which needs most. ", most.stage);
  caption += planned.limit_bytes > 0
                 ? fmt::format("The limit of a rank is {}, {}.", bytes_text(static_cast<double>(planned.limit_bytes)),
                               planned.limit_source)
                 : "The limit of a rank is not known.";
  return memory_table(planned) + html_picture(memory_picture(most, "Memory over a step", planned.limit_bytes), caption);
}

std::string sent_table(const Program& p) {
  const std::vector<program::Traffic> all = program::traffic(p, program::Step::train);
  Table table = {.align = "llllrrrl", .head = {"value", "kind", "over", "when", "a call", "calls", "a step", "why"}};
  double bytes = 0, bytes_left_out = 0;
  int64_t calls = 0, calls_left_out = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const program::Traffic& t = all[i];
    bytes += t.total();
    calls += t.calls;
    if (i >= kMostSent) {
      bytes_left_out += t.total();
      calls_left_out += t.calls;
      continue;
    }
    table.rows.push_back({t.value, std::string(name_of(t.kind)), t.axes, std::string(name_of(t.phase)),
                          bytes_text(t.bytes), base::group_digits(t.calls), bytes_text(t.total()), t.reason});
  }
  if (all.size() > kMostSent)
    table.rows.push_back({fmt::format("{} more", all.size() - kMostSent), "", "", "", "",
                          base::group_digits(calls_left_out), bytes_text(bytes_left_out), ""});
  table.rows.push_back({"all", "", "", "", "", base::group_digits(calls), bytes_text(bytes), ""});
  return html_table(table);
}

std::string sent_of(const PlannedRun& planned) {
  std::string html;
  for (const Program& p : planned.stages) {
    const bool none = program::traffic(p, program::Step::train).empty();
    if (planned.stages.size() > 1) html += fmt::format("<h4>Stage {}</h4>\n", p.stage);
    html += none ? html_paragraph("Nothing is sent.") : sent_table(p);
  }
  return html;
}

}  // namespace

std::string html_planned(const PlannedRun& planned) {
  std::string html = html_heading("Layout") + html_lines(planned.plan) + stages_table(planned) +
                     html_heading("Memory") + memory_of(planned);
  if (planned.stages.size() > 1)
    html += html_heading("Schedule, as planned") + html_picture(planned.schedule_svg, planned.schedule);
  return html + html_heading("What each rank sends in a step") + sent_of(planned);
}

}  // namespace kintsugi::report

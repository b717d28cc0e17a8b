#include "kintsugi/report/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

constexpr size_t kMostSent = 40;  // maximum number of rows in the communication table

std::string bytes_text(double bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes + 0.5));
}

// Each axis, with the group of rank 0 as an example.
std::string mesh_table(const mesh::Mesh& mesh) {
  Table table = {.align = "lrl", .head = {"axis", "size", "ranks along it, from rank 0"}};
  for (const mesh::Axis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    const std::vector<mesh::Factor> factors = mesh.expand(std::array{axis.name});
    table.rows.push_back({axis.name, base::group_digits(axis.size), program::list_of(mesh.group(0, factors))});
  }
  return table.rows.empty() ? "" : html_table(table);
}

std::string stages_table(const PlannedRun& planned) {
  Table table = {.align = "llrl", .head = {"stage", "ranks", "parameters", "holds"}};
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
  return html_table(table);
}

std::string memory_of(const PlannedRun& planned) {
  const Program& most = *std::ranges::max_element(planned.stages, {}, [](const Program& p) { return p.bytes(); });
  std::string caption = planned.stages.size() == 1 ? "" : fmt::format("Of stage {}, which needs most. ", most.stage);
  caption += planned.limit_bytes > 0
                 ? fmt::format("The limit of a rank is {}, {}.", bytes_text(static_cast<double>(planned.limit_bytes)),
                               planned.limit_source)
                 : fmt::format("The limit of a rank is not known: {}.", planned.limit_source);
  return memory_table(planned) + html_picture(memory_picture(most, "Memory over a step", planned.limit_bytes), caption);
}

// Excludes receives, which match others' sends.
std::vector<program::Traffic> sent(const Program& p) {
  std::vector<program::Traffic> all = program::traffic(p, program::Step::train);
  std::erase_if(all, [](const program::Traffic& t) { return t.bytes <= 0; });
  return all;
}

// The sum of several rows.
struct Sent {
  int64_t calls = 0;
  double bytes = 0;

  void add(const program::Traffic& t) {
    calls += t.calls;
    bytes += t.total();
  }
};

std::string sent_table(const std::vector<program::Traffic>& all) {
  Table table = {
      .align = "llllrrrl", .head = {"value", "kind", "over", "when", "a call", "calls", "a step", "why"}, .wide = true};
  Sent sum, rest;
  for (size_t i = 0; i < all.size(); ++i) {
    const program::Traffic& t = all[i];
    sum.add(t);
    if (i >= kMostSent)
      rest.add(t);
    else
      table.rows.push_back({t.value, std::string(name_of(t.kind)), t.axes, std::string(name_of(t.phase)),
                            bytes_text(t.bytes), base::group_digits(t.calls), bytes_text(t.total()), t.reason});
  }
  const auto add_sum = [&](std::string name, const Sent& s) {
    table.rows.push_back({std::move(name), "", "", "", "", base::group_digits(s.calls), bytes_text(s.bytes), ""});
  };
  if (rest.calls > 0) add_sum(fmt::format("{} more", all.size() - kMostSent), rest);
  add_sum("all", sum);
  return html_table(table);
}

// Expands the first of several stages.
std::string sent_of(const PlannedRun& planned) {
  std::string html;
  for (const Program& p : planned.stages) {
    const std::vector<program::Traffic> all = sent(p);
    const std::string table = all.empty() ? html_paragraph("Nothing is sent.") : sent_table(all);
    Sent sum;
    for (const program::Traffic& t : all) sum.add(t);
    const std::string summary =
        fmt::format("Stage {}: {} in {} calls", p.stage, bytes_text(sum.bytes), base::group_digits(sum.calls));
    html += planned.stages.size() == 1 ? table : html_details(summary, table, p.stage == 0);
  }
  return html;
}

}  // namespace

std::string html_planned(const PlannedRun& planned, bool with_schedule) {
  std::string html = html_heading("Layout") + html_lines(planned.plan) + mesh_table(planned.stages[0].mesh) +
                     stages_table(planned) + html_heading("Memory") + memory_of(planned);
  if (with_schedule && planned.stages.size() > 1)
    html += html_heading("Schedule, as planned") + html_picture(planned.schedule_svg, planned.schedule);
  return html + html_heading("What each rank sends in a step") + sent_of(planned);
}

}  // namespace kintsugi::report

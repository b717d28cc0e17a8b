#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>

#include "app/outputs.h"
#include "app/ranks.h"
#include "app/report_run.h"
#include "app/standard_streams.h"
#include "app/terminal.h"
#include "app/verbs.h"
#include "app/version.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/report/run_page.h"

namespace kintsugi::app {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::filesystem::path output;
};

std::string kintsugi_and_version() {
  const std::string text = version_text();
  return text.substr(0, text.find('\n'));
}

void run(const ReportOptions& options) {
  const std::filesystem::path output =
      options.output.empty() ? std::filesystem::path(options.runs[0]) / "report.html" : options.output;
  const std::array<base::Output, 1> outputs = {{{"--output", output}}};
  std::vector<report::ReportRun> runs;
  int64_t steps = 0;
  ProgressLine progress;
  for (const std::string& folder : options.runs) {
    if (progress.terminal())
      progress.update(fmt::format("reading and planning {} of {}: {}", runs.size() + 1, options.runs.size(), folder));
    ReadRun read = read_report_run(folder);
    require_outputs("report", outputs, read.files);
    steps += read.run.metrics.num_steps;
    runs.push_back(std::move(read.run));
  }
  progress.finish();
  const std::string page = report::run_page(runs, kintsugi_and_version());
  base::write_output(output, page);
  for (const report::ReportRun& run : runs)
    for (const std::string& warning : report::warnings_of(run)) write_warning(run.name + ": " + warning);
  std::error_code error;
  if (!std::filesystem::equivalent(output, "/dev/stdout", error))
    write_out("{}: {} run{}, {} step{}, {}\n", output, runs.size(), runs.size() == 1 ? "" : "s",
              base::group_digits(steps), steps == 1 ? "" : "s", base::format_bytes(page.size()));
  require_printed();
}

}  // namespace

void add_report(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("report", "Writes an HTML page about runs: curves, settings, layout, memory");
  const auto options = std::make_shared<ReportOptions>();
  verb.texts("runs", options->runs, "Folders of runs, compared on one page").required();
  verb.text("-o,--output", options->output, "Output file; default: report.html in the folder of the first run")
      .type_name("FILE");
  verb.run([options] {
    require_one_process("report");
    run(*options);
  });
}

}  // namespace kintsugi::app

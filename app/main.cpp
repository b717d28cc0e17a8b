#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/stack.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"

namespace {

// Prints warnings on stderr like errors, in the same form: the output on stdout may be read by other programs.
class WarningSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto level = spdlog::level::to_string_view(message.level);
    kintsugi::app::write_err("{}: {}\n", std::string_view(level.data(), level.size()),
                             kintsugi::base::one_line({message.payload.data(), message.payload.size()}, SIZE_MAX));
  }
  void flush_() override { std::fflush(stderr); }
};

void log_to_stderr() {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("kintsugi", std::make_shared<WarningSink>()));
}

int run(int argc, char** argv) {
  using namespace kintsugi::app;
  log_to_stderr();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write error, not the end of the process
  // The verbs, in the order of the help page.
  constexpr std::array<AddVerb, 32> kVerbs = {
      add_prepare,  add_new,      add_check,   add_plan,  add_search, add_scaling, add_devices,    add_bench,
      add_train,    add_job,      add_launch,  add_sweep, add_status, add_watch,   add_report,     add_profile,
      add_scale,    add_generate, add_chat,    add_serve, add_embed,  add_probe,   add_classify,   add_predict,
      add_evaluate, add_compare,  add_explain, add_show,  add_import, add_export,  add_completion, add_man};
  Command command(kVerbs);
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  return command.run(args, std::cout, std::cerr);
}

}  // namespace

int main(int argc, char** argv) {
  kintsugi::app::open_missing_streams();
  try {
    return kintsugi::app::with_stack([&] { return run(argc, argv); });
  } catch (const std::bad_alloc&) {  // before the command could run
    std::cerr << "error: " << kintsugi::base::kNoMemory << std::endl;
    return 1;
  }
}

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/terminal.h"
#include "app/verbs.h"
#include "app/watch_screen.h"
#include "app/watched_run.h"

namespace kintsugi::app {
namespace {

constexpr double kLookSeconds = 0.5;  // between two looks at the files

struct WatchOptions {
  std::filesystem::path folder;
  bool plain = false, once = false;
};

// Whether the terminal uses Unicode, by the first of these that is set, as in setlocale.
bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string text = value;
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text.find("UTF-8") != std::string::npos || text.find("UTF8") != std::string::npos;
  }
  return false;
}

// no-color.org: set, and not empty.
bool wants_no_colour() {
  const char* value = std::getenv("NO_COLOR");
  return value && *value;
}

report::WatchLook look_of(const WatchOptions& o, bool terminal) {
  const bool plain = o.plain || !terminal;
  const ScreenSize size = screen_size();
  return {.columns = size.columns,
          .rows = size.rows,
          .characters = plain || !speaks_unicode() ? report::Characters::ascii : report::Characters::unicode,
          .colour = !plain && !wants_no_colour()};
}

void run_watch(const WatchOptions& o) {
  WatchedFolder folder(o.folder);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  if (o.once || !terminal) {
    std::string text;
    for (const std::string& line : watch_frame(folder.look(), look_of(o, terminal))) text += line + "\n";
    return print_at_once(text);
  }
  const StopSignals signals(StopSignals::Which::of_terminal);
  WatchScreen screen;
  for (double looked = -1; StopSignals::count == 0;) {
    if (steady_seconds() - looked >= kLookSeconds) {
      looked = steady_seconds();
      report::WatchLook look = look_of(o, terminal);
      look.last_row = "q ends";
      screen.draw(watch_frame(folder.look(), look), look.columns, look.rows);
    }
    const char key = screen.key(0.1);
    if (key == 'q' || key == 'Q') return;
  }
}

}  // namespace

void add_watch(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("watch", "Shows the progress of a run in the terminal");
  const auto o = std::make_shared<WatchOptions>();
  verb.text("run", o->folder, "The folder of a run ([train] folder)").required();
  verb.flag("--plain", o->plain, "ASCII, without colours");
  verb.flag("--once", o->once, "Print what there is now, and end; so does a pipe");
  verb.footer("q or Ctrl-C ends. NO_COLOR in the environment leaves colours out.");
  verb.run([o] { run_watch(*o); });
}

}  // namespace kintsugi::app

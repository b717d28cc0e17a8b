// Where each value of a configuration came from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::config {

struct Origin {
  enum class Kind { standard, derived, named_size, folder, file, set, saved };
  Kind kind = Kind::standard;
  std::string detail;  // the rule, the name of the size or folder, "run.toml:7", or an option other than --set

  // "default", "derived: heads", "size gpt2", "folder llama", "run.toml:7", "--set", "saved in the run"
  std::string text() const;
  bool given() const { return kind == Kind::file || kind == Kind::set; }
};

// The values of run.toml, a named size or folder, and --set, the rest at its defaults; origins by index in keys().
struct Given {
  Settings settings;
  std::vector<Origin> origins;
  const Catalog* catalog = nullptr;        // of the models that it was read with
  std::vector<std::string> warnings = {};  // one line each

  const Origin& origin(std::string_view full_name) const;
  // "model.heads = 12 (size gpt2)"; the origin is left out if the user gave the value.
  std::string say(std::string_view full_name) const;
};

// The same with every derived value filled in and all of it checked.
struct Resolved : Given {
  std::vector<std::string> machine_warnings = {};  // those that matter only where the run is on this machine
};

}  // namespace kintsugi::config

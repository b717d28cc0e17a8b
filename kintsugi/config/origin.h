// The origin of each value of a configuration.
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

// The values given by run.toml, a named size or folder, and --set, with defaults for the rest; origins are indexed as
// keys().
struct Given {
  Settings settings;
  std::vector<Origin> origins;
  const Catalog* catalog = nullptr;        // the catalog used for reading
  std::vector<std::string> warnings = {};  // one line each

  const Origin& origin(std::string_view full_name) const;
  // "model.heads = 12 (size gpt2)"; omits the origin if the user gave the value.
  std::string say(std::string_view full_name) const;
};

// A configuration with all values derived and checked.
struct Resolved : Given {
  std::vector<std::string> machine_warnings = {};  // relevant only if the run is on this machine
};

}  // namespace kintsugi::config

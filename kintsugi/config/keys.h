// The one list of all keys of run.toml. Parsing, checks, errors, help, the documentation's test, the saved
// configuration and the rules of resume all follow from it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/allowed.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/config/value.h"

namespace kintsugi::config {

// What a resumed run may do with a key.
enum class Resume {
  fixed,  // must be as it was saved: another value would be another run
  free,   // may change
  kept,   // may change if it is given; if it is derived, the saved value is kept
  held,   // if it is given, it must be as it was saved; if it is derived, the saved value is kept
  moved,  // names files: their paths may change, their content may not, which the fingerprints of the data tell
};

struct Key {
  std::string_view section;
  std::string_view name;
  Allowed allowed;
  std::function<Value(const Settings&)> get;
  std::function<void(Settings&, const Value&)> set;
  Resume resume;
  std::string_view rule;    // what the default stands for, if it stands for a derived value; else ""
  std::string_view help;    // one line
  std::string_view others;  // its names in other programs, separated by spaces, for "did you mean"
  bool of_family = false;   // the default is that of the model's family

  std::string full_name() const;  // "train.steps"
};

const std::vector<Key>& keys();
const std::vector<std::string_view>& sections();  // in the order of the list
std::string_view describe_section(std::string_view section);

// The index in keys(), or -1.
int find_key(std::string_view section, std::string_view name);
// The same for a name that a key had once, which takes the same values.
struct RenamedKey {
  std::string_view section, name;
  std::string_view now;  // full name
};
const RenamedKey* renamed_key(std::string_view section, std::string_view name);  // null if there is none
// The index of "train.steps", which must exist.
int key_index(std::string_view full_name);

// The value of a key that is not given: TOML, or the rule in words.
std::string default_text(const Key& key);

// `word` matched to a key: exactly, by another program's name for it, or nearly. "" if nothing is near.
std::string meant_key(std::string_view section, std::string_view word);
std::string meant_word(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace kintsugi::config

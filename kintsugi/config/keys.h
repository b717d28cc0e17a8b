// The list of all keys of run.toml. Parsing, checks, errors, help, the documentation test, the saved configuration and
// the rules of resume all derive from it.
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

// Whether a resumed run may change a key.
enum class Resume {
  fixed,  // must equal the saved value: another value would be another run
  free,   // may change
  kept,   // may change if given; if derived, the saved value is kept
  held,   // if given, must equal the saved value; if derived, the saved value is kept
  moved,  // file names: paths may change, contents must not, which data fingerprints verify
};

struct Key {
  std::string_view section;
  std::string_view name;
  Allowed allowed;
  std::function<Value(const Settings&)> get;
  std::function<void(Settings&, const Value&)> set;
  Resume resume;
  std::string_view rule;    // meaning of the default if the value is derived, else ""
  std::string_view help;    // one line
  std::string_view others;  // names in other programs, separated by spaces, for "did you mean"
  bool of_family = false;   // the default depends on the model family

  std::string full_name() const;  // "train.steps"
};

const std::vector<Key>& keys();
const std::vector<std::string_view>& sections();  // in list order
std::string_view describe_section(std::string_view section);

// Index into keys(), or -1.
int find_key(std::string_view section, std::string_view name);
// A former name of a key, with the same values.
struct RenamedKey {
  std::string_view section, name;
  std::string_view now;  // full name
};
const RenamedKey* renamed_key(std::string_view section, std::string_view name);  // null if there is none
// Index of "train.steps", which must exist.
int key_index(std::string_view full_name);

// The default as TOML, or the rule that derives it, in words.
std::string default_text(const Key& key);

// The key meant by `word`: exact, a name in another program, or a near match; "" if nothing is near.
std::string meant_key(std::string_view section, std::string_view word);
std::string meant_word(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace kintsugi::config

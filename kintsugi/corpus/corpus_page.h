// What a corpus pipeline kept and why it dropped the rest, as an HTML page and as JSON.
#pragma once

#include <string>

#include "kintsugi/corpus/clean.h"

namespace kintsugi::corpus {

// `title` names the corpus.
std::string html_of(const Cleaned& cleaned, const Spec& spec, const std::string& title);
// {"domains": {NAME: {"kept": {"documents": N, "bytes": N}, ...}}, "bands": N, "rows": N}
std::string json_of(const Cleaned& cleaned);
// For a terminal: a line per domain and reason.
std::string text_of(const Cleaned& cleaned);

}  // namespace kintsugi::corpus

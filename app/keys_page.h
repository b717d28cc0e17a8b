// The keys of run.toml, on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

// All keys (""), those of a section ("train"), or the details of one ("train.steps", or "steps" if it is unique). No
// line is longer than kColumns. UserError for an unknown name.
std::string keys_page(std::string_view which);

// "model (the network), data (...)": the sections, for the page of a verb.
std::string sections_in_words();

}  // namespace kintsugi::app

// The keys of run.toml, on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::app {

// All keys (""), those of a section ("train"), or all that is known of one ("train.steps", or "steps" where one section
// has it). No line is longer than kColumns. UserError for a name that is none.
std::string keys_page(std::string_view which);

// "model (the network), data (...)": the sections, for the page of a verb.
std::string sections_in_words();

}  // namespace kintsugi::app

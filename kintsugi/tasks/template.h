// Texts with fields of a record: "Question: {question.stem}\nAnswer:".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::tasks {

// A text filter from the list of filters, some with an argument: "strip", "after:_".
struct Filter {
  size_t row = 0;
  std::string argument;
};
// Throws UserError, naming the place of `source`, for an unknown filter.
Filter parse_filter(const base::Json& source, std::string_view words);
std::string filtered(const Filter& filter, std::string_view text);

// A field in braces is a path of members and list indices, separated by dots; empty: the record itself. Filters may
// follow: {support|lstrip}, {sentence|after:_|strip}. "{{" and "}}" are literal braces.
class Template {
 public:
  Template() = default;
  // `source`: a text of a task file. Throws UserError, naming its place, for a malformed template.
  explicit Template(const base::Json& source);

  // Throws UserError, naming the place in the record, for a field that is absent or neither a text nor a number.
  std::string render(const base::Json& record) const;

 private:
  struct Part {
    std::string text;  // before the field
    bool field = false;
    std::string path;
    std::vector<Filter> filters;
  };

  std::vector<Part> parts_;
};

// Returns the value at a path; throws UserError if there is none.
base::Json value_at(const base::Json& record, std::string_view path);
bool has_value_at(const base::Json& record, std::string_view path);

// Strips what Python's str.strip() removes: Unicode white space.
std::string_view without_leading_space(std::string_view text);
std::string_view without_trailing_space(std::string_view text);

}  // namespace kintsugi::tasks

#include "kintsugi/base/error.h"
#include "kintsugi/corpus/filters.h"

namespace kintsugi::corpus {

bool knows_languages() {
  return false;
}

bool is_language(std::string_view) {
  return true;
}

std::string language_of(std::string_view) {
  throw base::UserError("prepare",
                        "filter.languages needs CLD2, which this build lacks: install libcld2-dev and build again");
}

}  // namespace kintsugi::corpus

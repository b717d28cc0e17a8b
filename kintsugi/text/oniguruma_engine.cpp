#include <oniguruma.h>

#include <mutex>
#include <new>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/oniguruma_pattern.h"
#include "kintsugi/text/pattern_engine.h"

namespace kintsugi::text {
namespace {

const OnigUChar* as_bytes(const char* text) {
  return reinterpret_cast<const OnigUChar*>(text);
}

std::string oniguruma_message(int error, OnigErrorInfo* info) {
  OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int length = info ? onig_error_code_to_str(message, error, info) : onig_error_code_to_str(message, error);
  return {reinterpret_cast<const char*>(message), static_cast<size_t>(length)};
}

struct FreeRegex {
  void operator()(regex_t* regex) const { onig_free(regex); }
};
struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};

class OnigurumaFinder final : public PatternFinder {
 public:
  OnigurumaFinder(regex_t* regex, std::string_view text, std::string_view where)
      : regex_(regex), text_(text), where_(where), region_(onig_region_new()) {
    if (!region_) throw std::bad_alloc();
  }

  bool find(size_t from, Match& match) override {
    const OnigUChar* begin = as_bytes(text_.data());
    const OnigUChar* end = begin + text_.size();
    const int result = onig_search(regex_, begin, end, begin + from, end, region_.get(), ONIG_OPTION_NONE);
    if (result == ONIG_MISMATCH) return false;
    if (result == ONIGERR_MEMORY) throw std::bad_alloc();
    if (result < 0) {
      throw base::UserError("tokenizer", "{}: the pattern that splits text gives up {} bytes into a text: {}", where_,
                            from, oniguruma_message(result, nullptr));
    }
    match = {static_cast<size_t>(region_->beg[0]), static_cast<size_t>(region_->end[0])};
    return true;
  }

 private:
  regex_t* regex_;
  std::string_view text_, where_;
  std::unique_ptr<OnigRegion, FreeRegion> region_;
};

class OnigurumaEngine final : public PatternEngine {
 public:
  OnigurumaEngine(regex_t* regex, std::string_view where) : regex_(regex), where_(where) {}

  std::unique_ptr<PatternFinder> finder(std::string_view text) const override {
    return std::make_unique<OnigurumaFinder>(regex_.get(), text, where_);
  }

 private:
  std::unique_ptr<regex_t, FreeRegex> regex_;
  std::string where_;
};

// Above the library's default of 10 million, since releases count differently.
constexpr unsigned long kMostRetries = 40'000'000;

int compile_regex(regex_t** regex, const std::string& pattern, OnigErrorInfo* info) {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_retry_limit_in_match(kMostRetries);
  });
  return onig_new(regex, as_bytes(pattern.data()), as_bytes(pattern.data() + pattern.size()), ONIG_OPTION_NONE,
                  ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, info);
}

}  // namespace

std::unique_ptr<PatternEngine> compile_oniguruma(std::string_view pattern, std::string_view where) {
  OnigErrorInfo info = {};
  regex_t* regex = nullptr;
  const OnigurumaPattern spelled = spell_oniguruma(pattern, where);
  const int error = compile_regex(&regex, spelled.text, &info);
  if (error == ONIG_NORMAL) {
    auto engine = std::make_unique<OnigurumaEngine>(regex, where);
    if (!spelled.unread) return engine;
    throw base::UserError("tokenizer", "{}: the pattern {} has brackets of a kind that is not supported", where,
                          base::in_quotes(pattern));
  }
  if (error == ONIGERR_MEMORY) throw std::bad_alloc();
  throw base::UserError("tokenizer", "{}: the pattern {} is wrong: {}", where, base::in_quotes(pattern),
                        oniguruma_message(error, &info));
}

}  // namespace kintsugi::text

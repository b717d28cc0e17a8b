#include "kintsugi/corpus/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::corpus {
namespace {

using base::UserError;
using config::Raw;

constexpr Format kFormats[] = {Format::text, Format::jsonl, Format::inverted, Format::tokens};

// A value of the file, for messages.
struct Value {
  std::string_view file;
  std::string key;
  const Raw& raw;
  int line;

  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) const {
    throw UserError("prepare", "{}:{}: {} {}", file, line, key, fmt::format(format, std::forward<T>(values)...));
  }
  std::string text() const {
    if (raw.type != Raw::Type::text || raw.text.empty()) refuse("must be a non-empty text");
    return raw.text;
  }
  std::vector<std::string> texts() const {
    if (raw.type == Raw::Type::text) return {text()};
    std::vector<std::string> list;
    if (raw.type == Raw::Type::list)
      for (const Raw& item : raw.items)
        if (item.type == Raw::Type::text && !item.text.empty()) list.push_back(item.text);
    if (list.empty() || list.size() != raw.items.size()) refuse("must be a text or a list of texts");
    return list;
  }
  int64_t integer(int64_t least, int64_t most) const {
    if (raw.type != Raw::Type::integer || raw.integer < least || raw.integer > most)
      refuse("must be an integer from {} to {}", least, most);
    return raw.integer;
  }
  double number(double least, double most) const {
    const double x = raw.type == Raw::Type::integer  ? static_cast<double>(raw.integer)
                     : raw.type == Raw::Type::number ? raw.number
                                                     : NAN;
    if (!(x >= least && x <= most)) refuse("must be a number from {} to {}", least, most);
    return x;
  }
  bool boolean() const {
    if (raw.type != Raw::Type::boolean) refuse("must be true or false");
    return raw.boolean;
  }
};

// A key of a section, and what reads its value.
template <typename Section>
struct Key {
  std::string_view name;
  void (*read)(Section&, const Value&);
};

constexpr Key<Source> kSourceKeys[] = {
    {"path", [](Source& s, const Value& v) { s.paths = v.texts(); }},
    {"field", [](Source& s, const Value& v) { s.field = v.text(); }},
    {"tokenizer", [](Source& s, const Value& v) { s.tokenizer = v.text(); }},
    {"format",
     [](Source& s, const Value& v) {
       const std::string text = v.text();
       for (const Format f : kFormats)
         if (name_of(f) == text) return void(s.format = f);
       v.refuse("is \"{}\"; known formats: text, jsonl, inverted, tokens", base::one_line(text, 40));
     }},
};

constexpr Key<Filter> kFilterKeys[] = {
    {"languages", [](Filter& f, const Value& v) { f.languages = v.texts(); }},
    {"min_bytes", [](Filter& f, const Value& v) { f.min_bytes = v.integer(0, int64_t{1} << 40); }},
    {"max_bytes", [](Filter& f, const Value& v) { f.max_bytes = v.integer(1, int64_t{1} << 40); }},
    {"skip_bad_lines", [](Filter& f, const Value& v) { f.skip_bad_lines = v.integer(0, 1'000'000'000); }},
    {"quality",
     [](Filter& f, const Value& v) {
       const std::string text = v.text();
       if (text != "none" && text != "gopher")
         v.refuse("is \"{}\"; known rules: none, gopher", base::one_line(text, 40));
       f.gopher = text == "gopher";
     }},
};

constexpr Key<Deduplicate> kDeduplicateKeys[] = {
    {"exact", [](Deduplicate& d, const Value& v) { d.exact = v.boolean(); }},
    {"near", [](Deduplicate& d, const Value& v) { d.near = v.number(0, 1); }},
    {"hashes", [](Deduplicate& d, const Value& v) { d.hashes = v.integer(1, 1024); }},
    {"words", [](Deduplicate& d, const Value& v) { d.words = v.integer(1, 64); }},
};

constexpr Key<Decontaminate> kDecontaminateKeys[] = {
    {"path", [](Decontaminate& d, const Value& v) { d.paths = v.texts(); }},
    {"words", [](Decontaminate& d, const Value& v) { d.words = v.integer(2, 64); }},
};

template <typename Section>
void read_key(Section& section, std::span<const Key<Section>> keys, std::string_view name, const Value& value) {
  std::string known;
  for (const Key<Section>& key : keys) {
    if (key.name == name) return key.read(section, value);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", key.name);
  }
  value.refuse("is not a key of this section; known keys: {}", known);
}

void check_source(const Source& s, std::string_view file, int line) {
  const auto refuse = [&](std::string_view what) {
    throw UserError("prepare", "{}:{}: [source.{}] {}", file, line, s.domain, what);
  };
  if (s.paths.empty()) refuse("has no path");
  if (s.format == Format::tokens && s.tokenizer.empty())
    refuse("has the format tokens and no tokenizer; name the tokenizer that made the ids");
}

bool is_domain(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::text:
      return "text";
    case Format::jsonl:
      return "jsonl";
    case Format::inverted:
      return "inverted";
    case Format::tokens:
      return "tokens";
  }
  throw base::InternalError("corpus", "no format {}", static_cast<int>(format));
}

Spec read_spec(std::string_view text, std::string_view name) {
  Spec spec;
  for (const config::Entry& e : config::read_toml(text, name)) {
    const std::string key = e.key.empty() ? fmt::format("[{}]", e.section) : fmt::format("{}.{}", e.section, e.key);
    const Value value = {name, key, e.value, e.line};
    if (e.section == "source") {
      if (e.key.empty()) {
        if (e.value.type != Raw::Type::table) value.refuse("must be sections [source.NAME]");
        continue;
      }
      if (e.value.type != Raw::Type::table) value.refuse("is not a section; write [source.NAME]");
      if (!is_domain(e.key)) value.refuse("must have a name of 1 to 64 letters, digits, _ and -");
      Source source;
      source.domain = e.key;
      for (size_t i = 0; i < e.value.items.size(); ++i) {
        const Raw& item = e.value.items[i];
        read_key<Source>(source, kSourceKeys, e.value.names[i],
                         {name, fmt::format("{}.{}", key, e.value.names[i]), item, item.line > 0 ? item.line : e.line});
      }
      check_source(source, name, e.line);
      spec.sources.push_back(std::move(source));
    } else if (e.section == "filter") {
      if (!e.key.empty()) read_key<Filter>(spec.filter, kFilterKeys, e.key, value);
    } else if (e.section == "deduplicate") {
      if (!e.key.empty()) read_key<Deduplicate>(spec.deduplicate, kDeduplicateKeys, e.key, value);
    } else if (e.section == "decontaminate") {
      if (!e.key.empty()) read_key<Decontaminate>(spec.decontaminate, kDecontaminateKeys, e.key, value);
    } else {
      throw UserError("prepare",
                      "{}:{}: unknown section [{}]; known sections: source.NAME, filter, deduplicate, decontaminate",
                      name, e.line, base::one_line(e.section, 40));
    }
  }
  if (spec.sources.empty())
    throw UserError("prepare", "{}: no source; add a section [source.NAME] with path = \"...\"", name);
  if (spec.filter.min_bytes > spec.filter.max_bytes)
    throw UserError("prepare", "{}: filter.min_bytes = {} exceeds filter.max_bytes = {}", name, spec.filter.min_bytes,
                    spec.filter.max_bytes);
  return spec;
}

}  // namespace kintsugi::corpus

#include "kintsugi/corpus/documents.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/data/json_line.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::corpus {
namespace {

using base::UserError;

constexpr size_t kMostText = 256 << 20;
constexpr size_t kBatch = 1 << 20;  // bytes, approximately
constexpr int64_t kMostPositions = 10'000'000;

std::string stamp_of(const std::filesystem::path& path, uint64_t bytes) {
  struct stat s = {};
  if (stat(path.c_str(), &s) != 0) return fmt::format("{}:{}", path.string(), bytes);
  return fmt::format("{}:{}:{}.{:09}", path.string(), s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

std::string as_utf8(std::string text) {
  size_t good = text::count_valid(text);
  if (good == text.size()) return text;
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    good = text::count_valid(rest);
    out += rest.substr(0, good);
    rest.remove_prefix(good);
    const size_t bad = text::count_invalid(rest);
    for (size_t i = 0; i < bad; ++i) out += "\uFFFD";
    rest.remove_prefix(bad);
  }
  return out;
}

std::string_view without_where(std::string_view error) {
  const size_t at = error.find("] ");
  return at == error.npos ? error : error.substr(at + 2);
}

std::string text_in(const base::Json& object, const Source& source) {
  const auto found = object.find(source.field);
  if (!found) {
    std::string fields;
    for (const base::Json& member : object.members())
      if (fields.size() < 200) fields += (fields.empty() ? "" : ", ") + base::in_quotes(member.key(), 40);
    object.fail("there is no field {}; its fields are {}", base::in_quotes(source.field),
                fields.empty() ? "none" : fields);
  }
  return source.format == Format::inverted ? text_of_inverted(*found) : std::string(found->text());
}

}  // namespace

std::string text_of_inverted(const base::Json& value) {
  const auto nested = value.find("InvertedIndex");
  const base::Json index = nested ? *nested : value;
  std::vector<std::pair<int64_t, std::string_view>> words;
  for (const base::Json& word : index.members())
    for (const base::Json& position : word.list()) words.emplace_back(position.whole(0, kMostPositions), word.key());
  std::ranges::sort(words);
  std::string text;
  for (const auto& [position, word] : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::vector<Input> list_inputs(const Spec& spec) {
  std::vector<Input> inputs;
  std::set<std::string> seen;
  const auto add = [&](Input input, const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (!seen.insert(error ? path.string() : real.string()).second)
      throw UserError("prepare", "\"{}\" is in two sources; name it once", path.string());
    inputs.push_back(std::move(input));
  };
  for (size_t s = 0; s < spec.sources.size(); ++s) {
    const Source& source = spec.sources[s];
    if (source.format == Format::tokens) {
      for (const std::string& path : source.paths) {
        auto file = std::make_shared<data::TokenFile>(path);
        const std::filesystem::path bin = file->bin().path();
        add({.source = s,
             .name = path,
             .bytes = file->num_bytes(),
             .stamp = stamp_of(bin, file->num_bytes()),
             .tokens = file},
            bin);
      }
      continue;
    }
    const data::Corpus all =
        data::list_corpus({.inputs = source.paths, .field = source.format == Format::text ? "" : source.field});
    data::require_texts(all);
    for (const data::CorpusFile& file : all.files) {
      auto one = std::make_shared<data::Corpus>();
      one->files = {file};
      one->bytes = file.bytes;
      add({.source = s,
           .name = file.path.string(),
           .bytes = file.bytes,
           .stamp = stamp_of(file.path, file.bytes),
           .corpus = one},
          file.path);
    }
  }
  return inputs;
}

BatchReader::BatchReader(const Spec& spec, const std::vector<Input>& inputs, std::vector<size_t> which)
    : spec_(spec), inputs_(inputs), which_(std::move(which)) {}

bool BatchReader::next(Batch& batch) {
  if (at_ == which_.size()) return false;
  batch = {};
  batch.input = which_[at_];
  batch.last = !fill(batch);
  if (batch.last) {
    ++at_;
    reader_.reset();
    document_ = 0;
  }
  return true;
}

// Returns false if this is the last batch of its input.
bool BatchReader::fill(Batch& batch) {
  const Input& input = inputs_[batch.input];
  if (input.tokens) {
    const data::TokenFile& file = *input.tokens;
    batch.first_document = document_;
    uint64_t begin = file.document_begin(document_);
    while (document_ < file.num_documents() && batch.ids.size() < kBatch / 4) {
      const uint64_t end = file.document_begin(document_ + 1);
      if (end - begin > kMostText / 4)
        throw UserError("prepare", "\"{}\": document {} has more than {} tokens; split it", input.name, document_,
                        kMostText / 4);
      const size_t at = batch.ids.size();
      batch.ids.resize(at + static_cast<size_t>(end - begin));
      file.read(begin, std::span(batch.ids).subspan(at));
      batch.ends.push_back(batch.ids.size());
      begin = end;
      ++document_;
    }
    batch.bytes = batch.ids.size() * (file.num_tokens() > 0 ? file.num_bytes() / file.num_tokens() : 1);
    return document_ < file.num_documents();
  }
  if (spec_.sources[input.source].format == Format::text) {
    data::InputFile file(input.corpus->files[0]);
    while (file.read(kBatch, batch.text) == kBatch)
      if (batch.text.size() > kMostText)
        throw UserError("prepare", "\"{}\" exceeds 256 MiB, and a text file is one document; split it, or use JSONL",
                        input.name);
    batch.bytes = batch.text.size();
    return false;
  }
  if (!reader_)
    reader_ = std::make_unique<data::CorpusReader>(*input.corpus, data::ReaderOptions{.chunk_bytes = kBatch});
  const bool more = reader_->next(batch.lines);
  batch.bytes = batch.lines.text.size();
  return more;
}

Parser::Parser(const Spec& spec) : spec_(spec) {
  for (const Source& source : spec.sources)
    tokenizers_.push_back(source.tokenizer.empty() ? nullptr : text::load_tokenizer(source.tokenizer));
}

Documents Parser::parse(const std::vector<Input>& inputs, const Batch& batch) const {
  Documents documents;
  const Input& input = inputs[batch.input];
  const Source& source = spec_.sources[input.source];
  if (source.format == Format::text) {
    documents.list.push_back({as_utf8(batch.text), 1});
    return documents;
  }
  if (source.format == Format::tokens) {
    const text::Tokenizer& tokenizer = *tokenizers_[input.source];
    const auto begins = tokenizer.begin_of_document(), ends = tokenizer.end_of_text();
    size_t from = 0;
    for (size_t i = 0; i < batch.ends.size(); ++i) {
      std::span<const int32_t> ids = std::span(batch.ids).subspan(from, batch.ends[i] - from);
      from = batch.ends[i];
      uint64_t number = batch.first_document + i;
      if (begins && !ids.empty() && ids.front() == *begins) ids = ids.subspan(1);
      // A bare file is one sequence; the end of a document is its only boundary.
      while (true) {
        const auto end = ends ? std::ranges::find(ids, *ends) : ids.end();
        const auto length = static_cast<size_t>(end - ids.begin());
        if (length > 0) documents.list.push_back({as_utf8(tokenizer.decode(ids.first(length))), number});
        if (end == ids.end()) break;
        ids = ids.subspan(length + 1);
      }
    }
    return documents;
  }
  for (const data::Piece& piece : batch.lines.pieces) {
    const std::string_view text = std::string_view(batch.lines.text).substr(piece.begin, piece.end - piece.begin);
    uint64_t number = piece.line;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      try {
        if (source.format == Format::jsonl)
          if (auto found = data::text_of_flat_line(line, source.field)) {
            documents.list.push_back({std::move(*found), number});
            continue;
          }
        data::JsonRepairs repairs;
        documents.list.push_back(
            {text_in(data::parse_json_line("prepare", input.name, line, static_cast<int64_t>(number), repairs), source),
             number});
      } catch (const UserError& error) {
        if (documents.bad_lines++ == 0) documents.a_bad_line = without_where(error.what());
      }
    }
  }
  return documents;
}

}  // namespace kintsugi::corpus

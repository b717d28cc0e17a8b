#include "kintsugi/corpus/clean.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/corpus/documents.h"
#include "kintsugi/corpus/scan.h"
#include "kintsugi/corpus/words.h"
#include "kintsugi/data/ordered_parallel.h"
#include "kintsugi/data/progress.h"

namespace kintsugi::corpus {
namespace {

namespace fs = std::filesystem;

Digest digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

uint64_t hash_of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

// Everything that the notes of an input depend on, except the input.
std::string key_of(const Spec& spec, const Source& source) {
  std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {}", name_of(source.format), source.field,
                                source.tokenizer, fmt::join(spec.filter.languages, ","), spec.filter.min_bytes,
                                spec.filter.max_bytes, spec.filter.gopher, spec.deduplicate.near,
                                spec.deduplicate.hashes, spec.deduplicate.words, spec.decontaminate.words);
  for (const std::string& path : spec.decontaminate.paths) key += " " + path;
  return key;
}

class Pipeline {
 public:
  Pipeline(const Spec& spec, const fs::path& folder, const data::PassOptions& pass)
      : spec_(spec),
        folder_(folder),
        pass_(pass),
        inputs_(list_inputs(spec)),
        parser_(spec),
        bands_(spec.deduplicate.near > 0 ? choose_bands(spec.deduplicate.near, spec.deduplicate.hashes) : Bands{}) {
    for (const std::string& language : spec.filter.languages) {
      if (!knows_languages()) language_of("");  // throws
      if (!is_language(language))
        throw base::UserError("prepare", "filter.languages: \"{}\" is not the code of a language; write e.g. \"en\"",
                              language);
    }
  }

  Cleaned run() {
    base::make_folders(folder_ / ".notes");
    const base::FileLock lock(folder_ / ".notes" / "lock",
                              fmt::format("another prepare is writing into \"{}\"", folder_.string()));
    Cleaned result;
    result.bands = bands_;
    result.inputs = inputs_.size();
    for (const Source& source : spec_.sources)
      result.domains.push_back({.domain = source.domain, .file = folder_ / (source.domain + ".jsonl")});
    result.continued = scan(result);
    verdicts_.clear();
    for (const Scan& scan : scans_) verdicts_.insert(verdicts_.end(), scan.verdicts().begin(), scan.verdicts().end());
    if (verdicts_.size() > UINT32_MAX)
      throw base::UserError("prepare", "{} documents exceed the limit of {}; split the sources", verdicts_.size(),
                            UINT32_MAX);
    if (spec_.deduplicate.exact) drop_exact();
    for (int64_t band = 0; band < bands_.bands; ++band) join_band(static_cast<size_t>(band));
    drop_near();
    count(result);
    write(result);
    base::remove_if_possible(folder_ / ".notes");
    return result;
  }

 private:
  fs::path note_path(size_t input) const { return folder_ / ".notes" / fmt::format("{:06}.scan", input); }
  uint64_t stamp_of(size_t input) const {
    return hash_of(inputs_[input].stamp + " " + key_of(spec_, spec_.sources[inputs_[input].source]));
  }

  // Calls consume(Batch's input, whether it is the input's last, result) in order.
  template <typename Result, typename Work, typename Consume>
  void pass(std::vector<size_t> which, const std::string& what, Work&& work, Consume&& consume) {
    struct Item {
      size_t input;
      bool last;
      uint64_t bytes;
      Result result;
    };
    uint64_t total = 0, done = 0;
    for (const size_t i : which) total += inputs_[i].bytes;
    BatchReader reader(spec_, inputs_, std::move(which));
    data::Progress progress(pass_.progress, what, total);
    data::OrderedParallel<Batch, Item>::run(
        pass_.threads, [&](Batch& batch) { return reader.next(batch); },
        [&](Batch& batch, int) {
          return Item{batch.input, batch.last, batch.bytes, work(batch)};
        },
        [&](Item&& item) {
          stop_if_asked();
          consume(item.input, item.last, std::move(item.result));
          done += item.bytes;
          progress.show(done);
        },
        [&] {
          stop_if_asked();
          progress.show(done);
        });
    progress.finish(done);
  }

  void stop_if_asked() const {
    if (pass_.stop && pass_.stop->load()) throw base::UserError("prepare", "interrupted; the same command continues");
  }

  // Throws if the source has more bad lines than it may have.
  void count_bad(Counts& counts, uint64_t more, const std::string& first) const {
    if (more > 0 && counts.bad_lines == 0) counts.a_bad_line = first;
    counts.bad_lines += more;
    if (counts.bad_lines <= static_cast<uint64_t>(spec_.filter.skip_bad_lines)) return;
    throw base::UserError("prepare", "{}{}", counts.a_bad_line,
                          spec_.filter.skip_bad_lines > 0
                              ? fmt::format("; filter.skip_bad_lines = {} skips no more", spec_.filter.skip_bad_lines)
                              : std::string());
  }

  // Returns the number of inputs with notes from before.
  uint64_t scan(Cleaned& result) {
    const Overlap overlap(spec_.decontaminate);
    const std::optional<MinHash> hash = bands_.bands > 0 ? std::optional<MinHash>(bands_) : std::nullopt;
    const auto bands = static_cast<size_t>(bands_.bands);
    std::vector<size_t> missing;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (const auto scan = Scan::open(note_path(i), stamp_of(i), bands); !scan) missing.push_back(i);
    const uint64_t continued = inputs_.size() - missing.size();
    struct Notes {
      std::vector<Note> list;
      uint64_t bad_lines;
      std::string a_bad_line;
    };
    std::unique_ptr<ScanWriter> writer;
    uint64_t bad = 0;
    pass<Notes>(
        missing, "reading",
        [&](const Batch& batch) {
          Documents documents = parser_.parse(inputs_, batch);
          Notes notes = {{}, documents.bad_lines, std::move(documents.a_bad_line)};
          for (const Document& document : documents.list) {
            Note note = {.verdict = judge(document.text, spec_.filter, overlap), .bytes = document.text.size()};
            if (note.verdict == Verdict::kept) {
              note.digest = digest_of(document.text);
              if (hash) note.keys = hash->keys(shingles(word_hashes(document.text), spec_.deduplicate.words));
            }
            notes.list.push_back(std::move(note));
          }
          return notes;
        },
        [&](size_t input, bool last, Notes&& notes) {
          if (!writer) writer = std::make_unique<ScanWriter>(note_path(input), stamp_of(input), bands);
          for (Note& note : notes.list) writer->add(std::move(note));
          bad += notes.bad_lines;
          count_bad(result.domains[inputs_[input].source], notes.bad_lines, notes.a_bad_line);
          if (!last) return;
          writer->finish(bad);
          writer.reset();
          bad = 0;
        });
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto scan = Scan::open(note_path(i), stamp_of(i), bands);
      if (!scan)
        throw base::UserError("prepare", "\"{}\" changed while it was read; run the command again", inputs_[i].name);
      if (!std::ranges::binary_search(missing, i))
        count_bad(result.domains[inputs_[i].source], scan->bad_lines(),
                  inputs_[i].name + " has lines that cannot be read");
      scans_.push_back(std::move(*scan));
    }
    return continued;
  }

  // Calls f(first document of the scan, scan).
  template <typename F>
  void for_each_scan(F&& f) const {
    size_t first = 0;
    for (const Scan& scan : scans_) {
      f(first, scan);
      first += scan.size();
    }
  }

  void drop_exact() {
    std::vector<std::pair<Digest, uint32_t>> kept;
    for_each_scan([&](size_t first, const Scan& scan) {
      const std::vector<Digest> digests = scan.digests();
      for (size_t i = 0; i < digests.size(); ++i)
        if (verdicts_[first + i] == Verdict::kept) kept.emplace_back(digests[i], static_cast<uint32_t>(first + i));
    });
    std::ranges::sort(kept);
    for (size_t i = 1; i < kept.size(); ++i)
      if (kept[i].first == kept[i - 1].first) verdicts_[kept[i].second] = Verdict::exact_duplicate;
  }

  uint32_t root_of(uint32_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }

  void join_band(size_t band) {
    if (parents_.empty()) {
      parents_.resize(verdicts_.size());
      std::iota(parents_.begin(), parents_.end(), 0u);
    }
    std::vector<std::pair<uint64_t, uint32_t>> keys;
    for_each_scan([&](size_t first, const Scan& scan) {
      const std::vector<uint64_t> column = scan.keys(band);
      for (size_t i = 0; i < column.size(); ++i)
        if (verdicts_[first + i] == Verdict::kept && column[i] != 0)
          keys.emplace_back(column[i], static_cast<uint32_t>(first + i));
    });
    std::ranges::sort(keys);
    for (size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].first != keys[i - 1].first) continue;
      const uint32_t a = root_of(keys[i - 1].second), b = root_of(keys[i].second);
      parents_[std::max(a, b)] = std::min(a, b);
    }
    stop_if_asked();
  }

  // Of each connected component the first document remains.
  void drop_near() {
    for (uint32_t i = 0; i < parents_.size(); ++i)
      if (verdicts_[i] == Verdict::kept && root_of(i) != i) verdicts_[i] = Verdict::near_duplicate;
  }

  void count(Cleaned& result) const {
    size_t input = 0;
    for_each_scan([&](size_t first, const Scan& scan) {
      Counts& counts = result.domains[inputs_[input++].source];
      for (size_t i = 0; i < scan.size(); ++i) {
        const auto verdict = static_cast<size_t>(verdicts_[first + i]);
        ++counts.documents[verdict];
        counts.bytes[verdict] += scan.bytes(i);
        if (verdicts_[first + i] != Verdict::kept) continue;
        const auto length = static_cast<size_t>(std::bit_width(scan.bytes(i)));
        if (counts.lengths.size() <= length) counts.lengths.resize(length + 1);
        ++counts.lengths[length];
      }
    });
  }

  void write(const Cleaned& result) {
    std::vector<size_t> all(inputs_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::vector<std::unique_ptr<base::FileWriter>> writers;
    const auto part = [&](size_t domain) { return result.domains[domain].file.string() + ".part"; };
    for (size_t d = 0; d < result.domains.size(); ++d) writers.push_back(std::make_unique<base::FileWriter>(part(d)));
    size_t document = 0;
    pass<std::vector<Document>>(
        all, "writing", [&](const Batch& batch) { return parser_.parse(inputs_, batch).list; },
        [&](size_t input, bool, std::vector<Document>&& documents) {
          for (const Document& d : documents) {
            if (document >= verdicts_.size())
              throw base::UserError("prepare", "\"{}\" changed while it was read; run the command again",
                                    inputs_[input].name);
            if (verdicts_[document++] != Verdict::kept) continue;
            base::JsonWriter line;
            line.object([&] {
              line.key("text").value(d.text);
              line.key("source").value(fmt::format("{}:{}", inputs_[input].name, d.number));
            });
            writers[inputs_[input].source]->write(line.text());
            writers[inputs_[input].source]->write("\n");
          }
        });
    for (size_t d = 0; d < writers.size(); ++d) {
      writers[d]->close();
      fs::rename(part(d), result.domains[d].file);
    }
    base::sync_folder(folder_);
  }

  const Spec& spec_;
  fs::path folder_;
  data::PassOptions pass_;
  std::vector<Input> inputs_;
  Parser parser_;
  Bands bands_;
  std::vector<Scan> scans_;        // by input
  std::vector<Verdict> verdicts_;  // by document, in the order of the inputs
  std::vector<uint32_t> parents_;  // of a forest of near duplicates; a root is its least document
};

}  // namespace

Cleaned clean(const Spec& spec, const fs::path& folder, const data::PassOptions& pass) {
  return Pipeline(spec, folder, pass).run();
}

}  // namespace kintsugi::corpus

// Runs a corpus pipeline: reads the sources, decides which documents are kept, and writes these.
//
// Two passes over the sources. The first judges each document on its own and notes a digest and the keys of its MinHash
// bands (scan.h); duplicates are then found from the notes, one band at a time; the second writes the documents that
// remain. Memory: about 60 bytes per document, and the batches in flight.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/corpus/filters.h"
#include "kintsugi/corpus/minhash.h"
#include "kintsugi/corpus/spec.h"
#include "kintsugi/data/corpus_pass.h"

namespace kintsugi::corpus {

// Of one source.
struct Counts {
  std::string domain;
  std::filesystem::path file;  // its kept documents: JSONL with the fields "text" and "source"
  std::array<uint64_t, kVerdicts> documents = {};
  std::array<uint64_t, kVerdicts> bytes = {};  // of text
  std::vector<uint64_t> lengths = {};          // kept documents by the logarithm of their bytes to base 2
  uint64_t bad_lines = 0;
  std::string a_bad_line = {};
};

struct Cleaned {
  std::vector<Counts> domains;
  Bands bands;
  uint64_t inputs = 0;
  uint64_t continued = 0;  // inputs whose notes an interrupted pipeline had left
};

// Writes FOLDER/DOMAIN.jsonl for each source; each is whole or absent. Notes are kept in FOLDER/.notes until the end.
// The first of several duplicates is kept, in the order of the sources. The result does not depend on the number of
// threads. Throws UserError "[prepare] ...".
Cleaned clean(const Spec& spec, const std::filesystem::path& folder, const data::PassOptions& pass);

}  // namespace kintsugi::corpus

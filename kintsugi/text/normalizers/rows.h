// One function per normalizer, each in a file of its name; the table is in normalizer.cpp.
#pragma once

#include "kintsugi/text/normalizer.h"

namespace kintsugi::text {

std::unique_ptr<Normalizer> read_prepend(const base::Json& part);
std::unique_ptr<Normalizer> read_replace(const base::Json& part);
std::unique_ptr<Normalizer> read_normalizer_sequence(const base::Json& part);
std::unique_ptr<Normalizer> read_unicode_form(const base::Json& part);  // NFC, NFD, NFKC, NFKD
std::unique_ptr<Normalizer> read_lowercase(const base::Json& part);
std::unique_ptr<Normalizer> read_strip(const base::Json& part);
std::unique_ptr<Normalizer> read_strip_accents(const base::Json& part);
std::unique_ptr<Normalizer> read_nmt(const base::Json& part);
std::unique_ptr<Normalizer> read_bert_normalizer(const base::Json& part);
std::unique_ptr<Normalizer> read_precompiled(const base::Json& part);
std::unique_ptr<Normalizer> read_byte_level_normalizer(const base::Json& part);

}  // namespace kintsugi::text

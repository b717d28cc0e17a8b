// Small valid files of each format, in the current folder. `sample` is 0 or 1: another file of the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kintsugi::tests {

void write(const std::filesystem::path& path, std::string_view content);
void make_jsonl(int sample);
void make_text(int sample);
void prepare(const std::string& input, const std::string& field, const std::string& tokenizer,
             const std::filesystem::path& output);
void make_cifar(int sample);
void make_idx(int sample);
void make_npy(int sample);
void make_config(int sample);
void make_table(int sample);
void make_cluster(int sample);
void make_run(int sample);
void make_ended_run(int sample);
void make_bpe(int sample);
void make_bytes(int sample);
void make_chars(int sample);
void make_character_bpe(int sample);
void make_unigram(int sample);
void make_word_piece(int sample);
void make_sentencepiece(int sample);
void make_encoder(int sample);
void make_vocab(int sample);
void make_safetensors(int sample);
void make_indexed_safetensors(int sample);
void make_hugging_face(int sample);
void make_task(int sample);
void make_features(int sample);
void make_feature_array(int sample);

}  // namespace kintsugi::tests

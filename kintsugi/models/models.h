// The table of all families, and the named sizes.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/models/family.h"

namespace kintsugi::models {

// Builds the graph of a transformer according to the switches of [model], or of a multilayer perceptron.
Trunk transformer(Builder& builder);
Trunk perceptron(Builder& builder);
// A transformer block, of the graph's layer: x [batch seq embed] -> as x. `at` prefixes the names of its weights.
ValueId transformer_block(Builder& builder, ValueId x, const std::string& at);

// All families.
std::span<const Family> families();
// Throws UserError for an unknown name.
const Family& family(std::string_view name);
// The kind of samples: tokens, images, or rows of a table of numbers.
bool reads_tokens(const config::Model& model);
bool reads_images(const config::Model& model);
// The unit of throughput: "tokens", "images", or "samples" of numbers.
std::string_view unit_of(const config::Model& model);

// Published models, as specified by their papers or published weights.
std::span<const config::NamedSize> named_sizes();

// These and the optimizers, for reading configurations.
const config::Catalog& catalog();

// The `[model]` of a family with no keys given and derived values left unset.
config::Model defaults_of(std::string_view family);

}  // namespace kintsugi::models

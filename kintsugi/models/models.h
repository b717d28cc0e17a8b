// The table of all families, and the sizes that have a name.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/models/family.h"

namespace kintsugi::models {

// Build the graph of a transformer by the switches of [model], or of a multi-layer perceptron.
Trunk transformer(Builder& builder);
Trunk perceptron(Builder& builder);
// A block of a transformer, of the graph's layer: x [batch seq embed] -> as x. `at` begins the names of its weights.
ValueId transformer_block(Builder& builder, ValueId x, const std::string& at);

// The list of all families.
std::span<const Family> families();
// UserError for a name that is none of them.
const Family& family(std::string_view name);
// What samples are: tokens, images, or else rows of a table of numbers.
bool reads_tokens(const config::Model& model);
bool reads_images(const config::Model& model);
// What speeds count: "tokens", "images", or "samples" of numbers.
std::string_view unit_of(const config::Model& model);

// Models of the literature, as their papers or published weights give them.
std::span<const config::NamedSize> named_sizes();

// These and the optimizers, for whatever reads a configuration.
const config::Catalog& catalog();

// What `[model]` is for a family whose keys are not given, all that is derived left open.
config::Model defaults_of(std::string_view family);

}  // namespace kintsugi::models

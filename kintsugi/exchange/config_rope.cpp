#include "kintsugi/exchange/config_rope.h"

#include <cmath>

#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/config_layers.h"
#include "kintsugi/models/rope.h"

namespace kintsugi::exchange {
namespace {

using base::Json;
using config::RopeScaling;
using models::RopeKeys;

constexpr std::string_view kPartial = "partial_rotary_factor";

// An object of parameters to be taken one by one.
class Parameters {
 public:
  explicit Parameters(std::optional<Json> object) : object_(std::move(object)) {}

  std::optional<Json> take(std::string_view key) {
    taken_.emplace(key);
    if (!object_) return std::nullopt;
    const std::optional<Json> value = object_->find(key);
    return value && value->is_null() ? std::nullopt : value;
  }
  std::optional<double> number(std::string_view key) {
    const auto value = take(key);
    return value ? std::optional(value->number()) : std::nullopt;
  }
  // Throws UserError if it is missing.
  double need(std::string_view key) {
    const auto value = number(key);
    if (!value) object_->fail("\"{}\" is missing", key);
    return *value;
  }
  std::string type() {
    const auto type = take("rope_type"), old = take("type");
    return type ? std::string(type->text()) : old ? std::string(old->text()) : "default";
  }
  const Json& object() const { return *object_; }
  void refuse_rest() const {
    if (!object_) return;
    for (const Json& member : object_->members())
      if (!taken_.contains(member.key()) && !member.is_null())
        member.fail("\"{}\" of rotary positions is not known here", member.key());
  }

 private:
  std::optional<Json> object_;
  std::set<std::string, std::less<>> taken_;
};

std::vector<double> numbers(Parameters& p, std::string_view key) {
  const auto list = p.take(key);
  if (!list) p.object().fail("\"{}\" is missing", key);
  std::vector<double> values;
  for (const Json& item : list->list()) values.push_back(item.number());
  return values;
}

int64_t whole(double number) {
  return static_cast<int64_t>(std::llround(number));
}

void read_yarn(Parameters& p, const RopeKeys& keys, double extension, ModelText& model) {
  const double factor = p.number("factor").value_or(extension);
  model.set("rope_factor", factor);
  if (const auto fast = p.number("beta_fast")) model.set("rope_beta_fast", *fast);
  if (const auto slow = p.number("beta_slow")) model.set("rope_beta_slow", *slow);
  if (const auto truncate = p.take("truncate")) model.set("rope_truncate", truncate->boolean() ? "true" : "false");
  const auto magnitude = p.number("attention_factor"), scale = p.number("mscale"), all = p.number("mscale_all_dim");
  if (magnitude)
    model.set("rope_magnitude", *magnitude);
  else if (scale.value_or(0.0) != 0.0 && all.value_or(0.0) != 0.0)
    model.set("rope_magnitude", models::yarn_magnitude(factor, *scale) / models::yarn_magnitude(factor, *all));
  if (keys.scales_scores) model.set("rope_score_magnitude", all.value_or(0.0));
}

void read_longrope(Parameters& p, double extension, double original, ModelText& model) {
  model.set("rope_short_factors", numbers(p, "short_factor"));
  model.set("rope_long_factors", numbers(p, "long_factor"));
  const auto magnitude = p.number("attention_factor");
  const double factor = p.number("factor").value_or(extension);
  model.set("rope_magnitude", magnitude.value_or(models::longrope_magnitude(factor, original)));
}

// The kind of scaling and its numbers.
void read_scaling(Parameters& p, ConfigReader& config, const RopeKeys& keys, ModelText& model) {
  const std::optional<Json> outside = config.take("original_max_position_embeddings");
  const std::string type = p.type();
  if (type == "default") return;
  const std::optional<double> inside = p.number("original_max_position_embeddings");
  const double context = config.root().at("max_position_embeddings").number();
  const double original = outside                     ? outside->number()
                          : keys.original_outside > 0 ? static_cast<double>(keys.original_outside)
                                                      : inside.value_or(context);
  const auto scaled = [&](RopeScaling scaling) {
    model.set("rope_scaling", fmt::format("\"{}\"", config::kRopeScalings[static_cast<size_t>(scaling)]));
    if (scaling != RopeScaling::linear) model.set("rope_original_context", whole(original));
  };
  // Early Phi-3 folders say "su", or "yarn" with lists.
  if (type == "longrope" || type == "su" || (type == "yarn" && p.take("short_factor"))) {
    scaled(RopeScaling::longrope);
    read_longrope(p, context / original, original, model);
  } else if (type == "linear") {
    scaled(RopeScaling::linear);
    model.set("rope_factor", p.need("factor"));
  } else if (type == "llama3") {
    scaled(RopeScaling::llama3);
    model.set("rope_factor", p.need("factor"));
    model.set("rope_low_factor", p.need("low_freq_factor"));
    model.set("rope_high_factor", p.need("high_freq_factor"));
  } else if (type == "yarn") {
    scaled(RopeScaling::yarn);
    read_yarn(p, keys, context / original, model);
  } else if (type == "dynamic") {
    // Dynamic NTK scaling only affects texts longer than max_position_embeddings, which do not occur here: up to that
    // length, angles are unscaled.
    p.need("factor");
  } else {
    p.object().fail("rope_type \"{}\" is not known here; there are default, linear, dynamic, llama3, yarn, longrope",
                    type);
  }
}

// The fraction whose product with `whole`, truncated to an integer, is `part`.
double fraction(int64_t part, int64_t whole) {
  const double f = static_cast<double>(part) / static_cast<double>(whole);
  return static_cast<int64_t>(f * static_cast<double>(whole)) == part ? f : std::nextafter(f, 2.0);
}

}  // namespace

void read_rope(ConfigReader& config, const RopeKeys& keys, int64_t head_dim, ModelText& model) {
  std::optional<Json> object = config.take("rope_parameters"), old = config.take("rope_scaling");
  if (object && old && object->compact() != old->compact())
    old->fail("\"rope_scaling\" and \"rope_parameters\" differ; keep one of them");
  if (!object) object = old;
  if (!object && keys.required)
    config.root().fail("\"rope_scaling\" is missing; say {{\"rope_type\": \"default\"}} for rotary positions without");
  std::optional<Json> full = object, sliding;
  if (object && (object->has(kFullAttention) || object->has(kSlidingAttention))) {
    full = object->find(kFullAttention);
    sliding = object->find(kSlidingAttention);
    if (full && full->is_null()) full.reset();
    if (sliding && sliding->is_null()) sliding.reset();
  }
  Parameters of_full(full), of_sliding(sliding);
  const auto outside = [&](std::string_view key, double otherwise) {
    const std::optional<Json> value = key.empty() ? std::nullopt : config.take(key);
    return value ? value->number() : otherwise;
  };
  const double theta = outside(keys.theta_key, outside("rope_theta", keys.theta));
  model.set("rope_theta", of_full.number("rope_theta").value_or(theta));
  const double partial = outside(keys.partial_key, outside(kPartial, keys.partial));
  const auto turned = static_cast<int64_t>(static_cast<double>(head_dim) * of_full.number(kPartial).value_or(partial));
  // transformers ignores the key where a family rotates whole heads.
  if (keys.partial_key.empty() && turned != head_dim)
    config.root().fail("\"{}\" rotates {} of {} dims of a head; models of this family rotate all", kPartial, turned,
                       head_dim);
  model.set("rotary_dims", turned == head_dim ? 0 : turned);
  read_scaling(of_full, config, keys, model);
  of_full.refuse_rest();
  const double own = outside(keys.window_theta_key, keys.window_theta);
  if (keys.scaled_windows) return;
  model.set("rope_theta_window", of_sliding.number("rope_theta").value_or(own));
  const std::string type = of_sliding.type();
  if (type != "default")
    of_sliding.object().fail("rope_type \"{}\" of layers with a window is not known here; there is default", type);
  if (const std::optional<double> windowed = of_sliding.number(kPartial); windowed && *windowed != 1.0)
    of_sliding.object().fail("\"{}\" of layers with a window is {}; it should be 1", kPartial, *windowed);
  of_sliding.refuse_rest();
}

void write_rope(const config::Model& m, const RopeKeys& keys, base::JsonWriter& out) {
  out.key(keys.theta_key).value(m.rope_theta);
  const int64_t head_dim = config::width_of_head(m);
  const int64_t turned = m.rotary_dims ? m.rotary_dims : head_dim;
  if (!keys.partial_key.empty() && (turned != head_dim || keys.partial != 1.0))
    out.key(keys.partial_key).value(fraction(turned, head_dim));
  if (!keys.window_theta_key.empty()) out.key(keys.window_theta_key).value(m.rope_theta_window);
  const auto original = [&] { out.key("original_max_position_embeddings").value(m.rope_original_context); };
  const auto list = [&](std::string_view key, const std::vector<double>& values) {
    out.key(key).list([&] {
      for (const double value : values) out.value(value);
    });
  };
  const RopeScaling scaling = config::rope_scaling(m);
  if (scaling == RopeScaling::none) {
    if (keys.required) out.key("rope_scaling").object([&] { out.key("rope_type").value("default"); });
    return;
  }
  if (keys.original_outside > 0 && scaling != RopeScaling::linear) original();
  out.key("rope_scaling").object([&] {
    out.key("rope_type").value(m.rope_scaling);
    switch (scaling) {
      case RopeScaling::none:
        break;
      case RopeScaling::linear:
        out.key("factor").value(m.rope_factor);
        break;
      case RopeScaling::llama3:
        out.key("factor").value(m.rope_factor);
        out.key("low_freq_factor").value(m.rope_low_factor);
        out.key("high_freq_factor").value(m.rope_high_factor);
        original();
        break;
      case RopeScaling::yarn:
        out.key("factor").value(m.rope_factor);
        original();
        out.key("beta_fast").value(m.rope_beta_fast);
        out.key("beta_slow").value(m.rope_beta_slow);
        out.key("truncate").value(m.rope_truncate);
        if (m.rope_magnitude > 0.0) out.key("attention_factor").value(m.rope_magnitude);
        if (m.rope_score_magnitude > 0.0) out.key("mscale_all_dim").value(m.rope_score_magnitude);
        break;
      case RopeScaling::longrope:
        list("short_factor", m.rope_short_factors);
        list("long_factor", m.rope_long_factors);
        original();
        if (m.rope_magnitude > 0.0) out.key("attention_factor").value(m.rope_magnitude);
        break;
    }
  });
}

}  // namespace kintsugi::exchange

// ViT (Dosovitskiy et al. 2021): image patches as the tokens of a pre-norm encoder, followed by classes or numbers from
// the class token or the mean of all tokens, or by fields: of each token, the numbers of its patch.
#include "kintsugi/models/convnet.h"
#include "kintsugi/models/models.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::models {
namespace {

// The patches of an image or volume along each of its dims.
struct Patches {
  int64_t size = 1;
  std::vector<tensor::Dim> grid;  // patches along each dim

  explicit Patches(const config::Model& m) : size(m.patch) {
    if (m.image_depth > 0) grid.push_back({"depth", m.image_depth / size});
    grid.insert(grid.end(), {{"height", m.image_height / size}, {"width", m.image_width / size}});
  }
  int64_t number() const {
    int64_t n = 1;
    for (const tensor::Dim& d : grid) n *= d.size;
    return n;
  }
  tensor::Attributes windows() const {
    std::vector<tensor::DimWindow> list;
    for (const tensor::Dim& d : grid) list.push_back({d.name, {.kernel = size, .stride = size}});
    tensor::Attributes attributes;
    tensor::set_windows(attributes, list);
    return attributes;
  }
  // Of a weight: a patch, then `dims`.
  Shape kernel(const std::vector<tensor::Dim>& dims) const {
    std::vector<tensor::Dim> all;
    for (const tensor::Dim& d : grid) all.push_back({tensor::kernel_dim(d.name), size});
    all.insert(all.end(), dims.begin(), dims.end());
    return Shape(all);
  }
  // Of a reshape between the grid and a list with that dim.
  tensor::Attributes whole(const std::string& list) const {
    std::string names;
    for (const tensor::Dim& d : grid) names += d.name + " ";
    return {{"whole", names + list}};
  }
};

// Of each patch, preceded by the class token: [batch seq embed].
ValueId tokens_of_patches(Builder& b) {
  Graph& g = b.graph();
  const config::Model& m = b.model();
  const ValueId x = images(b);
  const Patches patches(m);
  const int64_t tokens = patches.number();
  const ValueId w = b.weight("embedding.patches.weight", patches.kernel({{"channel", m.image_channels}, b.embed()}),
                             {Init::Kind::normal, b.deviation()}, true),
                bias = b.weight("embedding.patches.bias", {b.embed()}, {}, false);
  const ValueId made = g.add({g.op("convolution", {x, w}, patches.windows()), bias});
  const std::string dim = m.class_token ? "patch" : "seq";
  const tensor::Type list = {{b.batch(), {dim, tokens}, b.embed()}, b.dtype()};
  ValueId y = g.make("reshape", {made}, {list}, patches.whole(dim))[0];
  if (m.class_token) {
    const ValueId token = b.weight("embedding.class", {b.embed()}, {Init::Kind::normal, b.deviation()}, true);
    const tensor::Type first = {{b.batch(), {"one", 1}, b.embed()}, b.dtype()};
    y = g.op("concatenate", {g.add({g.fill(0.0, first), token}), y}, {{"whole", "one patch seq"}});
  }
  const int64_t length = tokens + (m.class_token ? 1 : 0);
  const ValueId positions =
      b.weight("embedding.positions", {{"position", length}, b.embed()}, {Init::Kind::normal, b.deviation()}, true);
  y = g.add({y, g.op("position", {positions}, {{"length", length}})});
  return b.dropout(y, "embedding");
}

// Of each token, the numbers of its patch: x [batch seq embed] -> [batch [depth] height width target].
ValueId fields(Builder& b, ValueId x) {
  Graph& g = b.graph();
  const Patches patches(b.model());
  const tensor::Dim target = {"target", b.model().outputs};
  std::vector<tensor::Dim> grid = {b.batch()};
  grid.insert(grid.end(), patches.grid.begin(), patches.grid.end());
  grid.push_back(b.embed());
  x = g.make("reshape", {x}, {{Shape(grid), b.dtype()}}, patches.whole("seq"))[0];
  const ValueId w =
      b.weight("head.fields.weight", patches.kernel({target, b.embed()}), {Init::Kind::normal, b.deviation()}, true);
  return g.add(
      {g.op("transposed_convolution", {x, w}, patches.windows()), b.weight("head.fields.bias", {target}, {}, false)});
}

Trunk vit_trunk(Builder& b) {
  Graph& g = b.graph();
  const config::Model& m = b.model();
  g.layer = -1;
  ValueId x = tokens_of_patches(b);
  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    x = transformer_block(b, x, "layer" + std::to_string(i) + ".");
  }
  g.layer = static_cast<int>(m.layers);
  x = b.norm(x, "final_norm");
  Trunk trunk;
  if (config::objective(m) == config::Objective::fields) {
    trunk.numbers = fields(b, x);
    return trunk;
  }
  if (m.class_token) {
    x = g.op("first", {x});
  } else {
    const double share = 1.0 / static_cast<double>(g.shape(x).size("seq"));
    x = g.scale(g.sum_to(x, {{b.batch(), b.embed()}, b.dtype()}), share);
  }
  const bool classes = config::objective(m) == config::Objective::classes;
  const tensor::Dim out = {classes ? "class" : "target", m.outputs};
  (classes ? trunk.classes : trunk.numbers) = b.linear(x, classes ? "head.classes" : "head.numbers", {b.embed(), out},
                                                       "batch " + out.name, b.deviation(), true);
  return trunk;
}

}  // namespace

Family vit() {
  using config::Objective;
  config::Model m;
  m.norm_epsilon = 1e-12;
  m.activation = "gelu";
  m.causal = false;
  m.tied = false;
  m.patch = 16;
  m.objective = "classes";
  return {
      .config = {.name = "vit",
                 .about = "ViT: patches of an image through a transformer, to a class, numbers, or fields",
                 .defaults = m,
                 .reads_tokens = false,
                 .reads_images = true,
                 .has_blocks = true,
                 .objectives = {"numbers", "fields"},
                 .keys = {"model.patch", "model.class_token"}},
      .build = vit_trunk,
      .hugging_face = {
          .model_types = {"vit"},
          .architectures = {{"ViTForImageClassification", Objective::classes},
                            {"ViTForImageClassification", Objective::numbers},
                            {"ViTForFields", Objective::fields}},  // not one of transformers
          .prefix = "vit.",
          .config = {is("hidden_size", "embed", "768"), is("intermediate_size", "ffn", "3072"),
                     is("num_hidden_layers", "layers", "12"), is("num_attention_heads", "heads", "12"),
                     is("layer_norm_eps", "norm_epsilon", "1e-12"), is("image_size", "image_height", "224"),
                     is("image_size", "image_width", "224"), is("num_channels", "image_channels", "3"),
                     ConfigRow{"image_dtype", ConfigRow::Use::is, "image_dtype", "\"uint8\"",
                               "uint8:uint8 float32:fp32"},
                     is("image_mean", "image_mean", "null"), is("image_std", "image_deviation", "null"),
                     is("patch_size", "patch", "16"), activation_is("hidden_act", "\"gelu\""), only("qkv_bias", "true"),
                     ignored("attention_probs_dropout_prob"), ignored("hidden_dropout_prob"), ignored("encoder_stride"),
                     ignored("pooler_act"), ignored("pooler_output_size")},
          .weights =
              {{"embeddings.cls_token", ", , embed", {"embedding.class"}},
               {"embeddings.position_embeddings", ", position , embed", {"embedding.positions"}},
               {"embeddings.patch_embeddings.projection.weight",
                "embed , channel , kernel_height , kernel_width",
                {"embedding.patches.weight"}},
               {"embeddings.patch_embeddings.projection.bias", "embed", {"embedding.patches.bias"}},
               {"encoder.layer.*.layernorm_before.weight", "embed", {"layer*.attention_norm.gamma"}},
               {"encoder.layer.*.layernorm_before.bias", "embed", {"layer*.attention_norm.beta"}},
               {"encoder.layer.*.attention.attention.query.weight",
                "kv_heads group head_dim , embed",
                {"layer*.attention.query.weight"}},
               {"encoder.layer.*.attention.attention.query.bias",
                "kv_heads group head_dim",
                {"layer*.attention.query.bias"}},
               {"encoder.layer.*.attention.attention.key.weight",
                "kv_heads head_dim , embed",
                {"layer*.attention.key.weight"}},
               {"encoder.layer.*.attention.attention.key.bias", "kv_heads head_dim", {"layer*.attention.key.bias"}},
               {"encoder.layer.*.attention.attention.value.weight",
                "kv_heads head_dim , embed",
                {"layer*.attention.value.weight"}},
               {"encoder.layer.*.attention.attention.value.bias", "kv_heads head_dim", {"layer*.attention.value.bias"}},
               {"encoder.layer.*.attention.output.dense.weight",
                "embed , kv_heads group head_dim",
                {"layer*.attention.output.weight"}},
               {"encoder.layer.*.attention.output.dense.bias", "embed", {"layer*.attention.output.bias"}},
               {"encoder.layer.*.layernorm_after.weight", "embed", {"layer*.ffn_norm.gamma"}},
               {"encoder.layer.*.layernorm_after.bias", "embed", {"layer*.ffn_norm.beta"}},
               {"encoder.layer.*.intermediate.dense.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
               {"encoder.layer.*.intermediate.dense.bias", "ffn", {"layer*.ffn.up.bias"}},
               {"encoder.layer.*.output.dense.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
               {"encoder.layer.*.output.dense.bias", "embed", {"layer*.ffn.down.bias"}},
               {"layernorm.weight", "embed", {"final_norm.gamma"}},
               {"layernorm.bias", "embed", {"final_norm.beta"}},
               {"classifier.weight", "class , embed", {"head.classes.weight"}},
               {"classifier.bias", "class", {"head.classes.bias"}},
               {"classifier.weight", "target , embed", {"head.numbers.weight"}},
               {"classifier.bias", "target", {"head.numbers.bias"}},
               // Of torch.nn.ConvTranspose2d.
               {"decoder.weight", "embed , target , kernel_height , kernel_width", {"head.fields.weight"}},
               {"decoder.bias", "target", {"head.fields.bias"}}},
          .computed = {"pooler.dense.weight", "pooler.dense.bias"}}};
}

}  // namespace kintsugi::models

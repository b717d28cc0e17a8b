// BERT (Devlin et al. 2019): an encoder with token types, norms after each residual sum, and heads for masked tokens,
// next-sentence prediction, and whole samples.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family bert() {
  using config::Objective;
  config::Model m;
  m.norm_place = "after";
  m.norm_epsilon = 1e-12;
  m.activation = "gelu";
  m.causal = false;
  m.embed_norm = true;
  m.token_types = 2;
  m.bias_head = true;
  m.objective = "masked_next";
  return {.config = {.name = "bert",
                     .about = "BERT: reads both ways, learns masked tokens, and a class or numbers of samples",
                     .defaults = m,
                     .objectives = {"masked", "classes", "numbers"}},
          .build = transformer,
          .hugging_face = {
              .model_types = {"bert"},
              .architectures = {{"BertForPreTraining", Objective::masked_next},
                                {"BertForMaskedLM", Objective::masked},
                                {"BertForSequenceClassification", Objective::classes},
                                {"BertForSequenceClassification", Objective::numbers}},
              .prefix = "bert.",
              .config = {is("vocab_size", "vocab", "30522"),
                         is("hidden_size", "embed", "768"),
                         is("intermediate_size", "ffn", "3072"),
                         is("num_hidden_layers", "layers", "12"),
                         is("num_attention_heads", "heads", "12"),
                         is("max_position_embeddings", "context", "512"),
                         is("type_vocab_size", "token_types", "2"),
                         is("layer_norm_eps", "norm_epsilon", "1e-12"),
                         activation_is("hidden_act", "\"gelu\""),
                         only("position_embedding_type", "\"absolute\""),
                         only("is_decoder", "false"),
                         only("add_cross_attention", "false"),
                         only("tie_word_embeddings", "true"),
                         ignored("attention_probs_dropout_prob"),
                         ignored("hidden_dropout_prob"),
                         ignored("classifier_dropout"),
                         ignored("directionality"),
                         ignored("pooler_fc_size"),
                         ignored("pooler_num_attention_heads"),
                         ignored("pooler_num_fc_layers"),
                         ignored("pooler_size_per_head"),
                         ignored("pooler_type")},
              .weights =
                  {{"embeddings.word_embeddings.weight", "vocab , embed", {"embedding.table"}},
                   {"embeddings.position_embeddings.weight", "position , embed", {"embedding.positions"}},
                   {"embeddings.token_type_embeddings.weight", "type , embed", {"embedding.types"}},
                   {"embeddings.LayerNorm.weight", "embed", {"embedding.norm.gamma"}},
                   {"embeddings.LayerNorm.bias", "embed", {"embedding.norm.beta"}},
                   {"encoder.layer.*.attention.self.query.weight",
                    "kv_heads group head_dim , embed",
                    {"layer*.attention.query.weight"}},
                   {"encoder.layer.*.attention.self.query.bias",
                    "kv_heads group head_dim",
                    {"layer*.attention.query.bias"}},
                   {"encoder.layer.*.attention.self.key.weight",
                    "kv_heads head_dim , embed",
                    {"layer*.attention.key.weight"}},
                   {"encoder.layer.*.attention.self.key.bias", "kv_heads head_dim", {"layer*.attention.key.bias"}},
                   {"encoder.layer.*.attention.self.value.weight",
                    "kv_heads head_dim , embed",
                    {"layer*.attention.value.weight"}},
                   {"encoder.layer.*.attention.self.value.bias", "kv_heads head_dim", {"layer*.attention.value.bias"}},
                   {"encoder.layer.*.attention.output.dense.weight",
                    "embed , kv_heads group head_dim",
                    {"layer*.attention.output.weight"}},
                   {"encoder.layer.*.attention.output.dense.bias", "embed", {"layer*.attention.output.bias"}},
                   {"encoder.layer.*.attention.output.LayerNorm.weight", "embed", {"layer*.attention_norm.gamma"}},
                   {"encoder.layer.*.attention.output.LayerNorm.bias", "embed", {"layer*.attention_norm.beta"}},
                   {"encoder.layer.*.intermediate.dense.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
                   {"encoder.layer.*.intermediate.dense.bias", "ffn", {"layer*.ffn.up.bias"}},
                   {"encoder.layer.*.output.dense.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
                   {"encoder.layer.*.output.dense.bias", "embed", {"layer*.ffn.down.bias"}},
                   {"encoder.layer.*.output.LayerNorm.weight", "embed", {"layer*.ffn_norm.gamma"}},
                   {"encoder.layer.*.output.LayerNorm.bias", "embed", {"layer*.ffn_norm.beta"}},
                   {"pooler.dense.weight", "pooled , embed", {"pooler.weight"}},
                   {"pooler.dense.bias", "pooled", {"pooler.bias"}},
                   {"cls.predictions.transform.dense.weight", "pooled , embed", {"head.transform.weight"}},
                   {"cls.predictions.transform.dense.bias", "pooled", {"head.transform.bias"}},
                   {"cls.predictions.transform.LayerNorm.weight", "embed", {"head.norm.gamma"}},
                   {"cls.predictions.transform.LayerNorm.bias", "embed", {"head.norm.beta"}},
                   {"cls.predictions.bias", "vocab", {"head.bias"}},
                   {"cls.seq_relationship.weight", "class , embed", {"head.next.weight"}},
                   {"cls.seq_relationship.bias", "class", {"head.next.bias"}},
                   {"classifier.weight", "class , embed", {"head.classes.weight"}},
                   {"classifier.bias", "class", {"head.classes.bias"}},
                   {"classifier.weight", "target , embed", {"head.numbers.weight"}},
                   {"classifier.bias", "target", {"head.numbers.bias"}}},
              .computed = {"embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"},
              .older = {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}}};
}

}  // namespace kintsugi::models

#include "kintsugi/tasks/results.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/tasks/encode.h"
#include "kintsugi/tasks/python_random.h"

namespace kintsugi::tasks::results_test {
namespace {

using evaluate::Score;

Document document(std::vector<int64_t> characters, size_t gold) {
  Document d = {.id = "", .requests = {}, .gold = gold};
  for (const int64_t n : characters) d.requests.push_back({.context = "c", .continuation = " x", .characters = n});
  return d;
}

TEST(TaskResults, AccuraciesAndTheirErrors) {
  Task task = {.name = "t", .metrics = {Metric::accuracy, Metric::normalized_accuracy}, .files = {}, .forms = {}};
  const std::vector<Document> documents = {document({2, 8}, 0), document({4, 4}, 1), document({4, 4}, 1)};
  const std::vector<Score> scores = {{-2, 1, false}, {-4, 1, false}, {-1, 1, false},
                                     {-2, 1, false}, {-3, 1, false}, {-3, 1, false}};  // a tie: the first
  const TaskResult result = evaluate_scores(task, documents, scores);
  EXPECT_EQ(result.documents[0].choice, 0u);
  EXPECT_EQ(result.documents[0].normalized_choice, 1u);  // -4 / 8 > -2 / 2
  EXPECT_EQ(result.documents[2].choice, 0u);
  ASSERT_EQ(result.metrics.size(), 2u);
  EXPECT_DOUBLE_EQ(result.metrics[0].value, 1.0 / 3);
  EXPECT_DOUBLE_EQ(*result.metrics[0].standard_error, std::sqrt(2.0 / 3 / 2) / std::sqrt(3.0));
  EXPECT_EQ(result.metrics[1].value, 0);
  EXPECT_EQ(describe_documents(std::span(documents).first(1), result),
            "{\"document\":0,\"label\":0,\"choice\":0,\"normalized_choice\":1,\"log_likelihoods\":[-2.0,-4.0],"
            "\"tokens\":[1,1],\"greedy\":[false,false]}\n");
}

TEST(TaskResults, AGroupIsTheMeanOfCenteredAccuracies) {
  Task task = {.name = "t",
               .metrics = {Metric::token_accuracy, Metric::centered_accuracy},
               .files = {},
               .forms = {},
               .chance = 0.5};
  const std::vector<Document> documents = {document({1, 1}, 1), document({1, 1}, 1)};
  const std::vector<Score> scores = {{-4, 2, false}, {-5, 5, false}, {-3, 3, false}, {-2, 2, false}};
  const TaskResult first = evaluate_scores(task, documents, scores);  // -2 < -1 per token; a tie
  EXPECT_EQ(first.documents[0].choice, 0u);
  EXPECT_EQ(first.documents[0].token_choice, 1u);
  EXPECT_EQ(first.metrics[0].value, 0.5);
  EXPECT_EQ(first.metrics[1].value, 0);
  EXPECT_DOUBLE_EQ(*first.metrics[1].standard_error, 2 * *first.metrics[0].standard_error);
  task.chance = 0;
  const TaskResult second = evaluate_scores(task, documents, scores);
  const std::vector<TaskResult> both = {first, second};
  const auto mean = mean_of_group(both);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->value, 0.25);
  EXPECT_DOUBLE_EQ(*mean->standard_error, std::sqrt(1 + 0.25) / 2);
  task.metrics.pop_back();
  const std::vector<TaskResult> without = {first, evaluate_scores(task, documents, scores)};
  EXPECT_FALSE(mean_of_group(without));
  EXPECT_EQ(describe_documents(documents, first, "t").find("{\"task\":\"t\",\"document\":0,"), 0u);
}

TEST(TaskResults, ContinuationsArePredictedOrNot) {
  Task task = {.name = "t",
               .kind = Kind::continuation,
               .metrics = {Metric::accuracy, Metric::perplexity},
               .files = {},
               .forms = {}};
  const std::vector<Document> documents = {document({2}, 0), document({2}, 0)};
  const TaskResult result = evaluate_scores(task, documents, std::vector<Score>{{-1, 1, true}, {-3, 2, false}});
  EXPECT_EQ(result.metrics[0].value, 0.5);
  EXPECT_DOUBLE_EQ(result.metrics[1].value, std::exp(2.0));
  EXPECT_DOUBLE_EQ(*result.metrics[1].standard_error, std::exp(2.0));
}

// One token per byte, except "ab", so that the end of a context depends on what follows.
class Pairs : public text::Tokenizer {
 public:
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (size_t i = 0; i < text.size(); ++i) {
      const bool pair = text.substr(i, 2) == "ab";
      ids.push_back(pair ? 256 : static_cast<unsigned char>(text[i]));
      i += pair ? 1 : 0;
    }
  }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  int32_t vocab_size() const override { return 258; }
  std::optional<int32_t> end_of_text() const override { return 257; }
  std::string kind() const override { return "pairs"; }
  std::string to_json() const override { return ""; }
};

EncodedRequest encode(const std::string& context, const std::string& continuation, int64_t most = 100) {
  const Document d = {.id = "", .requests = {{.context = context, .continuation = continuation}}};
  const Task task = {.name = "t", .metrics = {}, .files = {}, .forms = {}};
  return encode_requests(task, Pairs(), std::span(&d, 1), {.context = most, .vocab = 258})[0];
}

TEST(EncodeRequests, TogetherAndCut) {
  EXPECT_EQ(encode("x", " y").ids, (std::vector<int32_t>{'x', ' ', 'y'}));
  EXPECT_EQ(encode("x", " y").scored, 2);
  EXPECT_EQ(encode("x  ", "y").scored, 3);  // white space goes to the continuation
  EXPECT_EQ(encode("x \xC2\xA0", "y").scored, 4);
  // One token spans the end of the context and the beginning of the continuation: the continuation starts after as many
  // tokens as the context has.
  EXPECT_EQ(encode("xa", "by").ids, (std::vector<int32_t>{'x', 256, 'y'}));
  EXPECT_EQ(encode("xa", "by").scored, 1);
  EXPECT_EQ(encode("", "yz").ids, (std::vector<int32_t>{257, 'y', 'z'}));
  EXPECT_EQ(encode("", "yz").scored, 2);
  const EncodedRequest cut = encode("0123456789", " y", 4);
  EXPECT_EQ(cut.ids, (std::vector<int32_t>{'7', '8', '9', ' ', 'y'}));
  EXPECT_EQ(cut.scored, 2);
  EXPECT_TRUE(cut.cut);
  EXPECT_FALSE(encode("012", " y", 4).cut);
}

TEST(EncodeRequests, ScoresWhatTheRequestsOfADocumentShareOrNot) {
  Task task = {
      .name = "t", .metrics = {}, .files = {}, .forms = {}, .scored = Scored::after_common_prefix, .begin = true};
  Document d = {.id = "",
                .requests = {{.context = "x ", .continuation = "yes"},
                             {.context = "x ", .continuation = "yellow"},
                             {.context = "x ", .continuation = "ye"}}};
  const EncodeOptions options = {.context = 100, .vocab = 258};
  const auto choices = encode_requests(task, Pairs(), std::span(&d, 1), options);
  EXPECT_EQ(choices[0].ids, (std::vector<int32_t>{257, 'x', ' ', 'y', 'e', 's'}));
  EXPECT_EQ(choices[0].scored, 1);
  EXPECT_EQ(choices[1].scored, 4);
  EXPECT_EQ(choices[2].scored, 1);  // it is the beginning of the others
  task.scored = Scored::common_suffix;
  d.requests = {{.context = "The cup ", .continuation = "is big"}, {.context = "A bag ", .continuation = "is big"}};
  const auto options_before = encode_requests(task, Pairs(), std::span(&d, 1), options);
  EXPECT_EQ(options_before[0].scored, 7);
  EXPECT_EQ(options_before[1].scored, 7);
  d.requests.resize(1);
  EXPECT_EQ(encode_requests(task, Pairs(), std::span(&d, 1), options)[0].scored, 14);  // all but the first token
  // A context that ends with white space: the model predicts it.
  task.scored = Scored::continuation;
  const auto apart = encode_requests(task, Pairs(), std::span(&d, 1), options);
  EXPECT_EQ(apart[0].ids[0], 257);
  EXPECT_EQ(apart[0].scored, 7);
}

// Windows of the model's context: each token is predicted once, from as many previous ones as fit.
TEST(EncodeRequests, TextsAreCutIntoWindows) {
  Document d = {.id = "", .requests = {{.context = "", .continuation = "0123456"}}};
  const Task task = {.name = "t", .kind = Kind::text, .metrics = {}, .files = {}, .forms = {}};
  const auto windows = encode_requests(task, Pairs(), std::span(&d, 1), {.context = 3, .vocab = 258});
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[0].ids, (std::vector<int32_t>{257, '0', '1', '2'}));
  EXPECT_EQ(windows[1].ids, (std::vector<int32_t>{'2', '3', '4', '5'}));
  EXPECT_EQ(windows[2].ids, (std::vector<int32_t>{'3', '4', '5', '6'}));
  EXPECT_EQ(windows[0].scored, 3);
  EXPECT_EQ(windows[1].scored, 3);
  EXPECT_EQ(windows[2].scored, 1);
  EXPECT_EQ(encode_requests(task, Pairs(), std::span(&d, 1), {.context = 7, .vocab = 258}).size(), 1u);
  const std::vector<Score> scores =
      scores_of_requests(windows, std::vector<Score>{{-1, 3, true}, {-2, 3, false}, {-4, 1, true}});
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].log_likelihood, -7);
  EXPECT_EQ(scores[0].count, 7);
  EXPECT_FALSE(scores[0].greedy);
}

TEST(TaskResults, TextsAreMeasuredByTheirWordsAndBytes) {
  Task task = {.name = "t",
               .kind = Kind::text,
               .metrics = {Metric::word_perplexity, Metric::byte_perplexity, Metric::bits_per_byte},
               .files = {},
               .forms = {}};
  std::vector<Document> documents = {document({2}, 0), document({2}, 0)};
  documents[0].words = 2, documents[0].bytes = 10, documents[1].words = 6, documents[1].bytes = 30;
  const TaskResult result = evaluate_scores(task, documents, std::vector<Score>{{-4, 3, true}, {-20, 9, false}});
  EXPECT_DOUBLE_EQ(result.metrics[0].value, std::exp(3.0));
  EXPECT_DOUBLE_EQ(result.metrics[1].value, std::exp(0.6));
  EXPECT_DOUBLE_EQ(result.metrics[2].value, 0.6 / std::log(2.0));
  // Residuals -4 + 3 * 2 = 2 and -20 + 3 * 6 = -2 over a mean of 4 words.
  EXPECT_DOUBLE_EQ(*result.metrics[0].standard_error, std::exp(3.0) * std::sqrt(8.0 / 2) / 4);
}

TEST(TaskDocuments, ExamplesStandBeforeEachContext) {
  Task task = {.name = "t", .metrics = {}, .files = {}, .forms = {}};
  std::vector<Document> documents = {document({2, 3}, 0)};
  std::vector<Document> examples = {document({1, 1}, 1), document({1}, 0), document({1}, 0)};
  examples[0].requests[1] = {.context = "Q", .continuation = " A"};
  add_shots(task, examples, 2, documents);
  for (const Request& request : documents[0].requests) {
    EXPECT_EQ(request.context, "Q A\n\nc x\n\nc");
    EXPECT_EQ(request.continuation, " x");
  }
  EXPECT_THROW(add_shots(task, examples, 4, documents), base::UserError);
}

// Python 3.11: random.Random(seed).shuffle(list(range(10))) and .sample(range(count), size).
TEST(TaskDocuments, RandomNumbersAreThoseOfPython) {
  std::vector<int> list = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  PythonRandom(1337).shuffle(std::span(list));
  EXPECT_EQ(list, (std::vector<int>{0, 3, 7, 2, 1, 6, 4, 5, 8, 9}));
  EXPECT_EQ(PythonRandom(1234).sample(30, 10), (std::vector<size_t>{24, 14, 3, 0, 2, 18, 1, 21, 25, 27}));
  EXPECT_EQ(PythonRandom(1234).sample(2000, 10),
            (std::vector<size_t>{1979, 1593, 902, 239, 15, 185, 1865, 1930, 1923, 1652}));
  EXPECT_EQ(PythonRandom(1240).sample(22, 3), (std::vector<size_t>{20, 14, 11}));
}

TEST(TaskDocuments, ExamplesAreDrawnForEachDocument) {
  Task task = {.name = "t", .metrics = {}, .files = {}, .forms = {}};
  std::vector<Document> documents;
  for (const char c : std::string("abcdef"))
    documents.push_back({.id = "", .requests = {{.context = std::string(1, c), .continuation = "?"}}});
  std::vector<Document> some = documents;
  choose_documents(task, 2, some);
  EXPECT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].requests[0].context, "a");
  task.drawn_shots = 2;
  choose_documents(task, 0, documents);
  std::string contexts;
  for (const Document& d : documents) contexts += d.requests[0].context + "|";
  EXPECT_EQ(contexts, "f?\n\na?\n\nb|f?\n\ne?\n\na|e?\n\nf?\n\nd|a?\n\nf?\n\nc|b?\n\nc?\n\nf|b?\n\nd?\n\ne|");
  EXPECT_THROW(add_shots(task, documents, 1, documents), base::UserError);
  task.drawn_shots = 6;
  EXPECT_THROW(choose_documents(task, 0, documents), base::UserError);
}

TEST(TaskDocuments, WordsAreThoseOfPython) {
  EXPECT_EQ(num_words("a  b\nc"), 3);
  EXPECT_EQ(num_words(" a b "), 4);  // re.split gives empty texts at both ends
  EXPECT_EQ(num_words("a\xC2\xA0"
                      "b"),
            2);
  EXPECT_EQ(num_words(""), 1);
}

TEST(EncodeRequests, RequestsThatCannotBeScored) {
  const auto error = [](const std::string& context, const std::string& continuation, int64_t most) -> std::string {
    try {
      encode(context, continuation, most);
      return "";
    } catch (const base::UserError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(error("x", "12345", 4),
            "[tasks] document 1, request 1: the continuation has 5 tokens, and the model reads 4");
  EXPECT_EQ(error("a", "b", 4),
            "[tasks] document 1, request 1: the tokenizer makes no tokens of the continuation \"b\"");
  EXPECT_EQ(error(" ", "b", 4), "[tasks] document 1, request 1: the tokenizer makes no tokens of the context \" \"");
}

}  // namespace
}  // namespace kintsugi::tasks::results_test

#include "kintsugi/tasks/documents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/data/text_stream.h"
#include "kintsugi/tasks/group.h"
#include "tests/paths.h"

namespace kintsugi::tasks::documents_test {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(tests::shared_folder()) / "data" / "eval";

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "kintsugi_tasks_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path write(const std::string& name, std::string_view content) const {
    base::write_file_atomically(path / name, content);
    return path / name;
  }
  fs::path path;
};

std::string text_of(const Document& d) {
  std::string text = d.id + "\n";
  for (const Request& r : d.requests) text += "[" + r.context + "][" + r.continuation + "]\n";
  return text + std::to_string(d.gold);
}

std::string error_of(const Task& task, const fs::path& path, const fs::path& folder) {
  try {
    read_documents(task, path);
    return "";
  } catch (const base::UserError& e) {
    std::string text = e.what();
    for (size_t at; (at = text.find(folder.string() + "/")) != std::string::npos;)
      text.erase(at, folder.string().size() + 1);
    return text;
  }
}

TEST(Tasks, EachFileOfTheProgramIsATaskOfThatName) {
  EXPECT_GE(task_names().size(), 10u);
  for (const std::string& name : task_names()) EXPECT_EQ(load_group(name).name, name);
}

TEST(Tasks, RequestsOfEachPublishedForm) {
  const Folder folder;
  const auto first = [&](const std::string& task, const std::string& file, std::string_view content) {
    return text_of(read_documents(load_task(task), folder.write(file, content))[0]);
  };
  EXPECT_EQ(first("arc_challenge", "a.jsonl",
                  R"({"id": "M1", "question": {"stem": "Why?", "choices": [{"text": "So", "label": "1"},)"
                  R"( {"text": "No", "label": "2"}]}, "answerKey": "2"})"),
            "M1\n[Question: Why?\nAnswer:][ So]\n[Question: Why?\nAnswer:][ No]\n1");
  EXPECT_EQ(first("arc_easy", "b.jsonl",
                  R"({"id": "M1", "question": "Why?", "choices": {"text": ["So", "No"], "label": ["A", "B"]},)"
                  R"( "answerKey": "A"})"),
            "M1\n[Question: Why?\nAnswer:][ So]\n[Question: Why?\nAnswer:][ No]\n0");
  EXPECT_EQ(first("openbookqa", "o.jsonl",
                  R"({"question": {"stem": "Air is", "choices": [{"text": "gas", "label": "A"}]}, "answerKey": "A "})"),
            "\n[Air is][ gas]\n0");
  folder.write("p-labels.lst", "1\n");
  EXPECT_EQ(first("piqa", "p.jsonl", R"({"goal": "Rest", "sol1": "Run", "sol2": "Lie "})"),
            "\n[Question: Rest\nAnswer:][ Run]\n[Question: Rest\nAnswer:][ Lie ]\n1");
  EXPECT_EQ(first("sciq", "s.json",
                  R"([{"question": "What?", "distractor1": "a", "distractor2": "b", "distractor3": "c",)"
                  R"( "correct_answer": "d", "support": " It is."}])"),
            "\n[It is.\nQuestion: What?\nAnswer:][ a]\n[It is.\nQuestion: What?\nAnswer:][ b]\n"
            "[It is.\nQuestion: What?\nAnswer:][ c]\n[It is.\nQuestion: What?\nAnswer:][ d]\n3");
  EXPECT_EQ(first("hellaswag", "h.jsonl",
                  R"({"ind": 4, "activity_label": "Roof [title]", "ctx_a": "A man sits.", "ctx_b": "he STARTS",)"
                  R"( "endings": ["to [x]  sing.", "up."], "label": 1})"),
            "4\n[Roof. : A man sits. He starts][ to  sing.]\n[Roof. : A man sits. He starts][ up.]\n1");
  EXPECT_EQ(first("winogrande", "w.jsonl",
                  R"({"sentence": "The cup fits the bag since _ is big.", "option1": "cup", "option2": "bag",)"
                  R"( "answer": "2"})"),
            "\n[The cup fits the bag since cup][ is big.]\n[The cup fits the bag since bag][ is big.]\n1");
  EXPECT_EQ(first("lambada", "l.jsonl", R"({"text": "he said to Ann"})"), "\n[he said to][ Ann]\n0");
  const char* mmlu =
      R"({"question": " 1+1? ", "subject": "high_school_math", "choices": ["1", "2", "3", "4"], "answer": 1})";
  const std::string list = "1+1?\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:]";
  const std::string about =
      "[The following are multiple choice questions (with answers) about high school math.\n\n" + list;
  EXPECT_EQ(first("mmlu", "m.jsonl", mmlu),
            "\n" + about + "[ A]\n" + about + "[ B]\n" + about + "[ C]\n" + about + "[ D]\n1");
  const std::string plain = "[Question:  1+1? \nChoices:\nA. 1\nB. 2\nC. 3\nD. 4\nAnswer:]";
  EXPECT_EQ(first("hendrycks_test", "n.jsonl", mmlu),
            "\n" + plain + "[ 1]\n" + plain + "[ 2]\n" + plain + "[ 3]\n" + plain + "[ 4]\n1");
}

// The published requests of ARC-Easy, one by one.
TEST(Tasks, ArcEasyMatchesItsPublishedRequests) {
  const fs::path published = kData / "arc_easy.rc_0shot.jsonl.gz";
  if (!fs::exists(published)) GTEST_SKIP() << "there is no " << published;
  const std::vector<Document> documents = read_documents(load_task("arc_easy"), kData / "arc");
  std::string text;
  const auto stream = data::open_text(published, data::Compression::gzip);
  for (std::string part(1 << 20, '\0');;) {
    const size_t count = stream->read(part);
    text.append(part, 0, count);
    if (count < part.size()) break;
  }
  size_t requests = 0;
  for (size_t at = 0; at < text.size(); ++requests) {
    const size_t end = text.find('\n', at);
    const base::Json line = base::Json::parse("test", "published", std::string_view(text).substr(at, end - at));
    at = end + 1;
    // Requests from 1,000,000 on score each choice without its question.
    constexpr size_t kUnconditional = 1'000'000;
    const auto number = static_cast<size_t>(line.at("doc_id").whole()), document = number % kUnconditional,
               idx = static_cast<size_t>(line.at("idx").whole());
    ASSERT_LT(document, documents.size());
    ASSERT_LT(idx, documents[document].requests.size());
    const Request& request = documents[document].requests[idx];
    EXPECT_EQ(number < kUnconditional ? request.context : "Answer:", line.at("request").at("context").text());
    EXPECT_EQ(request.continuation, line.at("request").at("continuation").text());
    EXPECT_EQ(documents[document].gold, static_cast<size_t>(line.at("label").whole()));
    EXPECT_EQ(documents[document].id, line.at("native_id").text());
  }
  size_t ours = 0;
  for (const Document& d : documents) ours += d.requests.size();
  EXPECT_EQ(requests, 2 * ours);
  EXPECT_EQ(documents.size(), 570u);
}

TEST(Tasks, OtherSharedFilesAreRead) {
  if (!fs::exists(kData)) GTEST_SKIP() << "there is no " << kData;
  EXPECT_EQ(read_documents(load_task("openbookqa"), kData / "openbookqa").size(), 500u);
  EXPECT_EQ(read_documents(load_task("piqa"), kData / "piqa").size(), 1838u);
  EXPECT_EQ(read_documents(load_task("sciq"), kData / "sciq").size(), 1000u);
}

TEST(Tasks, DataInAnotherFormIsAnErrorThatNamesItsPlace) {
  const Folder folder;
  const Task piqa = load_task("piqa"), arc = load_task("arc_easy");
  const auto error = [&](const Task& task, std::string_view content) {
    return error_of(task, folder.write("x.jsonl", content), folder.path);
  };
  EXPECT_EQ(error(piqa, R"({"goal": "a", "sol1": "b"})"),
            "[tasks] \"x.jsonl\":1: there is no \"sol2\", which a record of the task piqa has");
  EXPECT_EQ(error(piqa,
                  "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 1}\n"
                  "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 2}\n"),
            "[tasks] \"x.jsonl\":2: the label \"2\" is not a number from 0 to 1");
  EXPECT_EQ(error(piqa, "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 1}\n\n{}"),
            "[tasks] \"x.jsonl\":2: the line is empty; each has a JSON object");
  EXPECT_EQ(error(piqa, R"({"goal": "a", "sol1": "", "sol2": "c", "label": 1})"),
            "[tasks] \"x.jsonl\":1: choice 1 is empty");
  EXPECT_EQ(error(arc, R"({"question": {"stem": "q", "choices": [{"text": "a", "label": "A"}]}, "answerKey": "C"})"),
            "[tasks] \"x.jsonl\":1: the label \"C\" is that of no choice");
  EXPECT_EQ(error(arc, ""), "[tasks] \"x.jsonl\" has no documents");
  folder.write("y-labels.lst", "1\n0\n");
  EXPECT_EQ(error_of(piqa, folder.write("y.jsonl", R"({"goal": "a", "sol1": "b", "sol2": "c"})"), folder.path),
            "[tasks] \"y-labels.lst\" has 2 labels and \"y.jsonl\" 1 documents");
  fs::create_directory(folder.path / "empty");
  EXPECT_EQ(error_of(piqa, folder.path / "empty", folder.path),
            "[tasks] the folder \"empty\" holds none of valid.jsonl; name the file of the task piqa");
}

TEST(Tasks, CoreReadsTheFilesOfLlmFoundry) {
  const Folder folder;
  const Group core = load_group("core");
  ASSERT_EQ(core.tasks.size(), 22u);
  EXPECT_FALSE(core.single);
  EXPECT_TRUE(load_group("piqa").single);
  const auto first = [&](const std::string& name, std::string_view content) {
    const Task& task = *std::ranges::find(core.tasks, name, &Task::name);
    fs::create_directories((folder.path / task.files[0]).parent_path());
    folder.write(task.files[0], content);
    return text_of(read_documents(task, folder.path)[0]);
  };
  EXPECT_EQ(first("boolq", R"({"query": "Is it?", "choices": ["no", "yes"], "gold": 1})"),
            "\n[Is it?\nAnswer: ][no]\n[Is it?\nAnswer: ][yes]\n1");
  EXPECT_EQ(first("winograd", R"({"context_options": ["The cup", "The bag"], "continuation": "is big.", "gold": 0})"),
            "\n[The cup ][is big.]\n[The bag ][is big.]\n0");
  EXPECT_EQ(first("jeopardy", R"({"context": "RIVERS: the longest ", "continuation": "Nile"})"),
            "\n[RIVERS: the longest\nAnswer: ][Nile]\n0");
  const Task& boolq = *std::ranges::find(core.tasks, "boolq", &Task::name);
  EXPECT_EQ(boolq.drawn_shots, 10);
  EXPECT_EQ(boolq.chance, 0.62);
  EXPECT_EQ(boolq.metrics, (std::vector<Metric>{Metric::token_accuracy, Metric::centered_accuracy}));
  EXPECT_EQ(error_of(core.tasks[2], folder.path, folder.path),
            "[tasks] the folder \"" + folder.path.string() +
                "\" holds none of world_knowledge/bigbench_qa_wikidata.jsonl; name the file of the task "
                "bigbench_qa_wikidata");
}

TEST(Tasks, AFileThatIsNoGroup) {
  const auto error = [](std::string_view content) -> std::string {
    try {
      parse_group(content, "g.json");
      return "";
    } catch (const base::UserError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(error(R"({"name": "g", "tasks": []})"),
            "[tasks] \"g.json\":1: \"tasks\" is a list; it should be a list of tasks");
  EXPECT_EQ(error(R"({"name": "g", "tasks": [{"like": "piqa", "shot": 1}]})"),
            "[tasks] \"g.json\":1: unknown member \"shot\"; did you mean \"shots\"?");
  EXPECT_EQ(error(R"({"name": "g", "tasks": [{"like": "piqa"}, {"like": "piqa", "file": "b.jsonl"}]})"),
            "[tasks] \"g.json\":1: there is another \"piqa\"");
  EXPECT_EQ(error(R"({"name": "g", "tasks": [{"like": "piqa", "chance": 1}]})"),
            "[tasks] \"g.json\":1: \"tasks[0].chance\" is 1; it should be a number from 0 to below 1");
  EXPECT_EQ(error(R"({"name": "g", "tasks": [{"like": "wikitext", "chance": 0}]})"),
            "[tasks] \"g.json\":1: texts have no accuracy");
}

TEST(Tasks, AFileThatIsNoTask) {
  const auto error = [](std::string_view content) -> std::string {
    try {
      parse_task(content, "t.json");
      return "";
    } catch (const base::UserError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(error(R"({"name": "t", "kind": "rank"})"),
            "[tasks] \"t.json\":1: \"kind\" is \"rank\"; it should be \"choices\", \"continuation\" or \"text\"");
  EXPECT_EQ(error(R"({"name": "t", "kind": "choices", "metrics": ["perplexity"], "forms": []})"),
            "[tasks] \"t.json\":1: the metric \"perplexity\" is not one of choices");
  EXPECT_EQ(error(R"({"nam": "t"})"), "[tasks] \"t.json\":1: unknown member \"nam\"; did you mean \"name\"?");
  try {
    load_task("arc_esy");
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_EQ(std::string(e.what()).find("[tasks] there is no task \"arc_esy\"; did you mean \"arc_easy\"? There are "),
              0u)
        << e.what();
  }
}

}  // namespace
}  // namespace kintsugi::tasks::documents_test

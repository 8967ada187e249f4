// rondo classify and rondo eval on images: order, batches, lists, broken files, loops, names.
#include <sstream>

#include "tests/cli/authors.h"
#include "tests/cli/pictures.h"
#include "tests/cli/tampering.h"

namespace rondo::testing {
namespace {

std::vector<std::string> tab_fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) {
    fields.push_back(field);
  }
  return fields;
}

// One network for all cases.
class ClassifyVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    pictures_ = new Pictures;
    rondo_ok(pictures_->command("run"));
  }
  static void TearDownTestSuite() {
    delete pictures_;
    pictures_ = nullptr;
  }
  static std::string file(const std::string& name) { return pictures_->file(name); }
  static Arguments words(const Arguments& more) {
    Arguments all = {"classify", file("run")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string classify(const Arguments& more) { return rondo_ok(words(more)).out; }
  static Result in_shell(const std::string& script) {
    return run_program("/bin/sh", {"-c", script});
  }
  static std::string program() {
    return std::string(RONDO_BINARY) + " classify " + file("run") + " ";
  }
  static std::vector<std::string> test_paths() {
    std::vector<std::string> paths;
    for (int64_t c = 0; c < Pictures::kClasses; ++c) {
      for (int64_t i = 0; i < Pictures::kEach; ++i) {
        paths.push_back(file(Pictures::fmt_path("test", c, i)));
      }
    }
    return paths;
  }
  static std::vector<std::string> paths_of(const std::string& out) {
    std::vector<std::string> paths;
    for (const std::string& line : lines_of(out)) {
      paths.push_back(tab_fields(line).front());
    }
    return paths;
  }
  static Pictures* pictures_;
};
Pictures* ClassifyVerb::pictures_ = nullptr;

TEST_F(ClassifyVerb, OneLineAnImageInOrder) {
  const std::string out = classify({file("test")});
  EXPECT_EQ(paths_of(out), test_paths());
  for (const std::string& line : lines_of(out)) {
    const std::vector<std::string> fields = tab_fields(line);
    ASSERT_EQ(fields.size(), 6u) << line;
    double before = 100.0;
    for (size_t i = 1; i < fields.size(); ++i) {
      EXPECT_EQ(fields[i].rfind("shade ", 0), 0u) << line;
      EXPECT_EQ(fields[i].back(), '%') << line;
      const double percent = std::stod(fields[i].substr(fields[i].rfind(' ')));
      EXPECT_LE(percent, before) << line;
      before = percent;
    }
  }
  const std::string few = file("test/c1/0.png");
  EXPECT_EQ(paths_of(classify({few, file("test/c0"), few}).c_str()),
            std::vector<std::string>({few, file("test/c0/0.png"), file("test/c0/1.png"),
                                      file("test/c0/2.png"), file("test/c0/3.png"), few}));
  EXPECT_EQ(tab_fields(classify({few, "--top", "1"})).size(), 2u);
  EXPECT_EQ(tab_fields(classify({few, "--top", "100"})).size(), 7u);
}

TEST_F(ClassifyVerb, TextDoesNotDependOnBatchOrThreads) {
  const std::string text = classify({file("test")});
  for (const char* batch : {"1", "5", "24", "1000"}) {
    EXPECT_EQ(classify({file("test"), "--batch", batch}), text) << batch;
  }
  EXPECT_EQ(classify({file("test"), "--threads", "1"}), text);
  EXPECT_EQ(classify({file("test"), "--threads", "5"}), text);
  EXPECT_EQ(classify({file("run") + "/../test"}).size(), text.size() + 24 * 7) << "same answers";
}

TEST_F(ClassifyVerb, ListsInFilesAndPipes) {
  std::string list;
  for (const std::string& path : test_paths()) {
    list += path + (list.size() % 2 == 0 ? "\r\n\n" : "\n");
  }
  list.pop_back();
  pictures_->put("list", list);
  const std::string text = classify({file("test")});
  EXPECT_EQ(classify({"--list", file("list")}), text);
  EXPECT_EQ(in_shell(program() + "--list - < " + file("list")).out, text);
  EXPECT_EQ(in_shell("cat " + file("list") + " | " + program() + "--list - --batch 7").out, text);
  const std::string both = classify({file("train/c0"), "--list", file("list")});
  EXPECT_EQ(both, classify({file("train/c0")}) + text);
  pictures_->put("nothing", "\n\n");
  EXPECT_EQ(classify({"--list", file("nothing")}), "");
  EXPECT_EQ(classify({"--list", "-"}), "") << "/dev/null";
}

TEST_F(ClassifyVerb, BrokenImagesAreNamedAndTheOthersGoOn) {
  const std::string text = classify({file("test")});
  std::string list;
  std::vector<std::string> broken;
  for (const std::string& path : test_paths()) {
    const auto number = std::to_string(broken.size());
    pictures_->put("broken/" + number + ".png", slurp(path).substr(0, 60));
    broken.push_back(file("broken/" + number + ".png"));
    list += broken.back() + "\n" + path + "\n";
  }
  pictures_->put("broken.list", list + file("missing.png") + "\n" + file("test") + "\n");
  for (const char* batch : {"32", "5", "1"}) {
    const Result result = rondo(words({"--list", file("broken.list"), "--batch", batch}));
    EXPECT_EQ(result.code, 3);
    EXPECT_EQ(result.out, text) << "exactly the good ones, in order";
    const std::vector<std::string> said = lines_of(result.err);
    ASSERT_EQ(said.size(), broken.size() + 4) << result.err;  // the third: the time taken
    for (size_t i = 0; i < broken.size(); ++i) {
      EXPECT_EQ(said[i].rfind("warning: " + broken[i] + ": ", 0), 0u) << said[i];
    }
    EXPECT_EQ(said[broken.size()], "warning: " + file("missing.png") +
                                       ": cannot open for reading: No such file or directory");
    EXPECT_EQ(said[broken.size() + 1].rfind("warning: " + file("test") + ": ", 0), 0u);
    EXPECT_EQ(said.back(), "rondo: 26 of 50 images could not be read");
  }
}

TEST_F(ClassifyVerb, JsonForPrograms) {
  pictures_->put("odd \"name\".png", "no image");
  const Result result = rondo(words(
      {file("test/c2/1.png"), file("odd \"name\".png"), file("test/c5"), "--json", "--top", "6"}));
  EXPECT_EQ(result.code, 3);
  const std::vector<std::string> rows = lines_of(result.out);
  ASSERT_EQ(rows.size(), 6u);
  const auto first = nlohmann::json::parse(rows[0]);
  EXPECT_EQ(first.at("path"), file("test/c2/1.png"));
  ASSERT_EQ(first.at("top").size(), 6u);
  double sum = 0;
  for (const auto& c : first.at("top")) {
    sum += c.at("probability").get<double>();
    const std::string id = c.at("class");
    EXPECT_EQ(c.at("title"), "shade " + id.substr(1));
  }
  EXPECT_NEAR(sum, 1.0, 1e-9);
  const auto second = nlohmann::json::parse(rows[1]);
  EXPECT_EQ(second.at("path"), file("odd \"name\".png"));
  EXPECT_TRUE(contains(second.at("error"), "odd \"name\".png: ")) << rows[1];
  EXPECT_FALSE(second.contains("top"));
}

TEST_F(ClassifyVerb, AgreesWithEval) {
  int64_t right = 0;
  for (const std::string& line : lines_of(classify({file("test")}))) {
    const std::vector<std::string> fields = tab_fields(line);
    const char label = fields[0][fields[0].size() - 7];  // .../c3/0.png
    right += fields[1].rfind(std::string("shade ") + label + " ", 0) == 0 ? 1 : 0;
  }
  EXPECT_GE(right, 12) << "it has learned";
  const auto json = rondo_ok({"eval", file("run"), "--json"}).json();
  EXPECT_EQ(json.at("images"), 24);
  EXPECT_NEAR(json.at("accuracy").get<double>(), 100.0 * static_cast<double>(right) / 24, 1e-9);
  EXPECT_GE(json.at("top_five").get<double>(), json.at("accuracy").get<double>());
  EXPECT_GT(json.at("loss").get<double>(), 0.0);
  EXPECT_EQ(json.at("unreadable").size(), 0u);
  double by_class = 0;
  ASSERT_EQ(json.at("by_class").size(), 6u);
  for (size_t c = 0; c < 6; ++c) {
    const auto& one = json.at("by_class")[c];
    EXPECT_EQ(one.at("class"), "c" + std::to_string(c));
    EXPECT_EQ(one.at("title"), "shade " + std::to_string(c));
    EXPECT_EQ(one.at("images"), 4);
    by_class += one.at("accuracy").get<double>() / 6;
  }
  EXPECT_NEAR(by_class, json.at("accuracy").get<double>(), 1e-9);
}

TEST_F(ClassifyVerb, EvalOfOtherDataAndOfDamage) {
  const std::string text = rondo_ok({"eval", file("run"), "--split", "train"}).out;
  EXPECT_TRUE(contains(text, "images            24\naccuracy          ")) << text;
  EXPECT_FALSE(contains(text, "could not be read")) << text;
  std::filesystem::copy(file("test"), file("damaged"), std::filesystem::copy_options::recursive);
  pictures_->put("damaged/c3/2.png", "no image");
  const Result damaged =
      rondo_ok({"eval", file("run"), "--data", file("damaged"), "--batch", "5", "--json"});
  EXPECT_EQ(damaged.json().at("images"), 23);
  EXPECT_EQ(damaged.json().at("unreadable").at(0).at("name"), file("damaged/c3/2.png"));
  EXPECT_TRUE(contains(damaged.err, file("damaged/c3/2.png"))) << damaged.err;
  EXPECT_TRUE(contains(rondo_ok({"eval", file("run"), "--data", file("damaged")}).out,
                       "could not be read 1\n"));
  expect_refusal(rondo({"eval", file("run"), "--split", "valid"}), ExitCode::usage,
                 "has no valid data");
  expect_refusal(rondo({"eval", file("run"), "--without-state"}), ExitCode::usage,
                 "--without-state is for language models");
  std::filesystem::create_directories(file("damaged/c9"));
  pictures_->put("damaged/c9/1.png", slurp(file("test/c0/0.png")));
  const Result more = rondo({"eval", file("run"), "--data", file("damaged")});
  EXPECT_EQ(more.code, 3);
  EXPECT_TRUE(contains(more.err, "expected at least 7")) << more.err;
  std::filesystem::remove_all(file("damaged/c0"));
  const Result shifted = rondo_ok({"eval", file("run"), "--data", file("damaged")});
  EXPECT_TRUE(contains(shifted.err, "class 0 is 'c1', but the network was trained with 'c0'"))
      << shifted.err;
}

TEST_F(ClassifyVerb, MoreAndFewerLoops) {
  const std::string text = classify({file("test")});
  EXPECT_EQ(classify({file("test"), "--loops", "2"}), text) << "as trained";
  for (const char* loops : {"1", "5"}) {
    const std::string other = classify({file("test"), "--loops", loops});
    EXPECT_EQ(paths_of(other), test_paths());
    EXPECT_NE(other, text) << loops;
  }
  EXPECT_EQ(rondo_ok({"eval", file("run"), "--loops", "5", "--json"}).json().at("images"), 24);
  rondo_ok(pictures_->command(
      "projecting", {"--set", "model.depth.recursive.projection=1", "--set", "train.steps=1"}));
  EXPECT_EQ(paths_of(rondo_ok({"classify", file("projecting"), file("test"), "--loops", "1"}).out),
            test_paths());
  expect_refusal(rondo({"classify", file("projecting"), file("test"), "--loops", "3"}),
                 ExitCode::bad_input, "cannot apply 3 loops");
  rondo_ok(pictures_->command("vanilla",
                              {"--set", "model.depth.scheme=vanilla", "--set", "train.steps=1"}));
  expect_refusal(rondo({"classify", file("vanilla"), file("test"), "--loops", "3"}),
                 ExitCode::usage, "has no loops");
}

TEST_F(ClassifyVerb, NamesOfClassesFromAFile) {
  pictures_->put("names", "black\nash\niron\nsilver\npearl\nw\twhite\n");
  const std::string named = classify({file("test/c0/0.png"), "--classes", file("names")});
  for (const char* name : {"black ", "ash "}) {
    EXPECT_TRUE(contains(named, name)) << named;
  }
  pictures_->put("few", "black\nwhite\n");
  expect_refusal(rondo(words({file("test"), "--classes", file("few")})), ExitCode::bad_input,
                 "few: expected 6 classes, as in the network, got 2");
}

// It contains its class names and its image preparation.
TEST_F(ClassifyVerb, AModelFileAloneAnswersAsItsRun) {
  std::filesystem::create_directories(file("elsewhere"));
  std::filesystem::copy_file(file("run/best.safetensors"), file("elsewhere/model.safetensors"));
  const std::string alone =
      rondo_ok({"classify", file("elsewhere/model.safetensors"), file("test/c0/0.png"), "--json"})
          .out;
  EXPECT_EQ(alone, rondo_ok({"classify", file("run"), file("test/c0/0.png"), "--json"}).out);
  EXPECT_TRUE(contains(alone, "\"title\":\"shade 0\"")) << alone;
}

TEST_F(ClassifyVerb, DamagedAndSpoiltModelsAreRefused) {
  const std::string model = file("run/best.safetensors");
  const std::string broken = file("broken.safetensors");
  const auto refused = [&](const std::string& part) {
    for (const Arguments& more : {Arguments{}, Arguments{"--loops", "1"}}) {
      Arguments all = {"classify", broken, file("test/c0/0.png")};
      all.insert(all.end(), more.begin(), more.end());
      expect_refusal(rondo(all), ExitCode::bad_input, broken + ": " + part);
      all = {"eval", broken, "--data", file("test")};
      all.insert(all.end(), more.begin(), more.end());
      expect_refusal(rondo(all), ExitCode::bad_input, broken + ": " + part);
    }
  };
  flip_bit(model, broken, 0.5, 1);
  refused("checksum mismatch");
  rondo_ok({"classify", broken, file("test/c0/0.png"), "--no-verify"});
  tamper(model, broken, [](Arrays& a) { spoil(a.at("head.weight")); });
  refused("tensor 'head.weight': expected finite numbers, got nan");
}

TEST_F(ClassifyVerb, PreparationCanBeSet) {
  const std::string text = classify({file("test")});
  EXPECT_EQ(classify({file("test"), "--set", "augment.crop=none"}), text);
  EXPECT_NE(classify({file("test"), "--set", "augment.mean=[0.1, 0.1, 0.1]"}), text);
  const auto refused = [&](const std::string& set, ExitCode code, const std::string& part) {
    expect_refusal(rondo(words({file("test"), "--set", set})), code, part);
  };
  refused("augment.croop=none", ExitCode::bad_input, "did you mean 'crop'?");
  refused("augment.mean=[0.1]", ExitCode::bad_input, "expected three numbers");
  refused("model.width=3", ExitCode::bad_input, "model");
}

TEST_F(ClassifyVerb, AnswersWhileTheInputIsOpenAndStopsQuietly) {
  const Result early = in_shell(
      "cd '" + file("") + "' && mkfifo pipe && " + program() + "--list - < pipe > early & " +
      "cd '" + file("") +
      "'; while [ ! -p pipe ]; do sleep 0.05; done; exec 3> pipe; "
      "echo test/c1/2.png >&3; for i in $(seq 600); do [ -s early ] && break; sleep 0.05; done; "
      "cat early; echo test/c1/3.png >&3; exec 3>&-; wait; cat early");
  ASSERT_EQ(lines_of(early.out).size(), 3u) << early.out << early.err;
  EXPECT_EQ(lines_of(early.out)[0], lines_of(early.out)[1]);
  const Result gone = in_shell("yes " + file("test/c0/0.png") + " | " + program() +
                               "--list - --batch 4 2> " + file("err") + " | head -n 3");
  EXPECT_EQ(lines_of(gone.out).size(), 3u);
  EXPECT_EQ(slurp(file("err")), "");
  const Result closed = in_shell(program() + "--list - <&-");
  expect_refusal(closed, ExitCode::io, "standard input: cannot read");
}

TEST_F(ClassifyVerb, RefusesWhatCannotWork) {
  expect_refusal(rondo(words({})), ExitCode::usage, "no images given");
  expect_refusal(rondo({"classify"}), ExitCode::usage, "run is required");
  expect_refusal(rondo(words({"--list", file("nowhere")})), ExitCode::io, "nowhere");
  expect_refusal(rondo({"classify", file("nowhere"), file("test")}), ExitCode::bad_input,
                 "nowhere: no such run folder or model file");
  expect_refusal(rondo({"classify", "sret/t", file("test")}), ExitCode::bad_input,
                 "has no weights");
  expect_refusal(rondo(words({file("test"), "--top", "0"})), ExitCode::usage, "--top");
  std::filesystem::create_directories(file("empty"));
  expect_refusal(rondo(words({file("empty")})), ExitCode::bad_input, "contains no images");
  const Authors language("brt_slide", "meliad");
  expect_refusal(rondo({"classify", language.model(), file("test")}), ExitCode::bad_input,
                 "expected an image model, got a model of kind language-model");
  expect_refusal(rondo({"eval", language.model(), "--loops", "2"}), ExitCode::usage,
                 "--loops is for image networks");
}

}  // namespace
}  // namespace rondo::testing

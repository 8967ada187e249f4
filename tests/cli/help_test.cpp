// All forms of help: every verb has an example, and man pages and completions contain every verb.
#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// The verbs without sub-verbs: "train", "data check".
std::vector<std::string> all_verbs() {
  std::vector<std::string> verbs;
  const TempDir folder;
  rondo_ok({"man", folder.file("man")});
  const std::string page = slurp(folder.file("man/rondo.1"));
  const std::string mark = "\\fBrondo ";
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    std::string verb = page.substr(begin, page.find("\\fR", begin) - begin);
    verb.erase(std::remove(verb.begin(), verb.end(), '\\'), verb.end());  // "attention\-distance"
    verbs.push_back(verb);
  }
  return verbs;
}

Arguments words_of(const std::string& verb) {
  Arguments words;
  size_t begin = 0;
  for (size_t end = verb.find(' '); end != std::string::npos; end = verb.find(' ', begin)) {
    words.push_back(verb.substr(begin, end - begin));
    begin = end + 1;
  }
  words.push_back(verb.substr(begin));
  return words;
}

TEST(Help, EveryVerbHasAnExampleThatItsOptionsAllow) {
  const std::vector<std::string> verbs = all_verbs();
  ASSERT_GT(verbs.size(), 25U);
  for (const std::string& verb : verbs) {
    Arguments words = words_of(verb);
    words.push_back("--help");
    const std::string help = rondo_ok(words).out;
    const size_t at = help.find("Example: rondo " + verb);
    ASSERT_NE(at, std::string::npos) << verb << "\n" << help;
    // Every option in the example exists.
    const std::string example = help.substr(at + 9, help.find('\n', at) - at - 9);
    for (size_t option = example.find(" --"); option != std::string::npos;
         option = example.find(" --", option + 1)) {
      const size_t end = example.find_first_of(" =", option + 1);
      const std::string name = example.substr(option + 1, end - option - 1);
      EXPECT_TRUE(contains(help.substr(0, at), name)) << verb << ": " << name;
    }
    Arguments by_help = words_of(verb);
    by_help.insert(by_help.begin(), "help");
    EXPECT_EQ(rondo_ok(by_help).out, help) << verb;
  }
  expect_refusal(rondo({"help", "trian"}), ExitCode::usage, "did you mean 'train'?");
}

TEST(Help, CompletionsAreScriptsThatNameEveryVerb) {
  const TempDir folder;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = rondo_ok({"completion", shell}).out;
    for (const std::string& verb : all_verbs()) {
      EXPECT_TRUE(contains(script, words_of(verb).back())) << shell << ": " << verb;
    }
    EXPECT_TRUE(contains(script, "precision")) << shell;
  }
  expect_refusal(rondo({"completion", "csh"}), ExitCode::usage, "expected bash, zsh or fish");
  const auto completed = [&](const std::string& line) {
    spill(folder.file("rondo.bash"), rondo_ok({"completion", "bash"}).out);
    const std::string script =
        ". " + folder.file("rondo.bash") + "; COMP_WORDS=(" + line +
        "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _rondo; echo ${COMPREPLY[@]}";
    return run_program("/bin/bash", {"-c", script}).out;
  };
  EXPECT_EQ(completed("rondo tra"), "train translate\n");
  EXPECT_EQ(completed("rondo data ch"), "check\n");
  EXPECT_EQ(completed("rondo generate run --prec"), "--precision\n");
  EXPECT_EQ(completed("rondo generate run --precision b"), "bf16\n");
  EXPECT_EQ(completed("rondo data check --js"), "--json\n");
}

TEST(Help, ManPagesAreWellFormed) {
  const TempDir folder;
  rondo_ok({"man", folder.file("man")});
  const std::string page = slurp(folder.file("man/rondo-data-check.1"));
  for (const char* part :
       {".TH RONDO\\-DATA\\-CHECK 1", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLE", "143"}) {
    EXPECT_TRUE(contains(page, part)) << part << "\n" << page;
  }
  if (in_shell("command -v groff").code == 0) {
    const Result checked = in_shell("groff -man -Tutf8 -ww " + folder.file("man") + "/*.1");
    EXPECT_EQ(checked.code, 0);
    EXPECT_EQ(checked.err, "");
  }
}

TEST(Help, HomeFoldersAreExpanded) {
  const TempDir home;
  spill(home.file("t.txt"), "one two three\nfour five six\n");
  const std::string start = "HOME=" + home.path() + " " RONDO_BINARY " ";
  EXPECT_EQ(in_shell(start + "data check '~/t.txt'").code, 0);
  const Result shown =
      in_shell(start + "train small-text --show-config --set 'data.train=~/t.txt'");
  EXPECT_TRUE(contains(shown.out, "train = \"" + home.file("t.txt") + "\"")) << shown.out;
}

}  // namespace
}  // namespace rondo::testing

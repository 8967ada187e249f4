// Tests of rondo/base/progress.h with a fake clock and screen.
#include "rondo/base/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace rondo {
namespace {

// A clock that is advanced by hand, and captured output.
struct FakeScreen {
  double now = 100;
  std::string output;

  ProgressOptions options(bool terminal) {
    ProgressOptions result;
    result.clock = [this] { return now; };
    result.sink = [this](std::string_view text) { output.append(text); };
    result.terminal = terminal;
    result.columns = 80;
    return result;
  }
  std::string take() { return std::exchange(output, std::string()); }
};

TEST(ProgressTest, LogGetsOneLinePerInterval) {
  FakeScreen screen;
  Progress progress("train", 1000, screen.options(false));
  for (int i = 1; i <= 39; ++i) {
    screen.now += 0.25;
    progress.update(i * 5 / 2);
  }
  EXPECT_EQ(screen.take(), "");  // 9.75 seconds: nothing yet
  screen.now += 0.25;
  progress.update(100, "loss 2.31");
  EXPECT_EQ(screen.take(), "train: 100/1,000  10%  10/s  1:30 left  loss 2.31\n");
  screen.now += 9;
  progress.update(190);
  EXPECT_EQ(screen.take(), "");
  screen.now += 1;
  progress.update(200);
  EXPECT_EQ(screen.take(), "train: 200/1,000  20%  10/s  1:20 left\n");
}

TEST(ProgressTest, FinishSaysTheTimeTakenOnce) {
  FakeScreen screen;
  Progress progress("read", 400, screen.options(false));
  screen.now += 4;
  progress.update(400, "done");
  progress.finish();
  EXPECT_EQ(screen.take(), "read: 400/400 100%  in 0:04  100/s  done\n");
  progress.finish();
  progress.update(401);
  EXPECT_EQ(screen.take(), "");
}

TEST(ProgressTest, LoadingIsShownAfterTwoSecondsAndErased) {
  for (const double seconds : {1.9, 2.1}) {
    FakeScreen screen;
    ProgressOptions options = screen.options(true);
    options.delay = loading_progress().delay;
    options.transient = loading_progress().transient;
    Progress progress("reading", 100, options);
    screen.now += seconds;
    progress.update(50);
    EXPECT_EQ(screen.take().find("reading") != std::string::npos, seconds > 2) << seconds;
    progress.finish();
    EXPECT_EQ(screen.take(), seconds > 2 ? "\r\x1b[K" : "") << seconds;
  }
}

TEST(ProgressTest, UnknownTotalShowsCountAndRate) {
  for (const int64_t total : {0, -1}) {
    FakeScreen screen;
    Progress progress("scan", total, screen.options(false));
    screen.now += 10;
    progress.update(5000);
    EXPECT_EQ(screen.take(), "scan: 5,000  500/s\n");
  }
}

TEST(ProgressTest, TerminalDrawsABarOnOneLine) {
  FakeScreen screen;
  Progress progress("train", 100, screen.options(true));
  screen.now += 1;
  progress.update(50, "loss 1.5");
  EXPECT_EQ(screen.take(),
            "\rtrain [===============>              ] 50/100  50%  50/s  0:01 left  "
            "loss 1.5\x1b[K");
  screen.now += 1;
  progress.update(100);
  progress.finish();
  const std::string out = screen.take();
  EXPECT_NE(
      out.find("\rtrain [==============================] 100/100 100%  in 0:02  50/s\x1b[K\n"),
      std::string::npos)
      << out;
}

TEST(ProgressTest, TerminalRedrawsAtMostTenTimesASecond) {
  FakeScreen screen;
  Progress progress("train", 100000, screen.options(true));
  for (int i = 1; i <= 1000; ++i) {
    screen.now += 0.001;
    progress.update(i);
  }
  const std::string out = screen.take();
  EXPECT_LE(std::count(out.begin(), out.end(), '\r'), 11);
  EXPECT_GE(std::count(out.begin(), out.end(), '\r'), 9);
}

TEST(ProgressTest, NoLineIsWiderThanTheTerminal) {
  for (const int64_t columns : {1, 10, 20, 40, 79, 200}) {
    FakeScreen screen;
    ProgressOptions options = screen.options(true);
    options.columns = columns;
    Progress progress("a label", 1000, options);
    screen.now += 1;
    progress.update(500, "a note that is \xE2\x82\xAC long, far longer than the terminal is wide");
    const std::string out = screen.take();
    const std::string text = out.substr(1, out.size() - 4);  // less "\r" and "\x1b[K"
    const auto shown = std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
    EXPECT_LT(shown, columns) << text;
  }
}

TEST(ProgressTest, RateFollowsRecentWork) {
  FakeScreen screen;
  Progress progress("train", 1000000, screen.options(false));
  int64_t done = 0;
  for (int i = 0; i < 60; ++i) {  // slow first, then fast for many minutes
    screen.now += 10;
    progress.update(done += 10);
  }
  screen.take();
  for (int i = 0; i < 60; ++i) {
    screen.now += 10;
    progress.update(done += 1000);
  }
  const std::string out = screen.take();
  const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
  EXPECT_NE(last.find("  100/s"), std::string::npos) << last;
}

TEST(ProgressTest, ResumedWorkDoesNotCountAsRate) {
  FakeScreen screen;
  ProgressOptions options = screen.options(false);
  options.initial = 900;
  Progress progress("train", 1000, options);
  screen.now += 10;
  progress.update(910);
  EXPECT_EQ(screen.take(), "train: 910/1,000  91%  1/s  1:30 left\n");
  screen.now += 10;
  progress.finish();
  EXPECT_EQ(screen.take(), "train: 910/1,000  91%  in 0:20  0.5/s\n");
}

TEST(ProgressTest, LongTimesAreReadable) {
  FakeScreen screen;
  Progress progress("train", 1000000, screen.options(false));
  screen.now += 10;
  progress.update(10);
  EXPECT_EQ(screen.take(), "train: 10/1,000,000   0%  1/s  11d 13:46:30 left\n");
}

TEST(ProgressTest, AbandonedBarEndsItsLine) {
  FakeScreen screen;
  {
    Progress progress("train", 10, screen.options(true));
    progress.update(1);
    screen.take();
  }
  EXPECT_EQ(screen.take(), "\n");
  { Progress never_drawn("train", 10, screen.options(true)); }
  EXPECT_EQ(screen.take(), "");
}

TEST(ProgressTest, ClockThatStandsStillIsHarmless) {
  FakeScreen screen;
  Progress progress("train", 10, screen.options(true));
  progress.update(5);
  progress.finish();
  EXPECT_NE(screen.take().find("5/10  50%  in 0:00  0/s"), std::string::npos);
}

}  // namespace
}  // namespace rondo

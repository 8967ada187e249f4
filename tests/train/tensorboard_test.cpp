// TensorBoard event files, read by an independent reader: framing, checksums, protobuf.
#include "rondo/train/tensorboard.h"

#include "tests/support/event_file.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

using testing::plain_crc32c;
using testing::read_events;
using testing::ReadEvent;
using testing::unmask;

TEST(TensorBoard, ChecksumHasItsCheckValue) {
  EXPECT_EQ(plain_crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(unmask(masked_crc32c("123456789")), 0xE3069283U);
  EXPECT_EQ(unmask(masked_crc32c("")), 0U);
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(unmask(masked_crc32c(bytes)), plain_crc32c(bytes));
}

TEST(TensorBoard, EventsComeBack) {
  const testing::TempDir folder;
  const auto now = static_cast<double>(std::time(nullptr));
  EventWriter writer(folder.path(), 1);
  EXPECT_NE(writer.path().find("/events.out.tfevents."), std::string::npos);
  writer.scalars(1, {{"loss", 2.5}, {"rate", 1e-3}});
  writer.scalars(300, {{"a longer tag, über 1", -1.25}});
  writer.scalars(int64_t{1} << 40, {{"loss", NAN}});
  const auto events = read_events(writer.path());  // still open: flushed
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].starts);
  EXPECT_EQ(events[2].step, 1);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"loss", 2.5F}, {"rate", 1e-3F}}));
  EXPECT_EQ(events[3].step, 300);
  EXPECT_EQ(events[3].scalars, (std::map<std::string, float>{{"a longer tag, über 1", -1.25F}}));
  EXPECT_EQ(events[4].step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(events[4].scalars.at("loss")));
  for (const ReadEvent& event : events) EXPECT_NEAR(event.time, now, 600.0);
}

TEST(TensorBoard, HoldsWhatTheLogOfARunHolds) {
  const QuietLog quiet;
  const testing::TempDir folder;
  RunConfig config = scripted_run();
  config.train.steps = 3;
  config.train.eval_every = 2;
  const auto task = scripted_language(config, 4);
  task->selections = {1.5};
  {
    RunFolder run(folder.path(), config);
    train(*task, config, run);
  }
  const std::vector<ReadEvent> read = testing::shown_events(folder.path());
  const auto lines = metrics_of(folder.path());
  ASSERT_EQ(read.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(read[i].step, lines[i].at("step"));
    for (const auto& [name, value] : lines[i].items()) {
      if (name == "step") continue;
      EXPECT_FLOAT_EQ(read[i].scalars.at(name), value.get<float>()) << name;
    }
  }
}

TEST(TensorBoard, DropsWhatIsWrittenAgain) {
  const testing::TempDir folder;
  const std::string file = [&] {
    EventWriter writer(folder.path(), 1);
    for (int64_t step = 1; step <= 5; ++step) writer.scalars(step, {{"loss", 1.0}});
    return writer.path();
  }();
  std::filesystem::rename(file, folder.file("events.out.tfevents.1.rondo.1"));
  {
    EventWriter writer(folder.path(), 4);
    for (int64_t step = 4; step <= 6; ++step) writer.scalars(step, {{"loss", 2.0}});
  }
  std::vector<std::pair<int64_t, float>> shown;
  for (const ReadEvent& event : testing::shown_events(folder.path())) {
    shown.emplace_back(event.step, event.scalars.at("loss"));
  }
  EXPECT_EQ(shown, (std::vector<std::pair<int64_t, float>>{
                       {1, 1.F}, {2, 1.F}, {3, 1.F}, {4, 2.F}, {5, 2.F}, {6, 2.F}}));
}

TEST(TensorBoard, NamesAFolderItCannotWriteTo) {
  expect_error(ExitCode::io, "/nowhere/events.out.tfevents", [] { EventWriter("/nowhere", 1); });
}

}  // namespace
}  // namespace rondo::test

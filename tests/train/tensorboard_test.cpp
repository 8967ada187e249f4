// TensorBoard event files, read back by a reader of our own: framing, checksums, protobuf.
#include "rondo/train/tensorboard.h"

#include <cstring>

#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

// CRC-32C bit by bit, from its definition.
uint32_t plain_crc32c(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
  }
  return ~crc;
}

uint32_t unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8U;
  return (rotated >> 17) | (rotated << 15);
}

template <class T>
T take_raw(const std::string& bytes, size_t& at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("cut short");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

std::string take_bytes(const std::string& bytes, size_t& at, uint64_t count) {
  if (at + count > bytes.size()) throw std::runtime_error("cut short");
  at += count;
  return bytes.substr(at - count, count);
}

uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take_raw<uint8_t>(bytes, at);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

// Fields of a message by number: numbers as their eight bytes, the rest as they are.
std::multimap<uint64_t, std::string> fields_of(const std::string& message) {
  std::multimap<uint64_t, std::string> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = take_varint(message, at);
    const int wire = static_cast<int>(key & 7);
    std::string value;
    if (wire == 0) {
      const uint64_t number = take_varint(message, at);
      value.assign(reinterpret_cast<const char*>(&number), 8);
    } else {
      const uint64_t size = wire == 1 ? 8 : wire == 5 ? 4 : take_varint(message, at);
      value = take_bytes(message, at, size);
    }
    fields.emplace(key >> 3, value);
  }
  return fields;
}

template <class T>
T as_number(const std::string& bytes) {
  size_t at = 0;
  return take_raw<T>(bytes, at);
}

struct ReadEvent {
  double time = 0;
  int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

std::vector<ReadEvent> read_events(const std::string& path) {
  const std::string file = testing::slurp(path);
  std::vector<ReadEvent> events;
  for (size_t at = 0; at < file.size();) {
    const std::string length = take_bytes(file, at, 8);
    EXPECT_EQ(unmask(take_raw<uint32_t>(file, at)), plain_crc32c(length));
    const std::string record = take_bytes(file, at, as_number<uint64_t>(length));
    EXPECT_EQ(unmask(take_raw<uint32_t>(file, at)), plain_crc32c(record));
    ReadEvent event;
    for (const auto& [field, value] : fields_of(record)) {
      if (field == 1) event.time = as_number<double>(value);
      if (field == 2) event.step = as_number<int64_t>(value);
      if (field == 3) event.version = value;
      if (field != 5) continue;
      for (const auto& [number, entry] : fields_of(value)) {
        EXPECT_EQ(number, 1U);
        const auto parts = fields_of(entry);
        event.scalars[parts.find(1)->second] = as_number<float>(parts.find(2)->second);
      }
    }
    events.push_back(event);
  }
  return events;
}

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
  EventWriter writer(folder.path());
  EXPECT_NE(writer.path().find("/events.out.tfevents."), std::string::npos);
  writer.scalars(1, {{"loss", 2.5}, {"rate", 1e-3}});
  writer.scalars(300, {{"a longer tag, über 1", -1.25}});
  writer.scalars(int64_t{1} << 40, {{"loss", NAN}});
  const auto events = read_events(writer.path());  // still open: flushed
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"loss", 2.5F}, {"rate", 1e-3F}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"a longer tag, über 1", -1.25F}}));
  EXPECT_EQ(events[3].step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(events[3].scalars.at("loss")));
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
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().rfind("events.", 0) == 0) events = entry.path();
  }
  std::vector<ReadEvent> read = read_events(events);
  read.erase(read.begin());
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

TEST(TensorBoard, NamesAFolderItCannotWriteTo) {
  expect_error(ExitCode::io, "/nowhere/events.out.tfevents", [] { EventWriter("/nowhere"); });
}

}  // namespace
}  // namespace rondo::test

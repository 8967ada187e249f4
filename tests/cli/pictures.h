// Pictures that a tiny network learns to tell apart in a second: class folders of PNG files that
// differ in brightness, and an experiment on them.
#pragma once

#include "rondo/image/contact_sheet.h"
#include "tests/cli/training.h"

namespace rondo::testing {

class Pictures {
 public:
  static constexpr int64_t kClasses = 6;
  static constexpr int64_t kEach = 4;  // images of a class

  Pictures() {
    for (const char* split : {"train", "test"}) {
      for (int64_t c = 0; c < kClasses; ++c) {
        for (int64_t i = 0; i < kEach; ++i) {
          const std::string at = fmt_path(split, c, i);
          put(at, encode_png(picture(c, 100 * c + i + (split[1] == 'r' ? 50 : 0))));
        }
      }
    }
    std::string titles;
    for (int64_t c = 0; c < kClasses; ++c) {
      titles += "c" + std::to_string(c) + "\tshade " + std::to_string(c) + "\n";
    }
    put("classes.tsv", titles);
    put("tiny.toml", kTiny);
  }

  std::string file(const std::string& name) const { return folder_.file(name); }
  void put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    spill(file(name), bytes);
  }

  Arguments command(const std::string& run, const Arguments& more = {}) const {
    Arguments words = {"train", file("tiny.toml"), "-o", file(run)};
    for (const char* split : {"train", "test"}) {
      words.insert(words.end(), {"--set", std::string("data.") + split + "=" + file(split)});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Side and noise are a function of the seed.
  static Image picture(int64_t c, int64_t seed) {
    CounterRandom random(static_cast<uint64_t>(seed), "picture");
    Image image(16 + static_cast<int64_t>(random.below(8)), 16);
    for (uint8_t& value : image.pixels) {
      value = static_cast<uint8_t>(40 * c + static_cast<int64_t>(random.below(30)));
    }
    return image;
  }
  static std::string fmt_path(const std::string& split, int64_t c, int64_t i) {
    return split + "/c" + std::to_string(c) + "/" + std::to_string(i) + ".png";
  }

 private:
  static constexpr const char* kTiny = R"([model]
kind = "vision"
image = 16
patch = 8
classes = 6
width = 16
hidden = 32
heads = 2
dropout = 0.0
positions = "learned"
[model.depth]
scheme = "recursive"
[model.depth.recursive]
blocks = [1]
loops = [2]

[augment]
crop = "none"

[train]
steps = 60
batch = 12
threads = 1
log_every = 20
save_every = 30
keep = 2

[schedule]
rate = 0.01
)";

  TempDir folder_;
};

}  // namespace rondo::testing

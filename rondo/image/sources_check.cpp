// Finding unreadable images.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "rondo/base/error.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/progress.h"
#include "rondo/data/text_source.h"
#include "rondo/image/sources.h"

namespace rondo {
namespace {

// Shared by the threads of one check.
struct ImageCheck {
  explicit ImageCheck(const ImageSet& set) : images(set) {}

  const ImageSet& images;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  std::condition_variable ended;
  int64_t running = 0;
  std::vector<BadImage> bad;
  std::exception_ptr failure;

  void work() {
    try {
      for (int64_t i = next++; i < images.count(); i = next++) {
        check_one(i);
        ++done;
      }
    } catch (...) {  // not caused by the image: out of memory
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
      next = images.count();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    --running;
    ended.notify_all();
  }

  void check_one(int64_t i) {
    try {
      (void)images.load(i);
    } catch (const Error& error) {
      const std::lock_guard<std::mutex> lock(mutex);
      bad.push_back({i, images.name(i), error.message()});
    }
  }
};

}  // namespace

std::vector<BadImage> check_images(const ImageSet& images, int64_t threads) {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t wanted = std::max<int64_t>(1, threads > 0 ? threads : cores);
  ImageCheck check(images);
  Progress progress("checking images", images.count());
  std::vector<std::thread> workers;
  check.running = wanted;
  for (int64_t i = 0; i < wanted; ++i) {
    try {
      workers.emplace_back([&check] { check.work(); });
    } catch (const std::system_error&) {  // no more threads available: make do with fewer
      const std::lock_guard<std::mutex> lock(check.mutex);
      --check.running;
    }
  }
  if (workers.empty()) {
    ++check.running;
    check.work();
  }
  {
    std::unique_lock<std::mutex> lock(check.mutex);
    while (!check.ended.wait_for(lock, std::chrono::milliseconds(100),
                                 [&] { return check.running == 0; })) {
      progress.update(check.done);
    }
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  if (check.failure) {
    std::rethrow_exception(check.failure);
  }
  progress.update(check.done);
  progress.finish();
  std::sort(check.bad.begin(), check.bad.end(),
            [](const BadImage& a, const BadImage& b) { return a.index < b.index; });
  return std::move(check.bad);
}

std::map<std::string, int64_t> unsupported_images(const std::string& spec) {
  static const std::set<std::string> kKinds = {".gif",  ".webp", ".bmp",  ".tif", ".tiff",
                                               ".heic", ".heif", ".avif", ".jxl", ".jp2"};
  std::map<std::string, int64_t> counts;
  const std::string path = parse_part(spec).path;
  if (!std::filesystem::is_directory(path)) return counts;
  for (const std::string& file : list_sources(path)) {
    std::string ending = std::filesystem::path(file).extension().string();
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (kKinds.count(ending) > 0) ++counts[ending];
  }
  return counts;
}

}  // namespace rondo

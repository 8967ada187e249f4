// Rewriting the paths of an experiment.
#include "rondo/config/data_paths.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "rondo/base/files.h"

namespace rondo {
namespace {

using PathChange = std::function<std::string(const std::string& path)>;

std::string absolute_path(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  const std::filesystem::path whole = std::filesystem::current_path() / path;
  return whole.lexically_normal().string();
}

// "a,b" is two paths if both exist.
std::string change_pair(const std::string& spec, const PathChange& change) {
  const size_t mark = spec.find_last_of('#');
  const std::string path = spec.substr(0, mark);
  for (size_t comma = path.find(','); comma != std::string::npos;
       comma = path.find(',', comma + 1)) {
    const std::string source = change(path.substr(0, comma));
    const std::string target = change(path.substr(comma + 1));
    if (exists(source) && exists(target)) {
      return fmt::format("{},{}{}", source, target,
                         mark == std::string::npos ? "" : spec.substr(mark));
    }
  }
  return change(spec);
}

void change_paths(RunConfig& config, const PathChange& change) {
  for (std::string* path : {&config.data.train, &config.data.valid, &config.data.test,
                            &config.images.train, &config.images.valid, &config.images.test}) {
    *path = change(*path);
  }
  for (std::string* path : {&config.pairs.train, &config.pairs.valid, &config.pairs.test}) {
    *path = change_pair(*path, change);
  }
}

// Fields that need not be a path.
void change_files(RunConfig& config, const PathChange& change) {
  for (std::string* path :
       {&config.data.tokenizer, &config.pairs.tokenizer, &config.pairs.source_tokenizer,
        &config.pairs.target_tokenizer, &config.train.start, &config.distill.teacher}) {
    const std::string changed = change(*path);
    if (!path->empty() && exists(changed)) *path = changed;
  }
}

}  // namespace

std::string expand_home(const std::string& path) {
  if (path.empty() || path.front() != '~' || (path.size() > 1 && path[1] != '/')) return path;
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? path : home + path.substr(1);
}

void expand_homes(RunConfig& config) {
  change_paths(config, expand_home);
  change_files(config, expand_home);
}

void make_paths_absolute(RunConfig& config) {
  change_paths(config, absolute_path);
  change_files(config, absolute_path);
}

void leave_out_folders(RunConfig& config) {
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  change_paths(config, name);
  for (std::string* file :
       {&config.data.tokenizer, &config.pairs.tokenizer, &config.pairs.source_tokenizer,
        &config.pairs.target_tokenizer, &config.train.start, &config.distill.teacher}) {
    *file = name(*file);
  }
}

}  // namespace rondo

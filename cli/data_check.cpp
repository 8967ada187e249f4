// rondo data check: finds problems in text, sentence pairs or images before training on them.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/file_kind.h"
#include "rondo/base/part_spec.h"
#include "rondo/base/text.h"
#include "rondo/data/text_check.h"
#include "rondo/image/sources.h"
#include "rondo/project/found_files.h"

namespace rondo::cli {
namespace {

constexpr size_t kListedProblems = 20;

// Flushes the report before throwing, so that it precedes the error message.
[[noreturn]] void refuse_checked(const std::string& what, const std::string& advice) {
  if (std::fflush(stdout) != 0) throw Error(ExitCode::io, "standard output: cannot write");
  throw Error(ExitCode::bad_input, what, advice);
}

void print_check_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json problems_json(const std::vector<TextProblem>& problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const TextProblem& problem : problems) {
    list.push_back({{"file", problem.file}, {"line", problem.line}, {"what", problem.what}});
  }
  return list;
}

void print_problems(const std::vector<TextProblem>& problems) {
  for (size_t i = 0; i < std::min(problems.size(), kListedProblems); ++i) {
    const TextProblem& p = problems[i];
    fmt::print("  {}{}: {}\n", p.file, p.line > 0 ? fmt::format(":{}", p.line) : "", p.what);
  }
  if (problems.size() > kListedProblems) {
    fmt::print("  and {} more\n", problems.size() - kListedProblems);
  }
}

// ---- images

// Images per class.
std::vector<int64_t> class_sizes(const ImageSet& images) {
  std::vector<int64_t> sizes(images.classes().size());
  for (int64_t i = 0; i < images.count(); ++i) ++sizes[static_cast<size_t>(images.label(i))];
  return sizes;
}

using KindCounts = std::map<std::string, int64_t>;

void print_images_json(const ImageSet& images, const std::vector<BadImage>& broken,
                       const KindCounts& unsupported) {
  const std::vector<int64_t> sizes = class_sizes(images);
  nlohmann::json classes = nlohmann::json::array();
  for (size_t c = 0; c < sizes.size(); ++c) {
    classes.push_back(
        {{"class", images.classes()[c]}, {"title", images.titles()[c]}, {"images", sizes[c]}});
  }
  nlohmann::json list = nlohmann::json::array();
  for (const BadImage& bad : broken) {
    list.push_back({{"index", bad.index}, {"name", bad.name}, {"reason", bad.reason}});
  }
  print_check_json({{"kind", "images"},
                    {"images", images.count()},
                    {"classes", classes},
                    {"broken", list},
                    {"unsupported", unsupported}});
}

void print_images(const ImageSet& images, const std::vector<BadImage>& broken,
                  const KindCounts& unsupported) {
  const std::vector<int64_t> sizes = class_sizes(images);
  const auto [fewest, most] = std::minmax_element(sizes.begin(), sizes.end());
  fmt::print("images   {}\n", with_commas(images.count()));
  const bool equal = *fewest == *most;
  fmt::print("classes  {}, of {}{}{}\n", with_commas(static_cast<int64_t>(sizes.size())),
             equal ? "" : with_commas(*fewest) + " to ", counted(*most, "image"),
             equal ? " each" : "");
  fmt::print("broken   {}\n", with_commas(static_cast<int64_t>(broken.size())));
  for (const BadImage& bad : broken) fmt::print("{}\n", bad.reason);  // which names the file
  for (const auto& [kind, count] : unsupported) {
    fmt::print("skipped  {} ({} is not supported: convert to .jpg or .png)\n",
               counted(count, "file"), kind);
  }
}

void check_image_set(const std::string& spec, const DataCheckOptions& options) {
  const std::unique_ptr<ImageSet> images = open_images(spec);
  const std::vector<BadImage> broken = check_images(*images, options.threads);
  const KindCounts unsupported = unsupported_images(spec);
  options.json ? print_images_json(*images, broken, unsupported)
               : print_images(*images, broken, unsupported);
  if (broken.empty()) return;
  refuse_checked(fmt::format("{}: {} of {} cannot be read", printable(spec),
                             with_commas(static_cast<int64_t>(broken.size())),
                             counted(images->count(), "image")),
                 "replace them, or keep them: training skips them unless data.strict is set");
}

// ---- text

void print_text(const TextCheck& c) {
  fmt::print("files       {}, {} empty\n", with_commas(c.files), with_commas(c.empty_files));
  fmt::print("text        {}, {}, {}\n", human_bytes(c.bytes), counted(c.lines, "line"),
             counted(c.words, "word"));
  fmt::print("file sizes  {} to {}\n", human_bytes(c.shortest_file), human_bytes(c.longest_file));
  fmt::print("lines       {} blank, {} duplicates of earlier ones, longest {}\n",
             with_commas(c.blank_lines), with_commas(c.duplicate_lines),
             human_bytes(c.longest_line));
  fmt::print("duplicates  {}\n", counted(c.duplicate_files, "file"));
  print_problems(c.duplicates);
  fmt::print("not UTF-8   {}\n", counted(static_cast<int64_t>(c.not_utf8.size()), "file"));
  print_problems(c.not_utf8);
  fmt::print("not text    {}\n", counted(static_cast<int64_t>(c.binary.size()), "file"));
  print_problems(c.binary);
}

void check_text_set(const std::string& spec, const DataCheckOptions& options) {
  const TextCheck c = check_text(spec);
  if (c.files == 0) {
    throw Error(ExitCode::bad_input, fmt::format("{}: contains neither text nor images", spec),
                "give a file, a folder of texts, or a folder of class folders with images");
  }
  if (options.json) {
    print_check_json({{"kind", "text"},
                      {"files", c.files},
                      {"bytes", c.bytes},
                      {"lines", c.lines},
                      {"words", c.words},
                      {"empty_files", c.empty_files},
                      {"blank_lines", c.blank_lines},
                      {"duplicate_files", problems_json(c.duplicates)},
                      {"duplicate_lines", c.duplicate_lines},
                      {"longest_line", c.longest_line},
                      {"shortest_file", c.shortest_file},
                      {"longest_file", c.longest_file},
                      {"not_utf8", problems_json(c.not_utf8)},
                      {"not_text", problems_json(c.binary)}});
  } else {
    print_text(c);
  }
  if (c.binary.empty()) return;
  refuse_checked(fmt::format("{}: {} of {} not text", printable(spec), c.binary.size(),
                             counted(c.files, "file is", "files are")),
                 "move them elsewhere, or list the text files in a .list file");
}

// ---- pairs

void print_pairs(const PairCheck& c) {
  const auto mean = [&](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, c.pairs));
  };
  fmt::print("pairs       {}\n", with_commas(c.pairs));
  fmt::print("source      {}, {:.1f} bytes per line, longest {}\n", human_bytes(c.source_bytes),
             mean(c.source_bytes), with_commas(c.longest_source));
  fmt::print("target      {}, {:.1f} bytes per line, longest {}\n", human_bytes(c.target_bytes),
             mean(c.target_bytes), with_commas(c.longest_target));
  fmt::print("empty       {} (skipped in training)\n", with_commas(c.empty));
  fmt::print("identical   {} (both sides the same)\n", with_commas(c.identical));
  fmt::print("duplicates  {}\n", with_commas(c.duplicates));
  fmt::print("unequal     {} (one side over three times as long as the other)\n",
             with_commas(c.unequal));
  fmt::print("not UTF-8   {}\n", with_commas(c.not_utf8_lines));
  print_problems(c.not_utf8);
}

void check_pair_set(const std::string& spec, const std::string& source, const std::string& target,
                    const DataCheckOptions& options) {
  const PairCheck c = check_pairs(find_parallel(spec, source, target));
  if (options.json) {
    print_check_json({{"kind", "pairs"},
                      {"pairs", c.pairs},
                      {"empty", c.empty},
                      {"identical", c.identical},
                      {"duplicates", c.duplicates},
                      {"unequal", c.unequal},
                      {"source_bytes", c.source_bytes},
                      {"target_bytes", c.target_bytes},
                      {"longest_source", c.longest_source},
                      {"longest_target", c.longest_target},
                      {"not_utf8_lines", c.not_utf8_lines},
                      {"not_utf8", problems_json(c.not_utf8)}});
  } else {
    print_pairs(c);
  }
  if (c.not_utf8_lines == 0) return;
  refuse_checked(fmt::format("{}: {} not UTF-8", printable(spec),
                             counted(c.not_utf8_lines, "line is", "lines are")),
                 "convert the files, for example with iconv");
}

// A file that cannot be data gets a message by its contents.
void refuse_other_files(const std::string& path) {
  const FileLook look = look_at_text(path);
  const bool data = look.kind != FileKind::image && look.kind != FileKind::pytorch &&
                    look.kind != FileKind::safetensors && look.kind != FileKind::tokenizer &&
                    look.kind != FileKind::program && look.kind != FileKind::document;
  if (data) return;
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected text, two parallel files or a set of images, got {}",
                          printable(path, PATH_MAX), look.what),
              "see 'rondo data check --help'");
}

// Whether `path` refers to images; so does a path that does not exist (a split of a data set).
bool names_images(const std::string& path) {
  const FileLook look = look_at_text(path);
  if (look.kind == FileKind::folder) return has_class_folders(path);
  if (look.kind == FileKind::missing) return true;
  return look.kind != FileKind::text && look.kind != FileKind::toml &&
         look.kind != FileKind::json && look.kind != FileKind::empty;
}

}  // namespace

void run_data_check(const DataCheckOptions& options) {
  if (options.paths.size() > 2) {
    throw Error(ExitCode::usage,
                fmt::format("data check: expected one path, or two parallel files, got {}",
                            options.paths.size()),
                "check them one at a time");
  }
  const std::string& spec = options.paths.front();
  if (options.paths.size() == 2) {
    const FoundPair pair = pair_of_files(spec, options.paths[1]);
    return check_pair_set(pair.splits.train, pair.source, pair.target, options);
  }
  const std::string path = parse_part(spec).path;
  if (is_pair_table(path)) return check_pair_set(spec, "source", "target", options);
  refuse_other_files(path);
  names_images(path) ? check_image_set(spec, options) : check_text_set(spec, options);
}

}  // namespace rondo::cli

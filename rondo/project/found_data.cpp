// Detecting data and choosing a recipe for it.
#include "rondo/project/found_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>

#include "rondo/base/config_node.h"
#include "rondo/base/error.h"
#include "rondo/base/file_kind.h"
#include "rondo/base/text.h"
#include "rondo/config/recipes.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer.h"
#include "rondo/image/sources.h"
#include "rondo/project/found_files.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

// Upper limit of the held-out text.
constexpr int64_t kLargestHeldOut = 1'000'000;  // bytes
constexpr int64_t kMostHeldOutPairs = 2000;
// With fewer documents than batch rows, rows would contain the same text.
constexpr int64_t kDocumentsWanted = 64;
constexpr int64_t kShortestDocument = 4096;  // bytes

std::string assignment(const std::string& key, const std::string& value) {
  return fmt::format("{}={}", key, toml_text(value));
}

void assign_splits(const FoundSplits& splits, FoundData& found) {
  found.set.push_back(assignment("data.train", splits.train));
  if (!splits.valid.empty()) found.set.push_back(assignment("data.valid", splits.valid));
  if (!splits.test.empty()) found.set.push_back(assignment("data.test", splits.test));
}

void note_splits(const FoundSplits& splits, FoundData& found) {
  found.notes.push_back(fmt::format("validation data: {}", splits.valid));
  if (!splits.test.empty()) found.notes.push_back(fmt::format("test data: {}", splits.test));
}

// Sets the vocabulary sizes of a given or requested tokenizer.
void assign_tokenizer(const std::string& tokenizer, FoundData& found) {
  if (tokenizer.empty()) return;
  found.set.push_back(assignment("data.tokenizer", tokenizer));
  const std::optional<TokenizerRequest> request = parse_tokenizer_request(tokenizer);
  int64_t vocabulary = request ? request->vocabulary : kByteVocabulary;
  int32_t padding = 0;  // of tokenizers we train
  if (!request) {
    const auto known = make_tokenizer(tokenizer);
    vocabulary = known->vocabulary();
    padding = known->special_tokens().padding;
  }
  if (found.task == "lm") {
    found.set.push_back(fmt::format("model.vocabulary={}", vocabulary));
    return;
  }
  found.set.push_back(fmt::format("model.source_vocabulary={}", vocabulary));
  found.set.push_back(fmt::format("model.target_vocabulary={}", vocabulary));
  found.set.push_back(fmt::format("model.padding={}", padding));
}

FoundData found_text(const std::string& path, const DataRequest& request) {
  FoundData found;
  found.task = "lm";
  const std::string tokenizer = tokenizer_spec(request.tokenizer);
  const bool pieces = !tokenizer.empty() && tokenizer != "bytes";
  found.recipe = !request.recipe.empty() ? request.recipe : pieces ? "small-pieces" : "small-text";
  FoundSplits splits = find_splits(path);
  const TextSize size = measure_text(splits.train);
  if (size.bytes == 0) {
    throw Error(ExitCode::bad_input, fmt::format("{}: contains no text", printable(path, PATH_MAX)),
                "pass a text file (may be .gz or .zst) or a folder of them");
  }
  found.notes.push_back(fmt::format("{}: {} of text in {}", path, human_bytes(size.bytes),
                                    counted(size.files, "file")));
  if (splits.valid.empty()) {
    const bool much = size.bytes / 20 > kLargestHeldOut;
    const std::string part = much ? fmt::format("{}B", kLargestHeldOut) : "5%";
    splits.valid = fmt::format("{}#-{}:", splits.train, part);
    splits.train += fmt::format("#:-{}", part);
    found.notes.push_back(fmt::format("the last {} of the text {} held out for validation",
                                      much ? human_bytes(kLargestHeldOut) : "5 %",
                                      much ? "are" : "is"));
  } else {
    note_splits(splits, found);
  }
  assign_splits(splits, found);
  if (size.files < kDocumentsWanted) {
    const int64_t divide = std::max(kShortestDocument, size.bytes / kDocumentsWanted);
    found.set.push_back(fmt::format("data.divide={}", divide));
  }
  assign_tokenizer(tokenizer, found);
  return found;
}

FoundData found_pairs(const FoundPair& pair, const DataRequest& request) {
  FoundData found;
  found.task = "translation";
  found.recipe = request.recipe.empty() ? "small-translation" : request.recipe;
  FoundSplits splits = pair.splits;
  const int64_t lines = count_pairs(splits.train, pair.source, pair.target);
  found.notes.push_back(fmt::format("{}: {}, {} to {}", splits.train,
                                    counted(lines, "sentence pair"), pair.source, pair.target));
  if (splits.valid.empty()) {
    const std::string part =
        lines / 50 > kMostHeldOutPairs ? std::to_string(kMostHeldOutPairs) : "2%";
    splits.valid = fmt::format("{}#-{}:", splits.train, part);
    splits.train += fmt::format("#:-{}", part);
    found.notes.push_back(
        fmt::format("the last {} pairs are held out for validation",
                    part == "2%" ? "2 % of the" : with_commas(kMostHeldOutPairs)));
  } else {
    note_splits(splits, found);
  }
  assign_splits(splits, found);
  found.set.push_back(assignment("data.source", pair.source));
  found.set.push_back(assignment("data.target", pair.target));
  assign_tokenizer(tokenizer_spec(request.tokenizer), found);
  return found;
}

FoundData found_images(const std::string& path, const DataRequest& request) {
  if (!request.tokenizer.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: contains images, which have no tokenizer", path),
                "omit --tokenizer");
  }
  FoundData found;
  found.task = "image";
  found.recipe = request.recipe.empty() ? "small-images" : request.recipe;
  FoundSplits splits = find_splits(path);
  const ImageCount count = count_images(splits.train);
  if (count.classes < 2) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: expected images of at least 2 classes, got {}",
                    printable(splits.train, PATH_MAX), counted(count.classes, "class", "classes")),
        "make one folder per class, with its images inside");
  }
  found.notes.push_back(fmt::format("{}: {} in {}", splits.train, counted(count.images, "image"),
                                    counted(count.classes, "class", "classes")));
  for (const auto& [kind, files] : unsupported_images(splits.train)) {
    found.notes.push_back(fmt::format("{} skipped: {} is not supported (convert to .jpg or .png)",
                                      counted(files, "file is", "files are"), kind));
  }
  if (splits.valid.empty()) {
    splits.valid = splits.train + "#-10%:/class";
    splits.train += "#:-10%/class";
    found.notes.emplace_back("the last 10 % of each class are held out for validation");
  } else {
    note_splits(splits, found);
  }
  assign_splits(splits, found);
  found.set.push_back(fmt::format("model.classes={}", count.classes));
  return found;
}

[[noreturn]] void refuse_data(const std::string& path, const FileLook& look) {
  const std::string advice = advice_for(look, path, "train");
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected training data (text, two parallel files, a folder of class "
                          "folders) or a recipe, got {}",
                          printable(path, PATH_MAX), look.what),
              advice.empty() ? "see 'rondo train --help'" : advice);
}

// The base name without extensions: "novel" for "books/novel.txt.gz".
std::string bare_name(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.empty()) name = fs::path(path).parent_path().filename();
  while (name.has_extension() && name.stem() != name) name = name.stem();
  const std::string text = name.string();
  const bool named = !text.empty() && text != "." && text != "..";
  return named ? text : fs::canonical(path).filename().string();
}

FoundData found_file(const std::string& path, const DataRequest& request) {
  const FileLook look = look_at_text(path);
  if (look.kind == FileKind::archive && look.what == "a tar archive") {
    return found_images(path, request);
  }
  if (look.kind != FileKind::text && look.kind != FileKind::toml && look.kind != FileKind::json) {
    refuse_data(path, look);
  }
  if (is_pair_table(path)) return found_pairs({{path, "", ""}, "source", "target"}, request);
  return found_text(path, request);
}

FoundData found_folder(const std::string& path, const DataRequest& request) {
  if (fs::exists(fs::path(path) / "model.safetensors") &&
      fs::exists(fs::path(path) / "config.json")) {
    throw Error(
        ExitCode::bad_input, fmt::format("{}: is an exported model, not data", path),
        fmt::format("to continue training it: rondo train DATA --set train.start={}", path));
  }
  if (const std::optional<FoundPair> pair = find_pair_in(path)) return found_pairs(*pair, request);
  if (has_class_folders(path)) return found_images(path, request);
  return found_text(path, request);
}

}  // namespace

std::string tokenizer_spec(const std::string& given) {
  const bool number = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
  return number ? "bpe:" + given : given;
}

std::optional<FoundData> find_data(const DataRequest& request) {
  const std::string& path = request.paths.front();
  if (!request.recipe.empty()) load_recipe(request.recipe);  // rejects an unknown name
  std::error_code ignored;
  std::optional<FoundData> found;
  if (request.paths.size() == 2) {
    found = found_pairs(pair_of_files(request.paths[0], request.paths[1]), request);
  } else if (request.paths.size() > 2) {
    throw Error(ExitCode::usage,
                fmt::format("train: expected one path, or two parallel files, got {}",
                            request.paths.size()),
                "put several texts into a folder, or list them in a .list file");
  } else if (!fs::exists(path, ignored)) {
    return std::nullopt;
  } else if (fs::is_directory(path, ignored)) {
    found = found_folder(path, request);
  } else {
    const bool toml = fs::path(path).extension() == ".toml";
    if (toml) return std::nullopt;
    found = found_file(path, request);
  }
  found->name = bare_name(path);
  found->notes.push_back(
      fmt::format("recipe {}: {}", found->recipe, recipe_summary(found->recipe)));
  return found;
}

}  // namespace rondo

// Saved states as HTTP resources.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/serve/api.h"
#include "rondo/serve/document_upload.h"

namespace rondo::serve {
namespace {

using nlohmann::json;

json state_json(const std::string& name, const SavedState& saved) {
  return {{"name", name}, {"model", saved.model}, {"tokens", saved.tokens}, {"bytes", saved.bytes}};
}

std::string query_of(const http::Request& request, const std::string& key) {
  const auto found = request.query.find(key);
  return found == request.query.end() ? std::string() : found->second;
}

int64_t loops_of_query(const std::string& text) {
  int64_t loops = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, loops);
  if (text.empty() || (read.ec == std::errc() && read.ptr == end && loops >= 0)) return loops;
  throw http::ApiError(422, "loops: expected a whole number", "loops");
}

// A file that is deleted when no longer used.
struct TemporaryFile {
  explicit TemporaryFile(std::string its_path) : path(std::move(its_path)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string path;
};

// Writes an upload to a file first.
class FileSink : public http::BodySink {
 public:
  using Use = std::function<void(std::shared_ptr<TemporaryFile>)>;
  FileSink(const std::string& path, Use use)
      : file_(std::make_shared<TemporaryFile>(path)),
        out_(path, std::ios::binary),
        use_(std::move(use)) {}

  bool write(std::string_view data, const std::function<void()>&) override {
    out_.write(data.data(), static_cast<std::streamsize>(data.size()));
    if (!out_) throw http::ApiError(503, "no space left to receive the file");
    return true;
  }
  void finish() override {
    out_.close();
    use_(std::move(file_));
  }
  void abandon() override {}

 private:
  std::shared_ptr<TemporaryFile> file_;
  std::ofstream out_;
  Use use_;
};

// Errors do not name the server's temporary file.
SavedState load_uploaded_state(const ServedModels& models, const std::string& path) {
  try {
    return load_state_file(models, path);
  } catch (const Error& error) {
    std::string message = error.message();
    for (size_t at = message.find(path); at != std::string::npos; at = message.find(path)) {
      message.replace(at, path.size(), "the uploaded file");
    }
    throw Error(error.code(), message, error.advice());
  }
}

}  // namespace

SavedState load_state_file(const ServedModels& models, const std::string& path) {
  std::string owner;
  State::load_any(path, owner, Verify::nothing);
  for (const ServedLanguageModel* model : models.all_language()) {
    if (model->fingerprint != owner) continue;
    return saved_state(model->trained.model->load_state(path, owner, 1), model->name, owner);
  }
  throw http::ApiError(
      409, "the state belongs to a model that is not served here: " + printable(owner, 80));
}

std::string Api::temporary_file() {
  return fmt::format("{}/{}.state", temporary_folder_, ++temporary_files_);
}

SavedState Api::find_state(const std::string& name) {
  http::check_state_name(name, "name");
  std::optional<SavedState> found = states_.find(name);
  if (!found) throw http::ApiError(404, fmt::format("there is no state '{}'", name), "name");
  return std::move(*found);
}

void Api::list_states(const Request&, const Client& client) {
  models();
  json all = json::array();
  for (const StateStore::Listed& s : states_.list()) {
    all.push_back({{"name", s.name},
                   {"model", s.model},
                   {"tokens", s.tokens},
                   {"bytes", s.bytes},
                   {"age_seconds", s.age_seconds},
                   {"idle_seconds", s.idle_seconds}});
  }
  reply_json(client, {{"states", all}});
}

void Api::get_state(const Request& request, const Client& client) {
  models();
  const std::string name = query_of(request, "*");
  const SavedState saved = find_state(name);
  background_.post(client, [this, name, saved, client] {
    const TemporaryFile file(temporary_file());
    saved.state.save(file.path, saved.fingerprint);
    http::Response response;
    response.content_type = "application/octet-stream";
    response.fields.emplace_back("Content-Disposition",
                                 fmt::format("attachment; filename=\"{}.state\"", name));
    response.body = read_text_file(file.path, 2 * limits_.state_bytes);
    client->reply(std::move(response));
  });
}

std::shared_ptr<http::BodySink> Api::receive_state(const Request& head, const Client& client) {
  models();
  std::string name;
  find_route(head, &name);
  http::check_state_name(name, "name");
  return std::make_shared<FileSink>(
      temporary_file(), [this, name, client](const std::shared_ptr<TemporaryFile>& file) {
        background_.post(client, [this, name, client, file] {
          const SavedState saved = load_uploaded_state(models(), file->path);
          states_.put(name, saved);
          reply_json(client, state_json(name, saved), 201);
        });
      });
}

void Api::put_state(const Request&, const Client&) {}  // receive_state() has answered

void Api::delete_state(const Request& request, const Client& client) {
  models();
  const std::string name = query_of(request, "*");
  http::check_state_name(name, "name");
  if (!states_.remove(name)) {
    throw http::ApiError(404, fmt::format("there is no state '{}'", name), "name");
  }
  reply_json(client, {{"deleted", name}});
}

void Api::fork_state(const Request& request, const Client& client) {
  models();
  const json body = json_of(request);
  const http::JsonReader in(body);
  const std::string to = in.text("to", "");
  http::check_state_name(to, "to");
  const SavedState saved = find_state(query_of(request, "*"));
  states_.put(to, saved);
  reply_json(client, state_json(to, saved), 201);
}

void Api::make_state(const Request&, const Client&) {}  // receive_document() has answered

std::shared_ptr<http::BodySink> Api::receive_document(const Request& head, const Client& client) {
  const std::string name = query_of(head, "name");
  http::check_state_name(name, "name");
  ServedLanguageModel& model =
      models().find_language(query_of(head, "model"), loops_of_query(query_of(head, "loops")));
  State from;
  if (const std::string before = query_of(head, "state"); !before.empty()) {
    const SavedState saved = find_state(before);
    if (saved.fingerprint != model.fingerprint) {
      throw foreign_state(before, saved, model.name);
    }
    from = saved.state;
  }
  auto upload = std::make_shared<DocumentUpload>(name, client, model, states_, engine_, from);
  engine_.submit(upload);
  return upload;
}

}  // namespace rondo::serve

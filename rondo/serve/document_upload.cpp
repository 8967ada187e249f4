// Tokenizing and processing an upload.
#include "rondo/serve/document_upload.h"

#include <fmt/format.h>

namespace rondo::serve {
namespace {

constexpr size_t kMostWaiting = 1 << 16;  // tokens
constexpr size_t kFewWaiting = kMostWaiting / 4;

}  // namespace

DocumentUpload::DocumentUpload(std::string name, std::shared_ptr<http::Exchange> exchange,
                               ServedLanguageModel& model, StateStore& states, Engine& engine,
                               State from)
    : name_(std::move(name)),
      exchange_(std::move(exchange)),
      model_(model),
      states_(states),
      engine_(engine),
      from_(std::move(from)),
      sequence_(*this, 0, SamplerOptions()) {}

void DocumentUpload::tokenize(bool last) {
  std::string_view rest = text_;
  for (size_t cut = encode_cut(rest, last); cut > 0 && !rest.empty();
       cut = encode_cut(rest, last)) {
    const std::vector<int32_t> tokens = model_.trained.tokenizer->encode(rest.substr(0, cut));
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    rest.remove_prefix(cut);
  }
  text_ = std::string(rest);
}

bool DocumentUpload::write(std::string_view data, const std::function<void()>& resume) {
  bool full = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    text_ += data;
    tokenize(/*last=*/false);
    full = tokens_.size() > kMostWaiting;
    if (full) resume_ = resume;
  }
  engine_.wake();
  return !full;
}

void DocumentUpload::finish() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tokenize(/*last=*/true);
    ended_ = true;
  }
  engine_.wake();
}

// Pieces have fixed offsets, independent of how the document arrived.
std::vector<int32_t> DocumentUpload::take(size_t count) {
  std::function<void()> resume;
  std::vector<int32_t> piece;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tokens_.size() < count && !ended_) return {};
    const auto end = tokens_.begin() + static_cast<int64_t>(std::min(count, tokens_.size()));
    piece.assign(tokens_.begin(), end);
    tokens_.erase(tokens_.begin(), end);
    if (tokens_.size() < kFewWaiting) resume = std::exchange(resume_, nullptr);
  }
  if (resume) resume();
  return piece;
}

bool DocumentUpload::at_end() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_ && tokens_.empty();
}

void DocumentUpload::start() {
  sequence_.source = this;
  model_.scheduler->add(sequence_, from_);
  from_ = State();
}

void DocumentUpload::stop() {
  model_.scheduler->remove(sequence_);
  done_ = true;
}

void DocumentUpload::fail(const http::ApiError& error) {
  exchange_->reply(error.response());
  done_ = true;
}

bool DocumentUpload::prompt_read(Sequence& s) {
  if (s.position == 0) {
    fail(http::ApiError(400, "the document is empty"));
    return false;
  }
  const SavedState saved =
      saved_state(model_.scheduler->state_of(s), model_.name, model_.fingerprint);
  states_.put(name_, saved);
  http::Response response;
  response.status = 201;
  response.body = fmt::format(R"({{"name":"{}","model":{},"tokens":{},"bytes":{}}})", name_,
                              http::json_string(model_.name), saved.tokens, saved.bytes);
  exchange_->reply(std::move(response));
  return false;
}

}  // namespace rondo::serve

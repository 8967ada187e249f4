// The SentencePiece plugin: the only code that uses libsentencepiece. rondo/data/piece_library.h
// explains why it is separate.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "rondo/data/piece_library.h"

namespace rondo {
namespace {

class Model : public PieceModel {
 public:
  std::string load(const std::string& serialized) {
    const auto status = processor_.LoadFromSerializedProto(serialized);
    return status.ok() ? "" : status.message();
  }
  int count() const override { return processor_.GetPieceSize(); }
  std::string piece(int id) const override { return processor_.IdToPiece(id); }
  bool is_byte(int id) const override { return processor_.IsByte(id); }
  bool is_special(int id) const override {
    return processor_.IsControl(id) || processor_.IsUnknown(id);
  }
  int padding() const override { return processor_.pad_id(); }
  int begin() const override { return processor_.bos_id(); }
  int end() const override { return processor_.eos_id(); }
  int unknown() const override { return processor_.unk_id(); }
  bool encode(std::string_view text, std::vector<int>& ids) const override {
    return processor_.Encode(text, &ids).ok();
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

std::unique_ptr<PieceModel> load_model(const std::string& serialized, std::string& error) {
  auto model = std::make_unique<Model>();
  error = model->load(serialized);
  if (!error.empty()) return nullptr;
  return model;
}

// Adapts our stream to SentencePiece's interface.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(SentenceStream& stream) : stream_(stream) {}
  bool done() const override { return stream_.done(); }
  void Next() override { stream_.next(); }
  const std::string& value() const override { return stream_.value(); }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  SentenceStream& stream_;
};

bool train_model(const std::unordered_map<std::string, std::string>& flags, SentenceStream& stream,
                 std::string& model, std::string& error) {
  Sentences sentences(stream);
  const auto status = sentencepiece::SentencePieceTrainer::Train(flags, &sentences, &model);
  error = status.ok() ? "" : status.message();
  return status.ok();
}

}  // namespace
}  // namespace rondo

extern "C" const rondo::PieceLibrary* rondo_piece_library() {
  static const rondo::PieceLibrary library = {rondo::load_model, rondo::train_model};
  return &library;
}

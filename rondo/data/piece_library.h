// SentencePiece behind a small interface. Debian's libsentencepiece exports the protobuf it was
// built with, which crashes libtorch's own libprotobuf when both are loaded into one namespace. It
// is therefore wrapped in a separate library (plugins/sentencepiece.cpp), loaded privately when a
// model is first used. Internal to rondo/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rondo {

// A loaded model.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  virtual int count() const = 0;
  virtual std::string piece(int id) const = 0;
  virtual bool is_byte(int id) const = 0;
  virtual bool is_special(int id) const = 0;  // control or unknown
  virtual int padding() const = 0;            // special tokens: -1 if the model has none
  virtual int begin() const = 0;
  virtual int end() const = 0;
  virtual int unknown() const = 0;
  virtual bool encode(std::string_view text, std::vector<int>& ids) const = 0;
};

// Sentences for the trainer, one by one.
class SentenceStream {
 public:
  virtual ~SentenceStream() = default;
  virtual bool done() const = 0;
  virtual void next() = 0;
  virtual const std::string& value() const = 0;
};

// The plugin's functions; on failure they put the message into `error`.
struct PieceLibrary {
  std::unique_ptr<PieceModel> (*load)(const std::string& serialized, std::string& error);
  bool (*train)(const std::unordered_map<std::string, std::string>& flags,
                SentenceStream& sentences, std::string& model, std::string& error);
};

// Loads the plugin from the folder of this program or library. Error{failure} if it is missing.
const PieceLibrary& piece_library();

}  // namespace rondo

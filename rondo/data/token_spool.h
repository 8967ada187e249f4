// Arrays that grow on the disk while a cache is built, so that building holds little in memory.
// Internal to rondo/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/safetensors.h"

namespace rondo {

// Bytes in a file that has no name, so a killed process leaves nothing. Error{io}, with advice if
// the disk is full.
class Spool {
 public:
  explicit Spool(const std::string& folder);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void write(const void* data, size_t size);
  int64_t bytes() const { return bytes_; }

  // All of it, for as long as this lives; write() no more. Null if it is empty.
  const uint8_t* map();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string folder_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  void* mapping_ = nullptr;
};

// Tokens in their final width.
class TokenSpool {
 public:
  TokenSpool(const std::string& folder, DType type) : spool_(folder), type_(type) {}

  void add(const std::vector<int32_t>& tokens);
  int64_t count() const { return spool_.bytes() / dtype_size(type_); }
  DType type() const { return type_; }
  const uint8_t* map() { return spool_.map(); }  // as Spool's

 private:
  template <class Token>
  void add_as(const std::vector<int32_t>& tokens);

  Spool spool_;
  DType type_;
};

}  // namespace rondo

// Limits on input from files. Parsers check these before they allocate, so a hostile or damaged
// file causes an error message instead of exhausting memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo {

// Fixed by the published safetensors format; other readers reject more.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Images need 4, batched attention 5; more than 8 is corruption. Also bounds memory per entry.
constexpr size_t kMaxTensorRank = 8;

// The deepest named model has about a thousand tensors, its checkpoints three times as many.
// Indexing this many takes about 80 MB; files with more are rejected before indexing.
constexpr size_t kMaxTensorsPerFile = 500'000;

// The longest names we write are near 100 bytes. Bounds error messages and indices.
constexpr size_t kMaxTensorNameBytes = 4096;

// Metadata holds notes and a model's config, not data. Bounds the map, whose nodes cost many times
// the six header bytes that request one.
constexpr size_t kMaxMetadataEntries = 100'000;

// A header nests three deep (file, entry, list). Deeper nesting is rejected as it opens.
constexpr int kMaxSafetensorsDepth = 3;

// Configs are written by hand; our largest is a few KB.
constexpr int64_t kMaxConfigBytes = 1 << 20;

// Dotted keys create a table per dot, and the TOML parser destroys tables recursively: unbounded
// depth would overflow the stack. Our own sections nest four deep.
constexpr int kMaxConfigDepth = 32;

// Bytes kept of a line of text (of a TSV column); the rest is skipped.
constexpr size_t kMaxLineBytes = size_t{1} << 20;

// Longest look-back of a repetition penalty in tokens; this many are kept with a document's state
// (32 KB).
constexpr int64_t kMaxRepetitionWindow = 4096;

// Suggesting a name takes time quadratic in its length; longer ones are not typos.
constexpr size_t kMaxSuggestLength = 256;

}  // namespace rondo

// Bounds on what we accept from files. A parser compares with these before it allocates, so a
// hostile or damaged file costs an error message and not the machine's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo {

// The published safetensors format fixes this bound; other readers refuse more.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Images need 4 and batched attention 5; more than 8 is damage. Also bounds each entry's memory.
constexpr size_t kMaxTensorRank = 8;

// The deepest named model holds some thousand tensors, its checkpoints three times as many; so many
// still index in some 80 MB. Files of more are refused before they are indexed.
constexpr size_t kMaxTensorsPerFile = 500'000;

// The longest names we write are near 100 bytes. A limit keeps error messages and indices sane.
constexpr size_t kMaxTensorNameBytes = 4096;

// Metadata is for people and for a model's config, not for data: bounds the memory of the map,
// whose nodes cost many times the six header bytes that ask for one.
constexpr size_t kMaxMetadataEntries = 100'000;

// A header nests three deep (file, entry, list). Anything deeper is refused as it opens.
constexpr int kMaxSafetensorsDepth = 3;

// A config is written by hand: the largest of ours is a few KB.
constexpr int64_t kMaxConfigBytes = 1 << 20;

// Dotted keys open a table per dot, and the TOML parser destroys tables recursively: unbounded
// depth would overflow the stack. Our own sections nest four deep.
constexpr int kMaxConfigDepth = 32;

// Of a line of text (of a TSV: of a column) so much is held; the rest is passed over.
constexpr size_t kMaxLineBytes = size_t{1} << 20;

// A repetition penalty looks back at most so many tokens, and so many are kept with a document's
// state: 32 KB.
constexpr int64_t kMaxRepetitionWindow = 4096;

// Guessing at a mistyped name costs time quadratic in its length; longer ones are no typing slip.
constexpr size_t kMaxSuggestLength = 256;

}  // namespace rondo

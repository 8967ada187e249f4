// Every named model of the three papers, torch-free: its configuration, where the papers speak of
// it, and the figures they print. zoo.cpp holds the table; one zoo_<paper>.cpp per paper fills it.
#pragma once

#include <functional>

#include "rondo/model/config.h"

namespace rondo {

// A figure the paper prints. Counts are exact unless `digits` says to how many decimals of a
// million they are known.
struct PaperFigures {
  double parameters = 0;  // 0: not printed
  bool exact = false;     // exactly this many
  bool without_embeddings = false;
  double multiply_adds = 0;  // in billions, 0: not printed
  bool with_norms = false;   // counted by SReT's rule
  std::string note;
};

struct ZooEntry {
  std::string name;
  std::string paper;  // "RingFormer", "Block-Recurrent Transformer", "SReT", "Rondo"
  std::string row;    // "Table 1, RingFormer 512/2048"
  std::function<ModelConfig()> make;
  PaperFigures figures;

  ModelConfig config() const { return make(); }
};

const std::vector<ZooEntry>& zoo();

// Error{usage} with the nearest name if there is none.
const ZooEntry& find_model(const std::string& name);

// Filled by the files of the papers.
void add_ringformer(std::vector<ZooEntry>& zoo);
void add_block_recurrent(std::vector<ZooEntry>& zoo);
void add_sliced_recursive(std::vector<ZooEntry>& zoo);
void add_own(std::vector<ZooEntry>& zoo);

}  // namespace rondo

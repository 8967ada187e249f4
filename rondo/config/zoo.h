// Every named model of the three papers, torch-free: its configuration, where the papers speak of
// it, and the figures they print for it unchanged. zoo.cpp holds the table; one zoo_<paper>.cpp per
// paper fills it.
#pragma once

#include <functional>

#include "rondo/config/model_config.h"

namespace rondo {

// What the paper prints of a model, digit for digit, and beside it what its authors' program
// counts. Empty: nothing.
struct PaperFigures {
  std::string parameters;           // in millions: "8.94"; "13-15": from, to
  std::string multiply_adds;        // in billions: "17.636"
  std::string count;                // the rule they are counted by: "macs", "norms" or "authors"
  std::string authors_code;         // parameters: "8,943,616" or "160.73M"
  bool without_embeddings = false;  // of both counts of parameters
  bool differs = false;             // our count is not what the paper prints: the note says why
  std::string note;

  PaperFigures& work(const char* billions, const char* rule) {
    multiply_adds = billions;
    count = rule;
    return *this;
  }
  PaperFigures& code(const char* parameters_counted) {
    authors_code = parameters_counted;
    return *this;
  }
  PaperFigures& but(const char* why) {
    differs = true;
    note = why;
    return *this;
  }
};

inline PaperFigures printed(const char* millions) {
  PaperFigures f;
  f.parameters = millions;
  return f;
}

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

// The named models of the three papers, torch-free: configuration, location in the paper, and the
// published figures verbatim. zoo.cpp has the table, filled by one zoo_<paper>.cpp per paper.
#pragma once

#include <functional>

#include "rondo/config/model_config.h"

namespace rondo {

// The figures a paper prints for a model, verbatim, and the counts of the authors' code. Empty:
// none.
struct PaperFigures {
  std::string parameters;           // in millions: "8.94"; "13-15": a range
  std::string multiply_adds;        // in billions: "17.636"
  std::string count;                // the counting rule: "macs", "norms" or "authors"
  std::string authors_code;         // parameters: "8,943,616" or "160.73M"
  bool without_embeddings = false;  // applies to both parameter counts
  bool differs = false;             // our count differs from the paper's; the note explains why
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

// Throws Error{usage} with the nearest name if there is no such model.
const ZooEntry& find_model(const std::string& name);

// Defined in the file of each paper.
void add_ringformer(std::vector<ZooEntry>& zoo);
void add_block_recurrent(std::vector<ZooEntry>& zoo);
void add_sliced_recursive(std::vector<ZooEntry>& zoo);
void add_own(std::vector<ZooEntry>& zoo);

}  // namespace rondo

// What `rondo bench` measures. A case is a name and a function that returns a result; most are
// races: contestants that take turns (bench/measure.h), machine limits as canaries, and claims,
// each the ratio of two rates.
#pragma once

#include <memory>

#include "bench/limits.h"
#include "bench/peer.h"

namespace rondo {

struct BenchOptions {
  MeasureOptions measure;
  bool peers = true;
  PeerOptions peer;
};

// A contestant's result.
struct BenchLine {
  std::string name;
  std::string unit;  // "tokens"
  Spread per_second;
  Spread seconds;  // of one execution
  bool peer = false;
};

// A claim and its outcome.
struct BenchClaim {
  std::string what;  // "bf16: speed over PyTorch fp32"
  Spread value;
  double bound = 0;  // 0: none, only reported
  bool at_least = true;
  bool conclusive = true;

  bool met() const { return at_least ? value.median >= bound : value.median <= bound; }
};

struct BenchResult {
  std::string name;
  std::vector<BenchLine> lines;
  std::vector<BenchClaim> claims;
  std::vector<BenchLine> canaries;  // limits, in their own units
  double canary_moved = 0;
  bool conclusive = true;
  std::string verdict;             // on the measurement
  std::vector<std::string> notes;  // "python3-torch is not installed: no ratios"
};

struct BenchCase {
  std::string name;
  std::string about;
  bool quick = false;  // part of the default selection
  std::function<BenchResult(const BenchOptions&)> run;
  bool by_name = false;  // slow: runs only when named, not with --all
};

// All cases, in report order.
const std::vector<BenchCase>& bench_cases();
// The cases with these names. Throws Error{usage} listing the valid names.
std::vector<BenchCase> find_bench_cases(const std::vector<std::string>& names);

// Implemented in cases/, one file per topic.
void add_language_cases(std::vector<BenchCase>& cases);
void add_recurrence_cases(std::vector<BenchCase>& cases);
void add_step_time_cases(std::vector<BenchCase>& cases);
void add_translation_cases(std::vector<BenchCase>& cases);
void add_image_cases(std::vector<BenchCase>& cases);
void add_memory_cases(std::vector<BenchCase>& cases);

// Peak memory of doing `what`, in bytes; run it in its own process.
int64_t bench_memory_of(const std::string& what);

// One race.
class Race {
 public:
  Race(std::string name, const BenchOptions& options);

  // Our own work; one execution does `units` of `unit`.
  void ours(const std::string& name, double units, const std::string& unit,
            std::function<void()> work);
  // The same for work that times itself.
  void ours(const std::string& name, double units, const std::string& unit, Timed run);
  // A peer doing the same. `parameters`: the number its network must have, or it is skipped as a
  // different network; 0 = any. Without peers this does nothing, and claims about the peer are
  // skipped.
  void peer(const std::string& name, double units, const std::string& unit,
            const std::string& script, const std::vector<std::string>& arguments,
            int64_t parameters = 0);
  // Adds a machine limit. fp32 matmul and copy are always included.
  void limit(const Limit& limit);

  // `name` does `work` (in the limit's unit) per execution: the fraction of the limit it reaches.
  void share(const std::string& name, double work, const std::string& limit, double bound);
  // Units per second of one over those of the other.
  void faster(const std::string& name, const std::string& than, double bound);
  // Seconds per unit of one over those of the other; bound 0 = report only.
  void cost(const std::string& name, const std::string& over, double bound);

  BenchResult run();

 private:
  struct Entry {
    std::string name;
    std::string unit;
    double units = 0;
    Timed run;
    bool peer = false;
  };
  struct Claim {
    std::string what;
    std::string top, bottom;  // value = factor · seconds(bottom) / seconds(top)
    double factor = 1;
    double bound = 0;
    bool at_least = true;
  };
  const Entry* find(const std::string& name) const;
  const Limit* find_limit(const std::string& name) const;
  void note(const std::string& text);
  void fill(const Measurement& m, BenchResult& result) const;

  std::string name_;
  const BenchOptions& options_;
  std::vector<Entry> entries_;
  std::vector<Limit> limits_;
  std::vector<Claim> claims_;
  std::vector<std::string> notes_;
  std::vector<std::shared_ptr<Peer>> peers_;
};

}  // namespace rondo

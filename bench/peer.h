// Another program to compare with: a script of bench/peers that builds its network, prints "ready",
// and then works on request. No torch dependency.
//
//   ours                    peer
//                           ready {"parameters": 6900000, ...}
//   go 3                    1.2034          seconds for three executions, by its own clock
//   memory                  512000000       peak resident bytes
//   (end of input)          (exits)
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rondo {

// The system's interpreter, for which Debian packages torch; otherwise the first on the path.
std::string usual_python();

// How peers are started.
struct PeerOptions {
  std::string python = usual_python();
  std::string folder;  // of the scripts
  int64_t threads = 1;
  bool processor_time = false;  // report CPU time divided by threads instead of wall time
};

class Peer {
 public:
  // Starts `script` and waits until it is ready or has exited.
  Peer(const PeerOptions& options, const std::string& script,
       const std::vector<std::string>& arguments);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool ready() const { return ready_; }
  // Why it is not, or no longer, ready: "python3-torch is not installed".
  const std::string& trouble() const { return trouble_; }
  // The JSON object it sent with "ready".
  const nlohmann::json& metadata() const { return metadata_; }

  // Seconds for `times` executions; NaN once it has exited.
  double go(int64_t times);
  int64_t peak_bytes();

 private:
  void start(const std::vector<std::string>& words);
  void greet();
  std::string ask(const std::string& line);
  bool read_line(std::string& line, double seconds);
  void fail(const std::string& why);
  std::string how_it_ended();

  std::string name_;
  pid_t child_ = -1;
  int channel_ = -1;
  std::string unread_;
  std::string trouble_;
  nlohmann::json metadata_;
  bool ready_ = false;
};

// bench/peers of the installation or the source tree (share_folder()). Empty if not found.
std::string find_peers();

}  // namespace rondo

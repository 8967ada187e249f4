// Metrics in Prometheus text format.
#include "rondo/serve/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rondo::serve {
namespace {

void add_metric(std::string& out, const char* kind, const char* name, const char* help,
                double value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, kind, value);
}

}  // namespace

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  in >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t open_descriptors() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++count;
  }
  return count;
}

std::string prometheus_text(const Metrics& m, const Gauges& g) {
  std::string out =
      "# HELP rondo_responses_total Responses by status.\n# TYPE rondo_responses_total counter\n";
  for (size_t status = 0; status < m.responses.size(); ++status) {
    if (m.responses[status] == 0) continue;
    out += fmt::format("rondo_responses_total{{status=\"{}\"}} {}\n", status,
                       m.responses[status].load());
  }
  const auto count = [&](const char* name, const char* help, double value) {
    add_metric(out, "counter", name, help, value);
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    add_metric(out, "gauge", name, help, value);
  };
  count("rondo_prompt_tokens_total", "Prompt and document tokens processed.",
        static_cast<double>(m.prompt_tokens));
  count("rondo_cached_tokens_total", "Tokens covered by saved states.",
        static_cast<double>(m.cached_tokens));
  count("rondo_completion_tokens_total", "Tokens generated.",
        static_cast<double>(m.completion_tokens));
  count("rondo_steps_total", "Steps of language models.", static_cast<double>(m.steps));
  count("rondo_step_rows_total", "Sequences in those steps.", static_cast<double>(m.step_rows));
  count("rondo_step_seconds_total", "Time spent in steps.",
        static_cast<double>(m.step_microseconds) * 1e-6);
  count("rondo_read_seconds_total", "Time spent processing prompts.",
        static_cast<double>(m.read_microseconds) * 1e-6);
  count("rondo_abandoned_total", "Requests whose client disconnected.",
        static_cast<double>(m.abandoned));
  count("rondo_translated_lines_total", "Lines translated.",
        static_cast<double>(m.translated_lines));
  count("rondo_classified_images_total", "Images classified.",
        static_cast<double>(m.classified_images));
  gauge("rondo_queued", "Waiting requests.", static_cast<double>(g.queued));
  gauge("rondo_running", "Running sequences.", static_cast<double>(g.running));
  gauge("rondo_connections", "Open connections.", static_cast<double>(g.connections));
  gauge("rondo_states", "Saved states.", static_cast<double>(g.states));
  gauge("rondo_state_bytes", "Memory of saved states.", static_cast<double>(g.state_bytes));
  gauge("process_resident_memory_bytes", "Resident memory.", static_cast<double>(resident_bytes()));
  gauge("process_open_fds", "Open file descriptors.", static_cast<double>(open_descriptors()));
  return out;
}

}  // namespace rondo::serve

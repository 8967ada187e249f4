// The result of a study: a page with figures, and the numbers behind them.
#pragma once

#include <nlohmann/json.hpp>

#include "rondo/nn/torch.h"
#include "rondo/report/maps.h"
#include "rondo/report/page.h"

namespace rondo::study {

struct StudyReport {
  explicit StudyReport(const std::string& title) : page(title) {}
  Page page;
  nlohmann::json numbers = nlohmann::json::object();
  std::string summary;  // a few lines for the terminal
};

// The values of a tensor [rows, columns] or [n] as lists.
Grid grid_of(const Tensor& values);
std::vector<double> list_of(const Tensor& values);
// As JSON; non-finite values become null.
nlohmann::json json_of(const Tensor& values);

}  // namespace rondo::study

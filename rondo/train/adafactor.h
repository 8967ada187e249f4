// Adafactor (Shazeer and Stern 2018) with momentum, as used to train the Block-Recurrent
// Transformer: the second moment of a matrix is factored into a row and a column, updates are
// clipped at RMS 1 and scaled by the parameter's own RMS.
#pragma once

#include "rondo/train/optimizer.h"

namespace rondo {

class Adafactor : public Optimizer {
 public:
  Adafactor(const OptimizerConfig& config, const std::vector<OptimizedPart>& parts);

 private:
  void update(Slot& slot, const Tensor& gradient, const Step& step) override;
  void update_plain(Slot& slot, const Tensor& gradient, const Step& step) const;

  double beta1_;
};

}  // namespace rondo

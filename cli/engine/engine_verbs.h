// The verbs that run in the engine. Each throws on failure.
#pragma once

#include "cli/serve_options.h"
#include "cli/study_options.h"

namespace rondo::cli {

void run_average(const AverageOptions& options);
void run_bench(const BenchOptions& options);
void run_classify(const ClassifyOptions& options);
void run_compare(const CompareOptions& options);
void run_doctor(const DoctorOptions& options);
void run_eval(const EvalOptions& options);
void run_export(const ExportOptions& options);
void run_forward(const ForwardOptions& options);
void run_generate(const GenerateOptions& options);
void run_import(const ImportOptions& options);
void run_info(const InfoOptions& options);
void run_serve(const ServeVerb& options);
void run_state_fork(const StateForkOptions& options);
void run_state_info(const StateInfoOptions& options);
void run_state_read(const StateReadOptions& options);
void run_study(const StudyOptions& options);
// Returns the exit code: 0, or 128 + the signal that stopped it.
int run_train(const TrainOptions& options);
void run_translate(const TranslateOptions& options);

}  // namespace rondo::cli

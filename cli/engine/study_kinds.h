// The kinds of `rondo study`: each turns runs and options into a report.
#pragma once

#include "cli/study_options.h"
#include "rondo/study/report.h"
#include "rondo/study/subject.h"

namespace rondo::cli {

study::StudyReport study_cka(const StudyOptions& options);
study::StudyReport study_attention_distance(const StudyOptions& options);
study::StudyReport study_signals(const StudyOptions& options);
study::StudyReport study_state(const StudyOptions& options);
study::StudyReport study_coefficients(const StudyOptions& options);
study::StudyReport study_cost(const StudyOptions& options);
study::StudyReport study_activations(const StudyOptions& options);
study::StudyReport study_landscape(const StudyOptions& options);

// How runs and data are read; `items`: the default number of items.
study::SubjectOptions subject_options(const StudyOptions& options, int64_t items);

}  // namespace rondo::cli

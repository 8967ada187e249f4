// Which process of a group this is, by the environments of launchers.
#include "rondo/train/group_place.h"

#include <gtest/gtest.h>

#include <map>

#include "rondo/base/error.h"
#include "rondo/train/process_group.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

std::optional<GroupPlace> found(const std::map<std::string, std::string>& variables,
                                const GroupOptions& options = {}) {
  return find_group(options, [&](const char* name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  });
}

void refused(const std::map<std::string, std::string>& variables, const std::string& part) {
  try {
    found(variables);
    ADD_FAILURE() << "expected an error with " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(GroupPlace, NobodySaysAnything) {
  EXPECT_FALSE(found({}).has_value());
  EXPECT_FALSE(found({{"RANK", "0"}}).has_value());
  EXPECT_FALSE(found({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).has_value());
  // A batch script of Slurm that has started no step.
  EXPECT_FALSE(found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).has_value());
}

TEST(GroupPlace, Torchrun) {
  const auto place = found({{"RANK", "3"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_RUN_ID", "x"}});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->shard.rank, 3);
  EXPECT_EQ(place->shard.size, 8);
  EXPECT_EQ(place->local_size, 4);
  EXPECT_EQ(place->address, "node1");
  EXPECT_EQ(place->port, 29501) << "torchrun listens at 29500 itself";
}

TEST(GroupPlace, Slurm) {
  const auto place = found({{"SLURM_PROCID", "5"},
                            {"SLURM_STEP_NUM_TASKS", "12"},
                            {"SLURM_STEP_TASKS_PER_NODE", "4(x3)"},
                            {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                            {"SLURM_JOB_ID", "123456"},
                            {"SLURM_STEP_ID", "2"}});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->shard.rank, 5);
  EXPECT_EQ(place->local_size, 4);
  EXPECT_EQ(place->address, "gpu07");
  EXPECT_GE(place->port, 20000);
  EXPECT_LT(place->port, 40000);
}

TEST(GroupPlace, OpenMpiOnOneMachineMeetsByAFile) {
  const auto place = found({{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "job.1/2"}});
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->shard.rank, 1);
  EXPECT_NE(place->file.find("job-1-2"), std::string::npos) << place->file;
}

TEST(GroupPlace, FirstNodeOfALink) {
  EXPECT_EQ(first_slurm_node("one"), "one");
  EXPECT_EQ(first_slurm_node("one,two"), "one");
  EXPECT_EQ(first_slurm_node("node[03-17,21],other"), "node03");
  EXPECT_EQ(first_slurm_node("a,node[03-17]"), "a");
  EXPECT_EQ(first_slurm_node("node[9]"), "node9");
}

TEST(GroupPlace, Contradictions) {
  refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "expected a rank below 2");
  refused({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK: expected a whole number");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "no meeting address is set");
  refused({{"OMPI_COMM_WORLD_RANK", "1"},
           {"OMPI_COMM_WORLD_SIZE", "4"},
           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
          "no meeting address is set");
  GroupOptions options;
  options.file = "meeting";
  EXPECT_THROW(found({}, options), Error);
}

TEST(GroupPlace, DifferencesAreNamed) {
  EXPECT_EQ(first_difference("a = 1\nb = 2\n", "a = 1\nb = 2\n"), "");
  EXPECT_EQ(first_difference("[train]\na = 1\n", "[train]\na = 2\n"),
            "expected [train] a = 1, got a = 2");
  EXPECT_EQ(first_difference("a = 1\n", ""), "expected a = 1, got nothing more");
}

}  // namespace
}  // namespace rondo

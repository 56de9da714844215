#include "runtime/processor_info.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::runtime {
namespace {

using ::testing::ElementsAre;

TEST(ProcessorInfo, ReadsModelAndExtensions) {
  const ProcessorInfo info = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu sse4_2 avx avx2 fma zmm\n\n"
      "processor\t: 1\nmodel name\t: Other\nflags\t\t: avx512f\n");
  EXPECT_EQ(info.model, "Some CPU @ 2.0GHz");
  EXPECT_THAT(info.extensions, ElementsAre("sse4_2", "avx", "avx2", "fma"));
  EXPECT_EQ(parse_cpuinfo("").model, "unknown");
}

}  // namespace
}  // namespace reprise::runtime

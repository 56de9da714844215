#include "graph/prepared_names.h"

#include <gtest/gtest.h>

namespace reprise::graph {
namespace {

TEST(LayoutName, TakesPlainWorkspaceAndAxes) {
  for (const char* name : {"plain", "workspace", "a", "ba", "acdb", "aBcd16b", "ABcd16b16a",
                           "ABcd8b16a2b", "aBCde4b4c", "a.64.b.1.", "aB.20.cd16b.1.", "lk"}) {
    EXPECT_TRUE(is_layout_name(name)) << name;
  }
}

TEST(LayoutName, RefusesWhatNoBackendWrites) {
  for (const char* name : {"",         // no axes
                           "Plain",    // no axis beyond the twelfth, l
                           "nchw",     // likewise
                           "plain ",   // a blank
                           "aa",       // an axis twice
                           "aBcd",     // split, without an inner part
                           "abcd16b",  // an inner part of an axis that is not split
                           "aBcd16B",  // an inner part as capital
                           "16baBcd",  // an inner part in front of its axis
                           "aBcd016b", "aBcd0b", "aBcd16",
                           "a.64",  // a stride without its end
                           "a..b", "a.-1.", ".4.a", "a\n"}) {
    EXPECT_FALSE(is_layout_name(name)) << name;
  }
}

}  // namespace
}  // namespace reprise::graph

// Tests that need Node skip where there is none. Here it is asked apart from our own process: if it
// is there, that process starts and finds what it can do, and where LATHE_EXPECTS_NODE is set, as
// ./lathe test does after installing it, it is there. So the others cannot all skip unseen.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backends/wasm/node/backend.h"
#include "backends/wasm/node/process.h"

namespace lathe {
namespace {

bool is_node(int version, const std::string& options = "") {
  return std::system(("node " + options +
                      " --eval 'process.exit(parseInt(process.versions.node) < " +
                      std::to_string(version) + " ? 1 : 0)' >/dev/null 2>&1")
                         .c_str()) == 0;
}

TEST(NodeIsThere, OrNothingTriesIt) {
  if (!is_node(18)) {
    ASSERT_EQ(std::getenv("LATHE_EXPECTS_NODE"), nullptr) << "no Node 18 or newer on PATH";
    GTEST_SKIP() << "no Node 18 or newer on PATH";
  }
  const auto info = wasm::node_info();
  ASSERT_TRUE(info.ok()) << "node is there: " << info.error().message;
  EXPECT_TRUE(check_wasm("simd128").ok());
  // Those before know the option, and number the instructions as the standard no longer does.
  if (is_node(20, "--no-liftoff --experimental-wasm-relaxed-simd"))
    EXPECT_TRUE(check_wasm("relaxed").ok()) << "node " << info->version << " knows relaxed SIMD";
}

}  // namespace
}  // namespace lathe

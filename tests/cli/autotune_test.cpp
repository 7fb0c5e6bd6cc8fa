// Mode max-autotune: what is measured, kept, read again and not trusted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/driver/autotune.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/choices_file.h"
#include "frontend/driver/files.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

// A product with two ways to be made, and several tiles.
constexpr const char* kModel = R"(
func @main(%x: f32[1, 256]) -> f32[1, 512] {
  %w = constant() {name = "w", dtype = f32, shape = [256, 512]}
  %y = matmul(%x, %w)
  %z = relu(%y)
  return %z
}
)";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Autotune : public testing::Test {
 protected:
  Autotune() : home_(testing::TempDir() + "/autotune") {
    fs::remove_all(home_);
    setenv("XDG_CACHE_HOME", home_.c_str(), 1);
    LocTable locs;
    auto model = load_text(kModel, "tiny.lathe", {.random_weights = 0}, locs);
    EXPECT_TRUE(model.ok()) << model.error().message;
    model_ = *std::move(model);
    backend_ = *make_backend("cpu", "avx2");
  }

  Result<Build> make(CompileRequest request = {}) {
    request.threads = request.threads == 0 ? 1 : request.threads;
    request.mode = "max-autotune";
    BuildFailure failure;
    return build(model_, *backend_, request, failure);
  }
  std::string tuning(const CompileRequest& request = {}) {
    const Result<Build> made = make(request);
    return made.ok() ? made->tuning : made.error().message;
  }
  // The one file that was kept.
  fs::path kept() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(home_ + "/lathe/choices"))
      files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }
  static std::string read(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // Changes what the file decides.
  void keep_instead(const std::string& line) const {
    std::string text = read(kept());
    const size_t begin = text.find("\"force\": ["), end = text.find("\"measured\"");
    text.replace(begin, end - begin, "\"force\": [\"" + line + "\"], ");
    write(kept(), text);
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  std::string home_;
  Model model_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(Autotune, MeasuresOnceAndReadsFromThenOn) {
  const std::string first = tuning();
  EXPECT_TRUE(contains(first, "measured now (nothing is kept for 'tiny' yet)")) << first;
  const std::string text = read(kept());
  EXPECT_TRUE(contains(text, "\"isa\": \"avx2\"")) << text;
  EXPECT_TRUE(contains(text, "z: ")) << text;  // the region, with times
  const std::string second = tuning();
  EXPECT_TRUE(contains(second, "as measured before: " + kept().string())) << second;
  EXPECT_EQ(read(kept()), text);
}

TEST_F(Autotune, AgreesWithTheDefault) {
  auto tuned = make();
  BuildFailure failure;
  auto plain = build(model_, *backend_, {.threads = 1}, failure);
  ASSERT_TRUE(tuned.ok() && plain.ok());
  const auto inputs = random_inputs(model_, 1);
  std::vector<Tensor> results;
  for (Build* made : {&*tuned, &*plain}) {
    auto call = CallBuffers::create(made->program(), *inputs, model_.weights());
    ASSERT_TRUE(call.ok() && call->run(*made->executable).ok());
    results.push_back((*call->outputs())[0]);
  }
  for (int64_t i = 0; i < 512; ++i) EXPECT_NEAR(results[0].get(i), results[1].get(i), 1e-4) << i;
}

TEST_F(Autotune, DoesAsTheFileSays) {
  tuning();
  keep_instead("kernel z = loops");
  auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(contains(made->tuning, "1 region made otherwise than by price, as measured before"))
      << made->tuning;
  for (const PassRecord& record : made->lowered.report.passes)
    for (const KernelChoice& choice : record.choices) EXPECT_EQ(choice.plan.kind, "loops");
}

TEST_F(Autotune, LeavesAloneWhatAPersonDecided) {
  CompileRequest request;
  request.force = {*parse_override("kernel z = loops", Loc::unknown())};
  auto made = make(request);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(contains(read(kept()), "\"measured\": []")) << "a decided region was measured";
  for (const PassRecord& record : made->lowered.report.passes)
    for (const KernelChoice& choice : record.choices) EXPECT_EQ(choice.plan.kind, "loops");
}

TEST_F(Autotune, AMissNamesWhatDiffers) {
  tuning();
  const std::string text = tuning({.threads = 2});
  EXPECT_TRUE(contains(text, "is of something else: its threads is '1', here '2'")) << text;
}

TEST_F(Autotune, ATornFileIsMeasuredAnew) {
  tuning();
  const fs::path path = kept();
  const std::string whole = read(path);
  for (const std::string& torn :
       {whole.substr(0, whole.size() / 2), std::string(), std::string("[1]"),
        std::string(R"({"version": 1, "for": {}, "force": [7]})"),
        std::string(R"({"version": 1, "for": {}, "force": ["kernel"]})"),
        std::string(R"({"version": 9})")}) {
    write(path, torn);
    const std::string text = tuning();
    EXPECT_TRUE(contains(text, "measured now (" + path.string() + ": ")) << text;
    EXPECT_TRUE(contains(read(path), "\"force\"")) << torn;
  }
}

TEST_F(Autotune, ADecisionThatCannotBeCarriedOutIsMeasuredAnew) {
  tuning();
  keep_instead("kernel nobody = loops");
  const std::string said = tuning();
  EXPECT_TRUE(contains(said, "no kernel computes 'nobody'")) << said;
  EXPECT_FALSE(contains(read(kept()), "nobody"));
}

TEST_F(Autotune, AFolderThatCannotBeWrittenIsSaid) {
  write(home_, "a file where the folder would be");
  const std::string text = tuning();
  EXPECT_TRUE(contains(text, "measured now")) << text;
  EXPECT_TRUE(contains(text, home_)) << text;
}

TEST_F(Autotune, ProcessesAtOnceLeaveOneWholeFile) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(make().ok() ? 0 : 1);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string text = tuning();
  EXPECT_TRUE(contains(text, "as measured before: " + kept().string())) << text;
}

}  // namespace
}  // namespace lathe

// Runs one model on its targets and holds it against the interpreter.
#pragma once
#include <string>
#include <vector>

#include "frontend/driver/model.h"
#include "ir/support/result.h"

namespace lathe {

struct ModelCase {
  std::string path;
  std::string inputs = "random:0";  // or an .npz
  std::string weights = "file";
  std::string targets = "cpu,wasm";
  std::string expected;  // an .npz of PyTorch's results; empty: none
};

// GoogleTest failures for everything that does not hold: an error, a row that does not agree, a
// result that is not PyTorch's.
void expect_model_runs(const ModelCase& model);

// The model with the weights of seed 0. An error's message is as the command line prints it.
Result<Model> load_seeded_model(const std::string& path);

// "unsupported-op: aten.a, aten.b": the code and the first words of the rows of the error that
// loading the model gives; "" when it loads.
std::string error_of_model(const ModelCase& model);

// Files of a folder with this ending, sorted; paths begin with the folder.
std::vector<std::string> files_with_ending(const std::string& folder, const std::string& ending);

// A test's name out of a path: letters, digits and underscores of the stem.
std::string test_name(const std::string& path);

}  // namespace lathe

// Writes random tensors as .npz, for random_test.py: write_random OUT.npz SEED NAME:DTYPE:DIMS ...
// with DIMS as "3x4"; a NAME that starts with "input." takes the rule of inputs.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "frontend/npz/npz.h"
#include "frontend/weights/random.h"

int main(int argc, char** argv) {
  using namespace lathe;
  std::vector<NamedArray> arrays;
  for (int i = 3; i < argc; ++i) {
    std::string word = argv[i];
    size_t first = word.find(':'), second = word.find(':', first + 1);
    NamedArray named{word.substr(0, first), {}};
    named.array.dtype = *parse_dtype(word.substr(first + 1, second - first - 1));
    TensorType type{named.array.dtype, {}};
    for (const char* at = word.c_str() + second + 1; *at != '\0';) {
      char* end = nullptr;
      named.array.shape.push_back(std::strtoll(at, &end, 10));
      type.shape.emplace_back(named.array.shape.back());
      at = *end == 'x' ? end + 1 : end;
    }
    bool is_input = named.name.compare(0, 6, "input.") == 0;
    FillRule rule = is_input ? input_rule(named.name, type) : weight_rule(named.name, type);
    auto bytes = random_tensor(named.name, type, rule, std::strtoull(argv[2], nullptr, 10));
    if (!bytes.ok()) return 1;
    named.array.bytes = *std::move(bytes);
    arrays.push_back(std::move(named));
  }
  return write_npz(argv[1], arrays).ok() ? 0 : 1;
}

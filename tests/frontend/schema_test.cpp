// The export schema: all of the zoo, every kind of argument, and what is refused.
#include "frontend/pt2/schema.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/pt2/archive.h"

namespace lathe::pt2 {
namespace {

struct Read {
  FileBytes bytes;
  std::unique_ptr<json::Document> document;
  ExportedProgram program;
  std::string error;
};

Read read_text(const std::string& text) {
  Read read;
  LocTable locs;
  read.bytes = own_bytes(text);
  auto document = json::parse(read.bytes.text(), "m.json", locs);
  if (!document.ok()) return {{}, nullptr, {}, render(document.error(), locs)};
  read.document = *std::move(document);
  auto program = read_program(*read.document, locs);
  if (program.ok())
    read.program = *std::move(program);
  else
    read.error = render(program.error(), locs);
  return read;
}

// A model of one call with one argument, JSON as given.
std::string with_argument(const std::string& argument) {
  return R"({"graph_module": {"graph": {"inputs": [], "outputs": [], "nodes": [
    {"target": "t", "inputs": [{"name": "a", "arg": )" +
         argument +
         R"(, "kind": 1}], "outputs": [], "metadata": {}}], "tensor_values": {}},
    "signature": {"input_specs": [], "output_specs": []}, "module_call_graph": []},
    "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "new_key": [1]})";
}

TEST(Schema, ReadsEveryGraphOfTheZoo) {
  size_t files = 0, nodes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/zoo")) {
    if (entry.path().extension() != ".gz") continue;
    auto bytes = read_bytes(entry.path());
    ASSERT_TRUE(bytes.ok());
    auto file = open_model(*bytes, entry.path());
    ASSERT_TRUE(file.ok()) << file.error().message;
    Read read = read_text(std::string(file->program.text()));
    EXPECT_EQ(read.error, "");
    const GraphModule& module = read.program.graph_module;
    EXPECT_EQ(module.graph.inputs.size(), module.signature.input_specs.size());
    EXPECT_EQ(module.graph.outputs.size(), module.signature.output_specs.size());
    nodes += module.graph.nodes.size();
    ++files;
  }
  EXPECT_EQ(files, 58u);
  EXPECT_EQ(nodes, 19810u);
}

TEST(Schema, ReadsEveryKindOfArgument) {
  const std::pair<Argument::Tag, const char*> cases[] = {
      {Argument::Tag::as_none, R"({"as_none": true})"},
      {Argument::Tag::as_tensor, R"({"as_tensor": {"name": "x"}})"},
      {Argument::Tag::as_tensors, R"({"as_tensors": [{"name": "x"}, {"name": "y"}]})"},
      {Argument::Tag::as_int, R"({"as_int": 9223372036854775807})"},
      {Argument::Tag::as_ints, R"({"as_ints": [1, -1]})"},
      {Argument::Tag::as_float, R"({"as_float": "-Infinity"})"},
      {Argument::Tag::as_floats, R"({"as_floats": [1, 2.5, "NaN"]})"},
      {Argument::Tag::as_string, R"({"as_string": "s"})"},
      {Argument::Tag::as_strings, R"({"as_strings": ["s"]})"},
      {Argument::Tag::as_sym_int, R"({"as_sym_int": {"as_name": "s0"}})"},
      {Argument::Tag::as_sym_ints, R"({"as_sym_ints": [{"as_name": "s0"}, {"as_int": 3}]})"},
      {Argument::Tag::as_scalar_type, R"({"as_scalar_type": 7})"},
      {Argument::Tag::as_memory_format, R"({"as_memory_format": 1})"},
      {Argument::Tag::as_layout, R"({"as_layout": 7})"},
      {Argument::Tag::as_device, R"({"as_device": {"type": "cpu", "index": null}})"},
      {Argument::Tag::as_bool, R"({"as_bool": false})"},
      {Argument::Tag::as_bools, R"({"as_bools": [true, false]})"},
      {Argument::Tag::as_sym_bool, R"({"as_sym_bool": {"as_bool": true}})"},
      {Argument::Tag::as_sym_bools, R"({"as_sym_bools": [{"as_name": "b"}]})"},
      {Argument::Tag::as_graph,
       R"({"as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [], "nodes": []}}})"},
      {Argument::Tag::as_optional_tensors,
       R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "x"}}]})"},
      {Argument::Tag::as_custom_obj, R"({"as_custom_obj": {"name": "o", "class_fqn": "C"}})"},
      {Argument::Tag::as_operator, R"({"as_operator": "aten.add"})"},
      {Argument::Tag::as_sym_float, R"({"as_sym_float": {"as_float": 1.5}})"},
      {Argument::Tag::as_sym_floats, R"({"as_sym_floats": [{"as_name": "f"}]})"},
      {Argument::Tag::as_optional_tensor, R"({"as_optional_tensor": {"as_none": true}})"},
      {Argument::Tag::as_complex, R"({"as_complex": {"real": 1.0, "imag": -1.0}})"},
      {Argument::Tag::as_nested_tensors, R"({"as_nested_tensors": [[{"name": "x"}], []]})"},
      {Argument::Tag::as_int_lists, R"({"as_int_lists": [[1], [2, 3]]})"},
      {Argument::Tag::as_string_to_argument,
       R"({"as_string_to_argument": {"k": {"as_int": 1}, "l": {"as_none": true}}})"},
      {Argument::Tag::as_float_lists, R"({"as_float_lists": [[1.0]]})"},
      {Argument::Tag::unknown, R"({"as_hologram": {"name": 1}})"},
  };
  EXPECT_EQ(std::size(cases), static_cast<size_t>(Argument::Tag::unknown) + 1);
  for (const auto& [tag, text] : cases) {
    Read read = read_text(with_argument(text));
    EXPECT_EQ(read.error, "") << text;
    ASSERT_FALSE(read.program.graph_module.graph.nodes.empty()) << text;
    EXPECT_EQ(read.program.graph_module.graph.nodes[0].inputs[0].arg.tag, tag) << text;
  }
}

TEST(Schema, BreachesAreNamedAtTheirPlace) {
  Read read = read_text(
      "{\"schema_version\": {\"major\": 8, \"minor\": 1},\n \"graph_module\": 3,"
      "\"range_constraints\": {}}");
  EXPECT_NE(read.error.find("m.json:2:18: error[bad-model]: expected an object, found an integer"),
            std::string::npos)
      << read.error;
  for (const char* argument :
       {"{}", "[]", R"({"as_int": 1, "as_bool": true})", R"({"as_int": 1.5})", R"({"as_int": "1"})",
        R"({"as_tensor": {}})", R"({"as_sym_int": {}})", R"({"as_float": "many"})",
        R"({"as_int": 9223372036854775808})"})
    EXPECT_NE(read_text(with_argument(argument)).error.find("error[bad-model]"), std::string::npos)
        << argument;
}

TEST(Schema, AnotherMajorIsRefused) {
  Read read = read_text(R"({"schema_version": {"major": 9, "minor": 0}})");
  EXPECT_NE(read.error.find("error[schema-version]: export schema 9.0, expected 8.x"),
            std::string::npos)
      << read.error;
  EXPECT_NE(read_text("{}").error.find("\"schema_version\" is missing"), std::string::npos);
}

TEST(Schema, EveryTruncationIsAnError) {
  const std::string text = with_argument(R"({"as_tensor": {"name": "x"}})");
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(read_text(text.substr(0, size)).error, "") << size;
}

}  // namespace
}  // namespace lathe::pt2

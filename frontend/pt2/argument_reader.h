// Readers of symbolic scalars, tensor metadata and arguments; private to the schema.
#pragma once
#include "frontend/file/json_reader.h"
#include "frontend/pt2/argument.h"

namespace lathe::pt2 {

using json::optional;
using json::read_object;
using json::Reader;
using json::required;

void read(Reader& reader, json::Value value, Device& out);
void read(Reader& reader, json::Value value, SymInt& out);
void read(Reader& reader, json::Value value, SymFloat& out);
void read(Reader& reader, json::Value value, SymBool& out);
void read(Reader& reader, json::Value value, TensorMeta& out);
void read(Reader& reader, json::Value value, CustomObjArgument& out);
void read(Reader& reader, json::Value value, Argument& out);
void read(Reader& reader, json::Value value, Graph& out);

}  // namespace lathe::pt2

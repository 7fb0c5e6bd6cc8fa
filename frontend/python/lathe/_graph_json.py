"""A torch.fx graph of ATen calls as the JSON of torch.export, which Lathe imports.

PyTorch's own serializer takes 110 to 150 ms for bert_base and refuses tensor constants and the
types in nn_module_stack that Dynamo leaves there. This writes what the importer reads and nothing
more, in a tenth of that; the tests hold it against PyTorch's.
"""

import inspect
import json
import math
import operator

import torch
from torch.fx import Node

# torch._export.serde.schema.ScalarType, Layout, MemoryFormat and ArgumentKind, which are private.
SCALAR_TYPES = {
    torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5,
    torch.float16: 6, torch.float32: 7, torch.float64: 8, torch.complex32: 9,
    torch.complex64: 10, torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13,
    torch.uint16: 28, torch.float8_e4m3fn: 29, torch.float8_e5m2: 30,
    torch.float8_e4m3fnuz: 31, torch.float8_e5m2fnuz: 32, torch.float8_e8m0fnu: 33,
}  # fmt: skip
STRIDED = 7
MEMORY_FORMATS = {
    torch.contiguous_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
    torch.preserve_format: 4,
}
POSITIONAL, KEYWORD = 1, 2
LARGEST_BOUND = 2**62  # of a range; beyond it there is none
FOR_ROWS = ("map_impl", "scan")  # higher-order operators whose graph runs for each row
NAMESPACES = ("_operator", "math", "builtins", "torch")  # of Python's functions over sizes


class Unwritable(Exception):
    """What the format has no words for, as a sentence; `node` is the call's, where there is one."""

    def __init__(self, reason, node=None):
        super().__init__(reason)
        self.node = node


def write(gm, weights=None):
    """The program of a GraphModule whose nodes have meta["val"], as JSON's dicts and lists.

    weights: names by placeholder, of those that are parameters; every other placeholder is an input
    of the program, sizes included. A `copy_` into a placeholder becomes its mutation.
    """
    return _Writer(gm, weights or {}).program()


class _Writer:
    def __init__(self, gm, weights):
        self.gm, self.weights = gm, weights
        self.nodes, self.inputs, self.input_specs, self.mutations = [], [], [], []
        self.tensors, self.sizes, self.conditions, self.numbers = {}, {}, {}, {}
        self.symbols = {}  # by name: what knows its range, and its SymPy symbol

    def program(self):
        graph, results = self.graph()
        user_inputs = sum("user_input" in spec for spec in self.input_specs)
        signature = {
            "input_specs": self.input_specs,
            "output_specs": self.mutations + results,
        }
        return {
            "graph_module": {
                "graph": graph,
                "signature": signature,
                "module_call_graph": [calling_convention(user_inputs, len(results))],
            },
            "opset_version": {"aten": 10},
            "range_constraints": self.ranges(),
            "schema_version": {"major": 8, "minor": 17},
            "verifiers": [],
            "torch_version": torch.__version__,
            "guards_code": [],
        }

    def graph(self):
        """The graph, and the specs of what it returns."""
        output = next(n for n in reversed(self.gm.graph.nodes) if n.op == "output")
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                self.add_input(node)
            elif node.op == "get_attr" and isinstance(getattr(self.gm, node.target), torch.Tensor):
                raise Unwritable(f"'{node.target}' is a constant of the graph", node)
            elif node.op == "call_function" and node.target is not operator.getitem:
                self.add_call(node)
        results = [{"user_output": {"arg": self.argument(self.written(o))}} for o in output.args[0]]
        graph = {
            "inputs": self.inputs,
            "outputs": [spec["user_output"]["arg"] for spec in results],
            "nodes": self.nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.sizes,
            "sym_bool_values": self.conditions,
            "sym_float_values": self.numbers,
            "custom_obj_values": {},
            "is_single_tensor_return": False,
        }
        return graph, results

    def graph_of(self, node):
        """One that a call carries, as its argument."""
        inner = _Writer(getattr(self.gm, node.target), {})
        inner.symbols = self.symbols
        graph, _ = inner.graph()
        if inner.mutations:
            raise Unwritable(f"'{node.target}' changes what it is given", node)
        return {"as_graph": {"name": node.target, "graph": graph}}

    # ---- inputs and calls -----------------------------------------------------------------------

    def add_input(self, node):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.describe(node.name, value)
            arg = {"as_tensor": {"name": node.name}}
        elif isinstance(value, torch.SymInt):
            self.sizes[node.name] = self.expression(value)
            arg = {"as_sym_int": {"as_name": node.name}}
        elif isinstance(value, int) and not isinstance(value, bool):
            arg = {"as_int": value}
        else:
            raise Unwritable(f"input '{node.name}' is a {type(value).__name__}", node)
        self.inputs.append(arg)
        if node.name in self.weights:
            spec = {"arg": arg["as_tensor"], "parameter_name": self.weights[node.name]}
            self.input_specs.append({"parameter": spec})
        else:
            self.input_specs.append({"user_input": {"arg": arg}})

    def add_call(self, node):
        target = node.target
        if target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            self.add_mutation(node)
            return
        if isinstance(target, torch._ops.OpOverload):
            name = f"torch.ops.{target._schema.name.replace('::', '.')}.{target._overloadname}"
            inputs = self.by_schema(node)
        elif callable(target) and getattr(target, "__module__", None) in NAMESPACES:
            name = f"{target.__module__}.{target.__name__}"
            names = inspect.signature(target).parameters
            inputs = [named(n, self.argument(a), POSITIONAL) for n, a in zip(names, node.args)]
        elif isinstance(target, torch._ops.HigherOrderOperator) and target.name() in FOR_ROWS:
            name = f"torch.ops.higher_order.{target.name()}"
            inputs = [named("", self.graph_of(node.args[0]), POSITIONAL)]
            inputs += [named("", self.sequence(list(a), "Tensor"), POSITIONAL)
                       for a in node.args[1:]]
        else:
            raise Unwritable(f"'{getattr(target, '__name__', target)}' is no operator", node)
        self.add_node(name, inputs, self.outputs(node), node)

    @staticmethod
    def written(output):
        """What an output that is the result of writing to an input is a copy of: AOTAutograd hands
        out the input itself.
        """
        copies = torch.ops.aten.copy_.default
        if not isinstance(output, torch.fx.Node) or output.target is not copies:
            return output
        to, source = output.args[:2]
        values = to.meta.get("val"), source.meta.get("val")
        is_same = values[0].dtype == values[1].dtype and values[0].shape == values[1].shape
        return source if to.op == "placeholder" and is_same else output

    def add_node(self, target, inputs, outputs, node):
        stack = node.meta.get("stack_trace")
        self.nodes.append(
            {
                "target": target,
                "inputs": inputs,
                "outputs": outputs,
                "metadata": {"stack_trace": stack} if stack else {},
                "is_hop_single_tensor_return": None,
                "name": node.name,
            }
        )

    def add_mutation(self, node):
        place, new = node.args[:2]
        old = place.meta["val"]
        if not isinstance(new, Node) or (
            new.meta["val"].dtype != old.dtype or new.meta["val"].shape != old.shape
        ):
            raise Unwritable(f"'{place.name}' is changed by another dtype or shape", node)
        spec = {"arg": {"name": new.name}, "user_input_name": place.name}
        self.mutations.append({"user_input_mutation": spec})

    def by_schema(self, node):
        inputs = []
        for i, argument in enumerate(node.target._schema.arguments):
            if argument.name in node.kwargs:
                value, kind = node.kwargs[argument.name], KEYWORD
            elif i < len(node.args) and not argument.kwarg_only:
                value, kind = node.args[i], POSITIONAL
            else:
                continue
            inputs.append(named(argument.name, self.argument(value, argument.type), kind))
        return inputs

    # ---- values ---------------------------------------------------------------------------------

    def describe(self, name, value):
        if value.dtype not in SCALAR_TYPES or value.layout != torch.strided:
            raise Unwritable(f"'{name}' is {value.dtype} with layout {value.layout}")
        self.tensors[name] = {
            "dtype": SCALAR_TYPES[value.dtype],
            "sizes": [self.expression(size) for size in value.shape],
            "requires_grad": False,
            "device": {"type": value.device.type, "index": value.device.index},
            "strides": [self.expression(stride) for stride in value.stride()],
            "storage_offset": self.expression(value.storage_offset()),
            "layout": STRIDED,
        }

    def expression(self, size):
        """A size as the format spells it."""
        if isinstance(size, int):
            return {"as_int": size}
        expr = size.node.expr
        if expr.is_number:
            return {"as_int": int(expr)}
        for symbol in expr.free_symbols:
            self.symbols[str(symbol)] = (size.node.shape_env, symbol)
        hint = size.node.hint
        hint = None if hint is None else {"as_int": int(hint)}
        return {"as_expr": {"expr_str": spell(expr), "hint": hint}}

    def argument(self, value, schema_type=None):
        if isinstance(value, Node):
            return self.reference(value)
        if isinstance(value, (list, tuple)):
            return self.sequence(list(value), schema_type)
        if value is None:
            return {"as_none": True}
        for kind, form, spelling in ARGUMENTS:
            if isinstance(value, kind):
                return {form: spelling(value)}
        raise Unwritable(f"an argument is a {type(value).__name__}")

    def reference(self, node):
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            return {"as_tensor": {"name": node.name}}
        for kind, form in SYMBOLIC:
            if isinstance(value, kind):
                return {form: {"as_name": node.name}}
        raise Unwritable(f"'{node.name}' is a {type(value).__name__}", node)

    def sequence(self, items, schema_type):
        values = [item.meta["val"] if isinstance(item, Node) else item for item in items]
        if any(isinstance(v, torch.Tensor) for v in values) or "Tensor" in str(schema_type):
            if None in items:
                optional = (
                    {"as_none": True} if item is None else {"as_tensor": {"name": item.name}}
                    for item in items
                )
                return {"as_optional_tensors": list(optional)}
            return {"as_tensors": [{"name": item.name} for item in items]}
        if any(isinstance(item, Node) for item in items):
            sizes = (
                {"as_name": item.name} if isinstance(item, Node) else {"as_int": item}
                for item in items
            )
            return {"as_sym_ints": list(sizes)}
        if items and all(isinstance(item, bool) for item in items):
            return {"as_bools": items}
        if any(isinstance(item, float) for item in items):
            return {"as_floats": [number(float(item)) for item in items]}
        if all(isinstance(item, int) for item in items):
            return {"as_ints": items}
        raise Unwritable("an argument is a list of mixed things")

    def outputs(self, node):
        value = node.meta.get("val")
        if value is None:
            return []
        if isinstance(value, torch.Tensor):
            self.describe(node.name, value)
            return [{"as_tensor": {"name": node.name}}]
        if isinstance(value, (list, tuple)):
            return self.parts(node, value)
        if isinstance(value, torch.SymBool):
            self.conditions[node.name] = {"as_expr": {"expr_str": spell(value.node.expr)}}
            return [{"as_sym_bool": {"as_name": node.name}}]
        if isinstance(value, torch.SymFloat):
            self.numbers[node.name] = {"as_expr": {"expr_str": spell(value.node.expr)}}
            return [{"as_sym_float": {"as_name": node.name}}]
        if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            self.sizes[node.name] = self.expression(value)
            return [{"as_sym_int": {"as_name": node.name}}]
        raise Unwritable(f"'{node.name}' gives a {type(value).__name__}", node)

    def parts(self, node, values):
        """Results of a call that gives several; those that nobody takes have a name too."""
        names = {u.args[1]: u.name for u in node.users if u.target is operator.getitem}
        outputs = []
        for i, value in enumerate(values):
            if value is None:
                outputs.append({"as_none": True})
                continue
            name = names.get(i, f"{node.name}_unused_{i}")
            self.describe(name, value)
            outputs.append({"as_tensor": {"name": name}})
        returned = getattr(node.target, "_schema", None) and node.target._schema.returns
        if returned and len(returned) == 1 and "List" in str(returned[0].type):
            return [{"as_tensors": [output["as_tensor"] for output in outputs]}]
        return outputs

    def ranges(self):
        ranges = {}
        for name, (shape_env, symbol) in self.symbols.items():
            found = shape_env.var_to_range.get(symbol)
            if found is not None:
                ranges[name] = {"min_val": bound(found.lower), "max_val": bound(found.upper)}
        return ranges


def named(name, arg, kind):
    return {"name": name, "arg": arg, "kind": kind}


def number(value):
    """JSON has no words for these."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def bound(limit):
    return int(limit) if limit.is_Integer and abs(limit) < LARGEST_BOUND else None


def spell(expr):
    import sympy

    return sympy.printing.repr.srepr(expr)


# bool is an int to Python, so it comes before.
ARGUMENTS = (
    (bool, "as_bool", bool),
    (int, "as_int", int),
    (float, "as_float", number),
    (complex, "as_complex", lambda z: {"real": number(z.real), "imag": number(z.imag)}),
    (str, "as_string", str),
    (torch.dtype, "as_scalar_type", SCALAR_TYPES.get),
    (torch.device, "as_device", lambda device: {"type": device.type, "index": device.index}),
    (torch.layout, "as_layout", lambda _: STRIDED),
    (torch.memory_format, "as_memory_format", MEMORY_FORMATS.get),
)
SYMBOLIC = (
    ((bool, torch.SymBool), "as_sym_bool"),
    ((int, torch.SymInt), "as_sym_int"),
    ((float, torch.SymFloat), "as_sym_float"),
)


def calling_convention(num_inputs, num_outputs):
    """A tuple of inputs to a tuple of outputs, as an entry of module_call_graph."""
    leaf = {"type": None, "context": None, "children_spec": []}

    def node(kind, children, context="null"):
        return {"type": f"builtins.{kind}", "context": context, "children_spec": children}

    in_spec = node("tuple", [node("tuple", [leaf] * num_inputs), node("dict", [], "[]")])
    return {
        "fqn": "",
        "signature": {
            "inputs": [],
            "outputs": [],
            "in_spec": json.dumps([1, in_spec]),
            "out_spec": json.dumps([1, node("tuple", [leaf] * num_outputs)]),
            "forward_arg_names": None,
        },
    }

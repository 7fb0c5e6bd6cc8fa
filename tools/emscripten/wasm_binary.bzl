"""A WebAssembly module from C++ libraries, within any configuration."""

_SETTINGS = {
    "//command_line_option:compilation_mode": "opt",
    "//command_line_option:copt": [],
    "//command_line_option:cpu": "wasm",
    "//command_line_option:crosstool_top": "//tools/emscripten:suite",
    "//command_line_option:cxxopt": ["-std=c++20"],
    "//command_line_option:features": [],
    "//command_line_option:force_pic": False,
    "//command_line_option:linkopt": [],
    "//command_line_option:per_file_copt": [],
    "//command_line_option:platform_suffix": "",
}

def _to_wasm_impl(_settings, _attr):
    return _SETTINGS

_to_wasm = transition(
    implementation = _to_wasm_impl,
    inputs = [],
    outputs = _SETTINGS.keys(),
)

def _module_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.module + ".wasm")
    ctx.actions.run_shell(
        inputs = ctx.files.binary,
        outputs = [out],
        command = "cp '%s' '%s'" % (ctx.files.binary[0].path, out.path),
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

_module = rule(
    implementation = _module_impl,
    attrs = {
        "binary": attr.label(cfg = _to_wasm),
        "module": attr.string(),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def wasm_binary(name, module, exports, deps, visibility = ["//visibility:public"]):
    """MODULE.wasm, without glue: whoever loads it gives it its few imports.

    Args:
      name: of the target.
      module: name of the file, without ".wasm".
      exports: names of extern "C" functions.
      deps: libraries; those that define exports need alwayslink.
      visibility: of the module.
    """
    native.cc_binary(
        name = name + "_linked.wasm",
        linkopts = [
            "--no-entry",
            "-sSTANDALONE_WASM",
            "-sALLOW_MEMORY_GROWTH",
            "-sMAXIMUM_MEMORY=4GB",
            "-sTOTAL_STACK=8MB",
            "-sEXPORTED_FUNCTIONS=" + ",".join(["_" + e for e in exports]),
        ],
        tags = ["manual"],
        deps = deps,
    )
    _module(
        name = name,
        binary = ":%s_linked.wasm" % name,
        module = module,
        tags = ["web"],  # one compiler, whatever the configuration: no need to build it in each
        visibility = visibility,
    )

"""What Bazel must know of Emscripten: tools, flags and its own headers."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load(
    "@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl",
    "feature",
    "flag_group",
    "flag_set",
    "tool_path",
)

_TOOLS = {
    "ar": "emar.sh",
    "cpp": "/bin/false",
    "gcc": "emcc.sh",
    "gcov": "/bin/false",
    "ld": "emcc.sh",
    "nm": "/bin/false",
    "objdump": "/bin/false",
    "strip": "/bin/true",
}

def _always(name, actions, flags):
    return feature(
        name = name,
        enabled = True,
        flag_sets = [flag_set(actions = actions, flag_groups = [flag_group(flags = flags)])],
    )

def _config_impl(ctx):
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        toolchain_identifier = "emscripten",
        host_system_name = "local",
        target_system_name = "wasm",
        target_cpu = "wasm",
        target_libc = "emscripten",
        compiler = "emscripten",
        abi_version = "unknown",
        abi_libc_version = "unknown",
        features = [
            # Neither exceptions nor dynamic types: the library needs none, and each costs size.
            _always(
                "lathe_compile",
                [ACTION_NAMES.cpp_compile],
                ["-O2", "-fno-exceptions", "-fno-rtti", "-DNDEBUG"],
            ),
            _always("lathe_link", [ACTION_NAMES.cpp_link_executable], ["-O2", "-fno-exceptions"]),
        ],
        tool_paths = [tool_path(name = name, path = path) for name, path in _TOOLS.items()],
        cxx_builtin_include_directories = [
            "/usr/share/emscripten/cache/sysroot/include",
            "/usr/share/emscripten/system",
            "/usr/lib/llvm-14/lib/clang",
        ],
    )

emscripten_config = rule(
    implementation = _config_impl,
    provides = [CcToolchainConfigInfo],
)

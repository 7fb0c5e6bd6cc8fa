"""A library as bytes of a program: one object of all it needs, for a linker to take later."""

def _embedded_object(ctx):
    objects = []
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                objects += library.pic_objects or library.objects or []
    out = ctx.outputs.out
    ctx.actions.run_shell(
        inputs = objects,
        outputs = [out],
        # Linked but for the C library. The symbols of the bytes are named after their file, which
        # therefore lies in a folder of its own.
        command = """set -e
            out=$PWD/$1 name=$2 roots=$3; shift 3
            cxx=$(dirname "$(cc -print-file-name=libstdc++.a)")
            folder=$(mktemp -d)
            trap 'rm -r "$folder"' EXIT
            ld -r -o "$folder/$name" --gc-sections $roots "$@" \
                -L"$cxx" -l:libstdc++.a -l:libgcc_eh.a -l:libgcc.a
            cd "$folder"
            strip --strip-debug "$name"
            ld -r -b binary -z noexecstack "$name" -o "$out"
        """,
        arguments = [
            out.path,
            ctx.attr.object_name,
            " ".join(["-u " + root for root in ctx.attr.roots]),
        ] + [f.path for f in objects],
        mnemonic = "EmbeddedObject",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]))]

embedded_object = rule(
    implementation = _embedded_object,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "object_name": attr.string(doc = "package.o gives _binary_package_o_start and _end"),
        "out": attr.output(),
        "roots": attr.string_list(doc = "functions; what none of them needs is left out"),
    },
)

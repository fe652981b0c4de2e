"""Private parts of numba that kernels depend on, and numba settings that stay the user's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from borelli.kernels.jit import JIT_ON

pytestmark = pytest.mark.skipif(not JIT_ON, reason="numba is not used with BORELLI_JIT=0")

HELP = "numba {version} has no {part}, which borelli.kernels.{user} uses. Adapt it, or lower the bound in pyproject."


def private_parts():
    """Return (part, module that uses it, whether it exists)."""
    import numba
    from numba import _dispatcher
    from numba.core import callconv, cgutils, codegen, compiler, dispatcher, funcdesc, options, serialize, types
    from numba.core.typing import templates

    flags = {name: hasattr(compiler.Flags, name) for name in ("nrt", "no_cpython_wrapper", "no_cfunc_wrapper")}
    convention = callconv.CPUCallConv
    return [
        ("_dispatcher.compute_fingerprint", "shared_tuples", hasattr(_dispatcher, "compute_fingerprint")),
        ("cgutils.pack_array", "shared_tuples", hasattr(cgutils, "pack_array")),
        ("templates.AttributeTemplate", "shared_tuples", hasattr(templates, "AttributeTemplate")),
        ("types.BaseTuple.from_types", "shared_tuples", hasattr(types.BaseTuple, "from_types")),
        ("extending.lower_getattr_generic", "shared_tuples", hasattr(numba.extending, "lower_getattr_generic")),
        ("call_conv.get_function_type", "jit", hasattr(convention, "get_function_type")),
        ("call_conv.call_function", "jit", hasattr(convention, "call_function")),
        ("call_conv.return_status_propagate", "jit", hasattr(convention, "return_status_propagate")),
        ("get_pointer_to_function", "jit", hasattr(codegen.JITCodeLibrary, "get_pointer_to_function")),
        ("fndesc.llvm_func_name", "jit", hasattr(funcdesc.FunctionDescriptor, "llvm_func_name")),
        ("CompileResult._reduce", "machine_code", hasattr(compiler.CompileResult, "_reduce")),
        ("CompileResult._rebuild", "machine_code", hasattr(compiler.CompileResult, "_rebuild")),
        ("serialize.dumps", "machine_code", hasattr(serialize, "dumps")),
        ("Dispatcher._cache", "jit", "_cache" in dispatcher.Dispatcher.compile.__code__.co_names),
        ("option forceinline", "jit", hasattr(options.DefaultOptions, "forceinline")),
        *((f"option {name}", "jit", exists) for name, exists in flags.items()),
    ]


def test_private_parts_of_numba_exist():
    import numba

    missing = [
        HELP.format(version=numba.__version__, part=part, user=user)
        for part, user, exists in private_parts()
        if not exists
    ]
    assert not missing, "\n".join(missing)


def test_numba_is_within_the_tested_range():
    import tomllib

    import numba

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (stated,) = [name for name in project["dependencies"] if name.startswith("numba")]
    lower, upper = (tuple(map(int, bound.strip("numba<>=").split("."))) for bound in stated.split(","))
    assert lower <= tuple(map(int, numba.__version__.split(".")[:2])) < upper


def test_kernels_of_other_packages_keep_their_cache_directory(tmp_path):
    program = tmp_path / "user.py"
    program.write_text(
        "import numba\n"
        "from borelli.numerics.rotation_kernels import rotate\n"
        "@numba.njit(cache=True)\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "assert double(2) == 4\n"
        "print(double.stats.cache_path)\n",
        encoding="utf-8",
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    found = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"PYTHONPATH": path, "BORELLI_CACHE": str(tmp_path / "borelli")},
    )
    assert Path(found.stdout.strip()) == tmp_path / "__pycache__"

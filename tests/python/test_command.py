"""The command line, the module, and the end of the interpreter."""

import os
import subprocess
import sys

import bulkhead as bh
import pytest
from conftest import BUILD, SHADERS


def run(*arguments, **more):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **more)


def test_python_m_bulkhead():
    done = run("-m", "bulkhead", "version")
    assert done.returncode == 0 and bh.__version__ in done.stdout, done.stderr
    done = run("-m", "bulkhead", "rnu")
    assert done.returncode == 2 and "did you mean 'run'?" in done.stderr
    done = run("-m", "bulkhead", "inspect", str(SHADERS / "saxpy.spv"))
    assert done.returncode == 0 and "storage read       f32[]        X" in done.stdout


def test_without_the_program(monkeypatch, capsys):
    from bulkhead import __main__ as command

    assert command.find_program() == str(BUILD / "bin" / "bulkhead")
    monkeypatch.setattr(command, "find_program", lambda: None)
    assert command.main() == 127 and "not installed" in capsys.readouterr().err


# Another library has a tensor until the process ends, and drops it then. (DLManagedTensor.deleter
# is 56 bytes from its beginning.)
TENSOR = """
import ctypes
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule = d.__dlpack__()
tensor = get(capsule, b"dltensor")
used = ctypes.c_char_p(b"used_dltensor")
ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), used)
at_exit = ctypes.CDLL(None).__cxa_atexit
at_exit.argtypes = [ctypes.c_void_p] * 3
assert at_exit(ctypes.c_void_p.from_address(tensor + 56).value, tensor, None) == 0
"""

PROGRAMS = {
    "everything is left to the interpreter": "",
    "the context is left, and what it has is not": "x = ctx.empty(4); v = x.numpy(); del x, ctx",
    "events are pending": "e = stream.launch(hang, groups=4096, Data=d)\nassert not e.done()",
    "a callback is waiting": "e = stream.launch(hang, groups=4096, Data=d)\n"
    "e.add_done_callback(lambda e: None)",
    "a thread waits": "import threading; e = stream.launch(hang, groups=4096, Data=d)\n"
    "threading.Thread(target=e.exception, daemon=True).start()",
    "a tensor that another package drops last": TENSOR,
    "a cycle": "class C: pass\nc = C(); c.c = c; c.all = ctx, stream, hang, d, d.numpy()",
    "exit in a child": "import os\npid = os.fork()\nif pid: assert os.waitpid(pid, 0)[1] == 0",
    "sys.exit with all": "import sys; e = stream.launch(hang, groups=4096, Data=d); sys.exit(0)",
    "an exception": "try:\n    raise ValueError\nexcept ValueError as e:\n    kept = e, d.numpy()",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_the_end_of_the_interpreter(what, tmp_path):
    (tmp_path / "program.py").write_text(
        f"""
import bulkhead as bh
ctx = bh.Context(spares=0)
stream = ctx.stream(deadline="60s")
hang = ctx.kernel({str(SHADERS / "hang.spv")!r})
d = ctx.empty(64, "uint32")
stream.eval("x + 1", x=d).numpy()
{PROGRAMS[what]}
"""
    )
    # Python 3.12 and later warn of every fork of a process with threads.
    quiet = "ignore:This process:DeprecationWarning"
    done = run(
        "-X",
        "dev",
        "-W",
        quiet,
        str(tmp_path / "program.py"),
        env=os.environ | {"PYTHONFAULTHANDLER": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_numpy_is_not_needed():
    done = run(
        "-c",
        """
import sys
sys.modules["numpy"] = None
import bulkhead as bh
with bh.Context(spares=0) as ctx, ctx.stream() as stream:
    x = ctx.asarray(bytes([1, 2, 3]))
    assert stream.eval("x + 1", x=x).tolist() == [2, 3, 4]
    assert memoryview(x).tolist() == [1, 2, 3] and x.dtype == "uint8"
    try:
        ctx.asarray([1, 2])
    except bh.InvalidType as error:
        print(error)
""",
    )
    assert "NumPy is not here" in done.stdout and done.returncode == 0, done.stderr


def test_one_interpreter_only():
    with pytest.raises(RuntimeError, match="another interpreter"):
        bh._native.install(
            **dict.fromkeys(
                (
                    "Stream",
                    "Buffer",
                    "Kernel",
                    "Module",
                    "Event",
                    "make_error",
                    "make_poison",
                    "make_view_error",
                    "make_type_error",
                    "explain_name",
                    "take_array",
                    "to_seconds",
                ),
                object,
            ),
            main_thread=1,
        )

"""The examples in docstrings, and those of docs/python.md and README.md, run and say what they
say.
"""

import contextlib
import doctest
import inspect
import io
import re

import bulkhead as bh
import numpy as np
from conftest import BUILD, SHADERS, SLOWNESS, SOURCE, SQUARE, squares

MODULES = (
    bh,
    bh.buffer,
    bh.completion,
    bh.context,
    bh.dtypes,
    bh.errors,
    bh.event,
    bh.judgement,
    bh.judging,
    bh.kernel,
    bh.mapping,
    bh.module,
    bh.report,
    bh.source,
    bh.stream,
    bh.sweeping,
    bh.values,
    bh.variant,
    bh.verdict,
)


def public():
    """(name, object) of all that the package shows."""
    for name in bh.__all__:
        thing = getattr(bh, name)
        yield name, thing
        if isinstance(thing, type):
            for attribute in dir(thing):
                if not attribute.startswith("_"):
                    yield f"{name}.{attribute}", getattr(thing, attribute)


def is_documentable(thing):
    """Whether it can have a docstring: a class, a function, a property."""
    return callable(thing) or inspect.isdatadescriptor(thing)


def test_everything_public_has_a_docstring():
    inherited = {name for base in (Exception, OSError, str, int) for name in dir(base)}
    without = [
        name
        for name, thing in public()
        if is_documentable(thing)
        and name.split(".")[-1] not in inherited
        and not (getattr(thing, "__doc__", None) or "").strip()
    ]
    assert without == []


def test_docstrings(ctx, stream):
    names = {"bh": bh, "np": np, "ctx": ctx, "stream": stream, "shaders": SHADERS}
    names |= {"task": squares(), "SQUARE": SQUARE}
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {}
    for module in MODULES:
        for test in finder.find(module, globs=vars(module) | names):
            found[test.name] = test
    parser = doctest.DocTestParser()
    for name, thing in public():  # those of the extension module
        if inspect.ismethoddescriptor(thing) or inspect.isgetsetdescriptor(thing):
            found[name] = parser.get_doctest(thing.__doc__ or "", dict(names), name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    said = []
    for test in found.values():
        runner.run(test, out=said.append)
    assert not said, "".join(said)
    assert runner.tries > 30


def blocks(page, *languages):
    """(language, text) of the page's blocks in these languages."""
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.M | re.S):
        if match[1] in languages:
            yield match[1], match[2]


def run_page(page, folder):
    """Run the programs of a page one after the other, and compare what they print."""
    (folder / "build").symlink_to(BUILD)
    names, printed, count = {}, "", 0
    for language, text in blocks(page, "python", "text"):
        if language == "text":
            assert printed == text
            printed, count = "", count + 1
            continue
        assert not printed, "what the block before prints is not on the page"
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, str(page), "exec"), names)
        printed = out.getvalue()
    assert not printed
    return count


def test_the_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if SLOWNESS > 1:  # a kernel has as many times as long to stop, and to be compiled
        make_stream, make_kernel = bh.Context.stream, bh.Context.kernel

        def stream(self, *args, **more):
            return make_stream(self, *args, **{"grace": f"{250 * SLOWNESS}ms"} | more)

        def kernel(self, *args, **more):
            if "deadline" in more:
                more["deadline"] = f"{10 * SLOWNESS}s"
            return make_kernel(self, *args, **more)

        monkeypatch.setattr(bh.Context, "stream", stream)
        monkeypatch.setattr(bh.Context, "kernel", kernel)
    assert run_page(SOURCE / "docs" / "python.md", tmp_path) >= 10


def test_the_readme(tmp_path, monkeypatch):
    (tmp_path / "build").symlink_to(BUILD)
    monkeypatch.chdir(tmp_path)
    ((_, text),) = blocks(SOURCE / "README.md", "python")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "README.md", "exec"), {})
    assert out.getvalue() == "2046.0\n"

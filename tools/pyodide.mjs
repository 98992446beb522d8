// Runs bm25rag in Pyodide, the Python of browsers: `node tools/pyodide.mjs PYODIDE WHEELS TESTS...`.
//
// PYODIDE is the folder of the npm package `pyodide`, which fetches NumPy when it is first asked for
// it. WHEELS is a folder with the wheel without compiled code and what it needs beside NumPy. What
// tests/support/whole_use.py prints is compared with WHEELS/expected.json; then tests run.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [distribution, wheels] = process.argv.slice(2, 4).map((name) => path.resolve(name));
const root = path.resolve(import.meta.dirname, "..");
const { loadPyodide } = await import(pathToFileURL(path.join(distribution, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: distribution + path.sep });
const quiet = { messageCallback: () => {} };
await pyodide.loadPackage(["numpy", "micropip"], quiet);
for (const [place, folder] of [["/wheels", wheels], ["/checkout", root]]) {
  pyodide.FS.mkdir(place);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, place);
}

// micropip refuses the wheel if what its metadata demands here is not there: no PyStemmer.
await pyodide.runPythonAsync(`
import micropip, os

names = sorted(name for name in os.listdir("/wheels") if name.endswith(".whl"))
ours = [name for name in names if name.startswith("bm25rag-")]
assert len(ours) == 1 and ours[0].endswith("-py3-none-any.whl"), ours
for name in (*(name for name in names if name not in ours), *ours):
    await micropip.install(f"emfs:/wheels/{name}", deps=name in ours, index_urls=[])
`);

pyodide.globals.set("tests", pyodide.toPy(process.argv.slice(4)));
const code = pyodide.runPython(`
import json, runpy, shutil, sys

sys.dont_write_bytecode = True
os.makedirs("/here")
for name in ("docs", "tests"):
    shutil.copytree(f"/checkout/{name}", f"/here/{name}", ignore=shutil.ignore_patterns("__pycache__"))
for name in ("README.md", "pyproject.toml"):
    shutil.copy(f"/checkout/{name}", "/here")
os.chdir("/here")

import warnings
from bm25rag.analysis.snowball import library_name
from bm25rag.kernels import backend

with warnings.catch_warnings():
    warnings.simplefilter("error")  # nobody can do anything about NumPy there
    found = runpy.run_path("tests/support/whole_use.py")["use"]()
assert library_name() == "snowballstemmer" and backend.available() == ("numpy",)
expected = json.load(open("/wheels/expected.json"))
assert json.loads(json.dumps(found)) == expected, "other results than of CPython"
print(f"Python {sys.version.split()[0]} on {sys.platform}: the same as CPython, to the bit", flush=True)

import pytest


class Lacking:
    """Skips what starts a process or a thread."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        try:
            return (yield)
        except (OSError, RuntimeError) as error:
            if "not support processes" in str(error) or "start new thread" in str(error):
                pytest.skip(str(error))
            raise


int(pytest.main([
    "-q", "-p", "no:cacheprovider", "--capture=sys", "-m", "not slow", "--hypothesis-profile=quick",
    *tests,
], plugins=[Lacking()]))
`);
process.exitCode = code;

# SPDX-License-Identifier: Apache-2.0
"""Reading the project's files for the checks in this folder: which files there are, and C++ without its comments and strings.

Imported by the other programs here; it prints nothing and changes nothing.
"""

import os
import re
import subprocess
import sys

# With it, importing this file from a clean clone leaves no __pycache__ behind.
sys.dont_write_bytecode = True

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_TOKEN = re.compile(
    r"""
      //[^\n]*                                        # line comment
    | /\*.*?\*/                                       # block comment
    | (?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"   # raw string
    | (?:\b(?:u8|[uUL]))?"(?:\\.|[^"\\\n])*"          # string
    | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'             # character; a quote between digits separates them
    """,
    re.VERBOSE | re.DOTALL,
)


def project_files(root=ROOT):
    """Paths below `root` that belong to the project: known to git or not ignored by it; every file where there is no git."""
    try:
        listing = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode("utf-8", "surrogateescape")
        paths = sorted(set(filter(None, listing.split("\0"))))
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in (".git", ".cache") and not f.startswith("build")]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
        paths.sort()
    return [p for p in paths if os.path.isfile(os.path.join(root, p))]


def read(path, root=ROOT):
    """The text of a file; bytes that are not UTF-8 survive as surrogates."""
    with open(os.path.join(root, path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def code_only(text):
    """`text` with comments blanked and strings emptied, line by line where it was."""

    def blank(match):
        token = match.group(0)
        lines = "\n" * token.count("\n")
        return ('""' if token[0] not in "/'" else " ") + lines

    return _TOKEN.sub(blank, text)


def comments_blanked(text):
    """`text` with comments blanked and strings kept: for what stands inside quotes, as #include does."""

    def blank(match):
        token = match.group(0)
        return " " + "\n" * token.count("\n") if token[0] == "/" else token

    return _TOKEN.sub(blank, text)


def is_cpp(path):
    return path.endswith((".cc", ".h"))

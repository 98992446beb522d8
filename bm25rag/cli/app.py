"""The group of commands, and how their errors are shown."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import click

from bm25rag.cli.options import examples
from bm25rag.cli.terminal import write_message
from bm25rag.cli.wording import describe, describe_warning
from bm25rag.common.visible import one_line
from bm25rag.errors import BM25Error

# What a shell reports for a process that was ended by SIGPIPE or SIGINT.
_BROKEN_PIPE, _INTERRUPTED = 141, 130
# The module of each command, which is imported when the command is run, or listed.
_MODULES = {
    **dict.fromkeys(("index", "add", "delete", "compact"), "indexing"),
    **dict.fromkeys(("search", "explain"), "search"),
    **dict.fromkeys(("stats", "verify", "doctor"), "health"),
    **dict.fromkeys(("backup", "restore", "repair", "commits"), "maintenance"),
    **{name: name for name in ("bench", "demo", "download", "evaluate", "export", "grep")},
    **{name: name for name in ("inspect", "ray", "sync", "tune")},
    **{"make-queries": "make_queries", "mcp": "mcp.command"},
}


class _Imported(Mapping[str, click.Command]):
    """The commands by name; each is a function of its module, ``NAME_command``."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"bm25rag.cli.{_MODULES[name]}")
        command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Failure(click.ClickException):
    """Something is wrong with the input, an index or the disk."""

    exit_code = 3


class _Commands(click.Group):
    """Turns exceptions of the commands into messages and exit codes."""

    def main(self, *arguments: Any, **options: Any) -> NoReturn:
        """Run, report errors, and exit."""
        try:
            code = super().main(*arguments, **options | {"standalone_mode": False})
        except click.ClickException as error:
            # Click would write names and arguments to the terminal unescaped.
            complaint = io.StringIO()
            error.show(complaint)
            write_message(complaint.getvalue().rstrip("\n"))
            code = error.exit_code
        except click.Abort:
            code = _INTERRUPTED
        except BrokenPipeError:  # of --help
            _give_up_stdout()
            code = _BROKEN_PIPE
        except OSError as error:
            write_message(f"Error: {one_line(describe(error))}")
            _give_up_stdout()
            code = _Failure.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; show a traceback with --debug."""
        try:
            with _short_warnings():
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except BrokenPipeError:
            _give_up_stdout()
            ctx.exit(_BROKEN_PIPE)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except click.FileError as error:
            raise _Failure(one_line(error.format_message())) from error
        except MemoryError as error:
            message = "not enough memory; 'bm25rag index --memory 512MiB' builds in about as much"
            raise _Failure(message) from error
        except (BM25Error, OSError, ValueError) as error:
            if ctx.params["debug"]:
                write_message(traceback.format_exc())
            raise _Failure(one_line(describe(error))) from error


@contextmanager
def _short_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        write_message(f"Warning: {one_line(describe_warning(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _give_up_stdout() -> None:
    # Python flushes stdout again on exit, and would report the broken pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Commands,
    commands=_Imported(),
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=examples(
        "bm25rag index docs/ --output docs.bm25",
        "bm25rag search docs.bm25 'how do I install it'",
        "bm25rag demo",
    )
    + """

\b
Exit codes:
  0    done, even if nothing was found
  1    a bug in bm25rag (please report it, with its traceback)
  2    the command line is wrong: an option, a parameter or a filter
  3    something is wrong with an input file, an index or the disk
  4    done, but some files could not be read and were skipped (they are named)
  130  interrupted (Ctrl-C)
  141  the reader of the output has gone (as in: bm25rag search ... | head)

Results go to the standard output, messages to the standard error.""",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="bm25rag")
def commands(debug: bool) -> None:
    """Exact BM25 search over your documents."""

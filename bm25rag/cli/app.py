"""The group of commands, and how their errors are shown."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from bm25rag.cli.bench import bench_command
from bm25rag.cli.demo import demo_command
from bm25rag.cli.download import download_command
from bm25rag.cli.evaluate import evaluate_command
from bm25rag.cli.export import export_command
from bm25rag.cli.grep import grep_command
from bm25rag.cli.health import doctor_command, stats_command, verify_command
from bm25rag.cli.indexing import add_command, compact_command, delete_command, index_command
from bm25rag.cli.inspect import inspect_command
from bm25rag.cli.maintenance import backup_command, commits_command, repair_command, restore_command
from bm25rag.cli.make_queries import make_queries_command
from bm25rag.cli.mcp.command import mcp_command
from bm25rag.cli.options import examples
from bm25rag.cli.ray import ray_commands
from bm25rag.cli.search import explain_command, search_command
from bm25rag.cli.sync import sync_command
from bm25rag.cli.terminal import write_message
from bm25rag.cli.tune import tune_command
from bm25rag.cli.wording import describe, describe_warning
from bm25rag.common.visible import one_line
from bm25rag.errors import BM25Error

# What a shell reports for a process that was ended by SIGPIPE or SIGINT.
_BROKEN_PIPE, _INTERRUPTED = 141, 130


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
    context_settings={"help_option_names": ["-h", "--help"]},
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


for _command in (
    index_command,
    add_command,
    sync_command,
    delete_command,
    compact_command,
    search_command,
    grep_command,
    explain_command,
    export_command,
    evaluate_command,
    tune_command,
    bench_command,
    make_queries_command,
    inspect_command,
    mcp_command,
    download_command,
    stats_command,
    verify_command,
    backup_command,
    restore_command,
    repair_command,
    commits_command,
    doctor_command,
    demo_command,
    ray_commands,
):
    commands.add_command(_command)

"""``backup``, ``restore``, ``repair`` and ``commits``."""

from __future__ import annotations

from pathlib import Path

import click

from bm25rag import BM25Index
from bm25rag.cli.options import INDEX_PATH, examples, usage_errors
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import counted, write_message, write_result
from bm25rag.common.visible import one_line

_overwrite = click.option("--force", is_flag=True, help="Replace an index that is there.")


@click.command(
    "backup",
    epilog=examples(
        "bm25rag backup docs.bm25 /backups/docs.bm25",
        "bm25rag backup docs.bm25 s3://bucket/docs.bm25 --force",
    ),
)
@click.argument("folder", metavar="INDEX", type=INDEX_PATH)
@click.argument("target", type=INDEX_PATH)
@click.option("--link", is_flag=True, help="Share the files by hard links, where that is possible.")
@_overwrite
def backup_command(folder: Path | str, target: Path | str, link: bool, force: bool) -> None:
    """Copy an index, as of its last commit, while others may write to it.

    TARGET is a folder or a URL. Every byte is checked on the way; what TARGET has
    already is not copied again.
    """
    BM25Index.backup(folder, target, link=link, overwrite=force)
    write_message(f"Backed up {one_line(folder)} to {one_line(target)}.")


@click.command("restore", epilog=examples("bm25rag restore /backups/docs.bm25 docs.bm25 --force"))
@click.argument("source", type=INDEX_PATH)
@click.argument("folder", metavar="INDEX", type=INDEX_PATH)
@_overwrite
def restore_command(source: Path | str, folder: Path | str, force: bool) -> None:
    """Make INDEX what a backup is, even if what INDEX holds is damaged."""
    BM25Index.restore(source, folder, overwrite=force)
    write_message(f"Restored {one_line(folder)} from {one_line(source)}.")


@click.command(
    "repair",
    epilog=examples("bm25rag repair docs.bm25 --dry-run --json", "bm25rag repair docs.bm25"),
)
@click.argument("folder", metavar="INDEX", type=INDEX_PATH)
@click.option("--dry-run", is_flag=True, help="Only tell what is damaged and would go.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def repair_command(folder: Path | str, dry_run: bool, as_json: bool) -> None:
    """Drop the damaged parts of INDEX, and tell which documents went with them.

    Restore a backup instead if there is one. A damaged file stays beside the index,
    as NAME.damaged.
    """
    damages = BM25Index.repair(folder, dry_run=dry_run)
    if as_json:
        write_result(to_json([damage._asdict() for damage in damages], indent=2))
        return
    for damage in damages:
        unknown = {None: "and perhaps more", 0: ""}.get(damage.unknown, f"and {damage.unknown}")
        gone = f"{counted(len(damage.ids), 'document')} {unknown}".strip()
        write_result(f"{one_line(damage.problem)}: {gone}")
        for id in damage.ids:
            write_result(f"  {one_line(id)}")
    if not damages:
        write_result(f"{one_line(folder)}: no damage found")


@click.command(
    "commits",
    epilog=examples(
        "bm25rag commits docs.bm25 --keep 7d",
        "bm25rag search docs.bm25 'red boat' --commit 3-9c110871ccf2b11b",
    ),
)
@click.argument("folder", metavar="INDEX", type=INDEX_PATH)
@click.option(
    "--keep",
    metavar="SPAN",
    help="From now on, keep a commit for so long after a later one has replaced it, as in 7d or"
    " 12h; 0 for not at all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def commits_command(folder: Path | str, keep: str | None, as_json: bool) -> None:
    """List the commits that INDEX holds, oldest first, by id and time (UTC)."""
    if keep is not None:
        with usage_errors(), BM25Index.open(folder, mode="w", keep=keep):
            pass  # which commits
    held = BM25Index.commits(folder)
    commits = [(one.id, one.time.isoformat(timespec="milliseconds")) for one in held]
    if as_json:
        write_result(to_json([{"id": id, "time": time} for id, time in commits], indent=2))
    else:
        for id, time in commits:
            write_result(f"{id}  {time}")

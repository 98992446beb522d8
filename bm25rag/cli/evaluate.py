"""``evaluate``: how good the results of an index are, by relevance judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from bm25rag.cli.options import (
    PATH,
    examples,
    open_index,
    reading_argument,
    scoring_options,
    together,
    usage_errors,
)
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import result_console, write_message, write_result
from bm25rag.common.visible import one_line
from bm25rag.evaluation import (
    MEASURES,
    Comparison,
    Evaluation,
    bootstrap_interval,
    compare,
    read_qrels,
    read_run,
    run_of,
    write_run,
)
from bm25rag.evaluation.measures import Evaluator
from bm25rag.evaluation.notation import parse_measure
from bm25rag.evaluation.runs import judged_queries
from bm25rag.readers import read_queries

_SHOWN = 5


judged_options = together(
    click.option(
        "--queries",
        "queries_path",
        metavar="FILE",
        type=PATH,
        required=True,
        help="Queries as BEIR JSON lines, id<TAB>text, or one per line.",
    ),
    click.option(
        "--qrels",
        "qrels_path",
        metavar="FILE",
        type=PATH,
        required=True,
        help="Judgements: TREC's 'qid 0 docid grade', or BEIR's three columns with tabs.",
    ),
)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes about the results."""
    for note in notes:
        write_message(f"Note: {one_line(note)}")


def parse_measures(
    context: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    """Report an unknown measure as an error of the command line."""
    with usage_errors():
        for name in (value,) if isinstance(value, str) else value:
            parse_measure(name)
    return value


def measures_option(default: Sequence[str], help: str) -> Callable[[Any], Any]:
    """Return the option that names the measures."""
    return click.option(
        "--measure",
        "-m",
        "measures",
        multiple=True,
        metavar="NAME",
        default=default,
        callback=parse_measures,
        help=help,
    )


@click.command(
    "evaluate",
    epilog=examples(
        "bm25rag evaluate scifact.bm25 --queries queries.jsonl --qrels qrels/test.tsv",
        "bm25rag evaluate docs.bm25 --queries q.tsv --qrels qrels.txt -m nDCG@10 -m R@100 --json",
        "bm25rag evaluate docs.bm25 --queries q.tsv --qrels qrels.txt --run-to default.run",
        "bm25rag evaluate docs.bm25 --queries q.tsv --qrels qrels.txt --k1 0.9 --b 0.4 \\",
        "    --baseline default.run",
    ),
)
@reading_argument
@judged_options
@measures_option(MEASURES, "In the notation of ir-measures; repeatable.")
@click.option("-k", default=1000, type=click.IntRange(min=1), help="Results per query.")
@click.option(
    "--baseline",
    metavar="RUN",
    type=PATH,
    help="A TREC run to compare with: significance, and the queries that changed most.",
)
@click.option("--run-to", metavar="FILE", type=PATH, help="Write the results as a TREC run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the values of each query.")
@scoring_options
def evaluate_command(
    index_path: Path | str,
    queries_path: Path,
    qrels_path: Path,
    measures: tuple[str, ...],
    k: int,
    baseline: Path | None,
    run_to: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate an index by queries and judgements, as trec_eval does.

    Scoring options evaluate the same index with other parameters.
    """
    index = open_index(index_path, options)
    texts = {query.id: query.text for query in read_queries(queries_path)}
    judged = judged_queries(index, texts, read_qrels(qrels_path))
    print_notes(judged.notes)
    evaluator = Evaluator(judged.qrels, measures)
    before = None if baseline is None else evaluator.evaluate(read_run(baseline))
    run = run_of(index, judged.queries, k)
    after = evaluator.evaluate(run)
    if run_to is not None:
        write_run(run_to, run)
    notes = [*_cut_short(measures, k)] if k < len(index) else []
    notes += [] if before is None else [f"{baseline}: {note}" for note in before.notes]
    print_notes(notes)
    comparisons = [] if before is None else [compare(after, before, name) for name in measures]
    if as_json:
        write_result(_as_json(after, comparisons, [*judged.notes, *notes]))
        return
    print_notes(after.notes)
    _print_means(after)
    for comparison in comparisons:
        _print_comparison(comparison)


def _cut_short(measures: Sequence[str], k: int) -> Iterator[str]:
    """Yield a note for each measure that would count more results than are searched for."""
    for name in measures:
        if (parse_measure(name).cutoff or 0) > k:
            yield f"{name} counts only the best {k:,} results of each query: -k is {k:,}"


def _as_json(
    evaluation: Evaluation, comparisons: Sequence[Comparison], notes: Sequence[str]
) -> str:
    intervals = {name: bootstrap_interval(evaluation.values(name)) for name in evaluation.mean}
    facts = evaluation.to_dict() | {"intervals": intervals, "notes": list(notes)}
    if comparisons:
        facts["comparisons"] = [
            comparison.to_dict() | {"changes": comparison.changes} for comparison in comparisons
        ]
    return to_json(facts, indent=2)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _print_means(evaluation: Evaluation) -> None:
    table = _table("measure", "mean", "95 % interval")
    for name, mean in evaluation.mean.items():
        interval = bootstrap_interval(evaluation.values(name))
        shown = "" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"
        table.add_row(name, f"{mean:.4f}", shown)
    result_console().print(table)
    result_console().print(f"{len(evaluation.per_query):,} judged queries")


def _print_comparison(comparison: Comparison) -> None:
    console = result_console()
    p_value = "not testable" if comparison.p_value is None else f"p = {comparison.p_value:.4f}"
    verdict = "significant" if comparison.significant else "not significant"
    console.print(
        f"\n{comparison.measure}: {comparison.baseline:.4f} to {comparison.mean:.4f}, "
        f"{comparison.difference:+.4f} ({p_value}, {verdict})"
    )
    table = _table("query", "before", "after", "difference")
    for change in comparison.gained(_SHOWN) + comparison.lost(_SHOWN)[::-1]:
        values = (f"{change.before:.4f}", f"{change.after:.4f}", f"{change.difference:+.4f}")
        table.add_row(one_line(change.query), *values)
    if comparison.changes:
        console.print(table)

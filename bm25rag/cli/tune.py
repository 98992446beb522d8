"""``tune``: finds the best settings for an index, by relevance judgements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bm25rag.cli.evaluate import judged_options, parse_measures, print_notes
from bm25rag.cli.indexing import check_output
from bm25rag.cli.options import INDEX_PATH, examples, index_argument, parse_field, usage_errors
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import shows_progress, write_result
from bm25rag.evaluation.files import read_qrels
from bm25rag.evaluation.tuning import K1, B, other_analyzers, tune
from bm25rag.index import BM25Index
from bm25rag.readers import read_queries
from bm25rag.scoring.variants import VARIANTS


@click.command(
    "tune",
    epilog=examples(
        "bm25rag tune docs.bm25 --queries queries.jsonl --qrels qrels/test.tsv",
        "bm25rag tune docs.bm25 --queries q.tsv --qrels qrels.txt --analyzers -o tuned.bm25",
        "bm25rag tune docs.bm25 --queries q.tsv --qrels qrels.txt --variant lucene \\",
        "    --k1 0.9 --k1 1.2 --b 0.4 --b 0.75 --measure RR@10",
    ),
)
@index_argument
@judged_options
@click.option(
    "--measure", "-m", default="nDCG@10", callback=parse_measures, help="What to maximize."
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice([*VARIANTS]),
    help="Variant to try; repeatable.  [default: all]",
)
@click.option("--k1", multiple=True, type=float, default=K1, help="To try; repeatable.")
@click.option("--b", multiple=True, type=float, default=B, help="To try; repeatable.")
@click.option(
    "--field",
    "weights",
    multiple=True,
    metavar="NAME=WEIGHT",
    help="Weight of a field to try; repeatable.",
)
@click.option(
    "--also",
    multiple=True,
    type=float,
    metavar="WEIGHT",
    help="Weight of each further analysis to try; repeatable.",
)
@click.option(
    "--analyzers",
    "with_analyzers",
    is_flag=True,
    help="Also try no stop words, no stemmer, and neither; this reindexes in memory.",
)
@click.option("--folds", default=5, type=click.IntRange(min=2))
@click.option("--seed", default=0, type=int, help="For the order of queries.")
@click.option(
    "--output", "-o", metavar="FOLDER", type=INDEX_PATH, help="Save the tuned index here."
)
@click.option("--force", is_flag=True, help="Replace an existing index.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all settings tried.")
def tune_command(
    index_path: Path | str,
    untrusted: bool,
    queries_path: Path,
    qrels_path: Path,
    measure: str,
    variants: tuple[str, ...],
    weights: tuple[str, ...],
    also: tuple[float, ...],
    with_analyzers: bool,
    output: Path | str | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Try variants, k1 and b on judged queries, and report what the best settings gain.

    The gain is measured by cross-validation, on queries that were not used to choose the
    settings. The index does not change; --output saves a tuned one.
    """
    if output is not None:
        check_output(output, force)
    index = BM25Index.open(index_path, untrusted=untrusted)
    queries = {query.id: query.text for query in read_queries(queries_path)}
    qrels = read_qrels(qrels_path)
    with usage_errors():
        analyzers = other_analyzers(index.analyzer) if with_analyzers else []
        further = len(index.analyzer.also)
        analyzers += [index.analyzer.weighing([weight] * further or [weight]) for weight in also]
        fields = [parse_field(one) for one in weights]
        for one in fields:
            index.tune(fields=one)
        for value in options["k1"]:
            index.tune(k1=value)
        for value in options["b"]:
            index.tune(b=value)
    tuning = tune(
        index,
        queries,
        qrels,
        measure,
        variants=variants or [*VARIANTS],
        analyzers=analyzers,
        fields=fields,
        progress=shows_progress(),
        **options,
    )
    if output is not None:
        tuning.apply(index).save(output)
    if as_json:
        write_result(to_json(tuning.to_dict(), indent=2))
        return
    print_notes(tuning.notes)
    write_result(f"{len(tuning.points):,} settings tried\n{tuning}")

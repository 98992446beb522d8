"""``bench``: compares systems on your own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bm25rag.cli.evaluate import measures_option
from bm25rag.cli.options import PATH, examples
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import write_message, write_result
from bm25rag.common.visible import one_line, visible
from bm25rag.evaluation.bench import BENCH_MEASURES, benchmark
from bm25rag.evaluation.cost import PRICES, read_prices
from bm25rag.evaluation.report import about, to_html, to_markdown

_POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command(
    "bench",
    epilog=examples(
        "bm25rag bench scifact/ --output measured/",
        "bm25rag bench beir/scifact/test -o measured/ --system 'bm25rag lucene' --system rank_bm25",
        "bm25rag bench mydata/ -o measured/ --system mymodule:make_dense_retriever",
    ),
)
@click.argument("collection", metavar="COLLECTION")
@click.option("--output", "-o", required=True, metavar="FOLDER", type=PATH, help="Where to write.")
@click.option(
    "--system", "systems", multiple=True, metavar="NAME", help="Repeatable.  [default: all]"
)
@click.option("--split", default="test", help="Judgements of a BEIR folder.")
@measures_option(BENCH_MEASURES, "The first is the accuracy of plots and Dynascores.")
@click.option("-k", default=10, type=click.IntRange(min=1), help="Results per query.")
@click.option("--trials", default=5, type=click.IntRange(min=1))
@click.option("--cpus", default=1, type=click.IntRange(min=1))
@click.option("--memory", default=4.0, type=_POSITIVE, help="GiB.")
@click.option("--timeout", default=600.0, type=_POSITIVE, help="Seconds for each system.")
@click.option("--prices", metavar="FILE", type=PATH, help="A JSON table of rentable machines.")
@click.option(
    "--beside", metavar="FILE", type=PATH, help="Published rows, as JSON, shown beside the others."
)
def bench_command(
    collection: str, output: Path, systems: tuple[str, ...], prices: Path | None, **options: Any
) -> None:
    """Measure systems on COLLECTION, a BEIR folder or a name of ir_datasets.

    Each system runs in its own process, limited to the given CPUs and memory where the platform
    allows it. FOLDER keeps the rows, so an interrupted benchmark continues where it stopped;
    report.json, report.md and report.html are written next to them.

    A system is one that bm25rag knows, or module:factory, where the factory takes a list of
    documents and returns a callable from query and k to ids, or a retriever of LangChain,
    LlamaIndex or Haystack. Elasticsearch and OpenSearch are known, too, if ELASTICSEARCH_URL or
    OPENSEARCH_URL is the address of a server.
    """
    report = benchmark(
        collection,
        output,
        systems or None,
        prices=PRICES if prices is None else read_prices(prices),
        log=lambda line: write_message(one_line(line)),
        **options,
    )
    markdown = to_markdown(report)
    (output / "report.json").write_text(to_json(report, indent=1), encoding="utf-8")
    said = "\n".join(about(report))
    (output / "report.md").write_text(f"{markdown}\n{said}\n", encoding="utf-8")
    (output / "report.html").write_text(to_html(report), encoding="utf-8")
    write_result(markdown.rstrip("\n"))
    write_message(visible(said))
    write_message(f"Written: {one_line(output / 'report.html')}, report.md, report.json")

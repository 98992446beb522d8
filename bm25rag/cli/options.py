"""Options that several commands share, and how they are passed to the index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from bm25rag import BM25Index, Query
from bm25rag.cli.wording import describe
from bm25rag.common.urls import from_home, is_url, local_path
from bm25rag.common.visible import one_line
from bm25rag.errors import TokenizerRequiredError
from bm25rag.readers import parse_vector
from bm25rag.readers.records import reject_constant
from bm25rag.scoring.variants import VARIANTS

if TYPE_CHECKING:
    from bm25rag.distributed.client import RayIndex

# A text with a weight behind it.
_WEIGHTED = re.compile(r"(.*)\^(-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", re.DOTALL)


class _Path(click.Path):
    """A path that is not empty: of a variable that is not set, that would be the current folder.

    No shell knows the home in ``--output=~/notes.bm25``.
    """

    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if not value:
            self.fail("a path must not be empty; '.' is the current folder", param, ctx)
        try:
            here = from_home(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return super().convert(here, param, ctx)


class _IndexPath(_Path):
    """A path of this machine, or the URL of a remote folder, which stays a string."""

    def convert(
        self, value: str | PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if is_url(value):
            return value
        here = local_path(value) if "://" in str(value) else value
        return super().convert(here, param, ctx)


PATH = _Path(path_type=Path)
PATH_OR_DASH = _Path(path_type=Path, allow_dash=True)
INDEX_PATH = _IndexPath(path_type=Path)
SCORING = ("variant", "k1", "b", "delta", "delta_on", "fields")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """Return the examples for the end of a command's help; click does not wrap them."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def together(*options: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Return what adds options and arguments to a command, in their order."""

    def add(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def parse_field(value: str) -> dict[str, float]:
    """Return the weight of a field from ``NAME=WEIGHT``, or 1 for ``NAME``."""
    name, _, weight = value.rpartition("=") if "=" in value else (value, "=", "1")
    with suppress(ValueError):
        if name:
            return {name: float(weight)}
    raise click.BadParameter(f"expected NAME=WEIGHT, such as title=3, got {value!r}")


def _parse_fields(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, float] | None:
    fields: dict[str, float] = {}
    for one in value:
        fields |= parse_field(one)
    return fields or None


scoring_options = together(
    click.option(
        "--variant", type=click.Choice(list(VARIANTS)), help="Formula of the BM25 family."
    ),
    click.option("--k1", type=float, help="How slowly repeats of a term saturate."),
    click.option("--b", type=float, help="How much document length counts, 0 to 1."),
    click.option("--delta", type=float, help="Lower bound of bm25l, bm25+ and tfldp."),
    click.option(
        "--delta-on",
        type=click.Choice(["all", "matched"]),
        help="Which terms get --delta: all of the query, or only those matched.",
    ),
    click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="NAME=WEIGHT",
        callback=_parse_fields,
        help="A field and its weight, as in title=3; repeatable. The field text, which has all"
        " other texts, has the weight 1 unless it is given.",
    ),
)


def scoring_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scoring parameters that were given."""
    return {name: options[name] for name in SCORING if options.get(name) is not None}


untrusted_option = click.option(
    "--untrusted",
    is_flag=True,
    help="INDEX comes from an untrusted source: refuse anything unsafe in it.",
)
# INDEX, and how it is opened.
index_argument = together(
    click.argument("index_path", metavar="INDEX", type=INDEX_PATH), untrusted_option
)


def open_index(path: Path | str, options: Mapping[str, Any]) -> BM25Index:
    """Open an index for reading, restricted, and with the scoring parameters, as was asked."""
    with usage_errors():
        index = BM25Index.open(path, untrusted=options["untrusted"], commit=options["commit"])
        if options["restrict"] is not None:
            index = index.restricted(options["restrict"], statistics=options["statistics"])
        parameters = scoring_parameters(options)
        return index.tune(**parameters) if parameters else index


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report wrong values as errors of the command line."""
    try:
        yield
    except TokenizerRequiredError:  # what is wrong is the index
        raise
    except ValueError as error:
        raise click.UsageError(one_line(describe(error))) from error


def _parse_json(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        parsed = json.loads(value, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise click.BadParameter(f"expected a JSON object, got {value}")
    return parsed


filter_option = click.option(
    "--filter",
    "filter_",
    metavar="JSON",
    callback=_parse_json,
    help="""Only documents whose metadata pass, as in '{"year": {"$gte": 2020}}'.""",
)


decay_option = click.option(
    "--decay",
    metavar="JSON",
    callback=_parse_json,
    help="""Lower scores by age, as in '{"path": "date", "half_life": "30d", "floor": 0.5}', or"""
    """ by a number, as in '{"path": "stars", "full": 5}'.""",
)


def restrict_option(statistics: Literal["whole", "part"] = "whole") -> Callable[[Any], Any]:
    """Return the options of what is restricted, given by which statistics it is scored."""
    return together(
        click.option(
            "--restrict",
            metavar="JSON",
            callback=_parse_json,
            is_eager=True,  # --statistics asks for it, whichever comes first
            help="Documents that do not pass this filter are as if INDEX did not hold them.",
        ),
        click.option(
            "--statistics",
            type=click.Choice(["whole", "part"]),
            default=statistics,
            callback=_only_with_restrict,
            help="With --restrict: whether scores are those of the whole INDEX, or of an index of"
            " these documents alone.",
        ),
    )


def _only_with_restrict(context: click.Context, parameter: click.Parameter, value: str) -> str:
    given = context.get_parameter_source(str(parameter.name)) is not ParameterSource.DEFAULT
    if given and context.params.get("restrict") is None:
        raise click.UsageError("--statistics is for --restrict: give a filter, too")
    return value


commit_option = click.option(
    "--commit", metavar="ID", help="An earlier commit that is kept; 'bm25rag commits' lists them."
)
# INDEX for commands that read it, and what they may see of it.
reading_argument = together(index_argument, restrict_option(), commit_option)

syntax_option = click.option(
    "--syntax",
    is_flag=True,
    help='Read signs in queries: "exact phrase" +must -mustnot -"not this phrase".',
)


also_option = click.option(
    "--also",
    metavar="TEXT[^WEIGHT]",
    multiple=True,
    callback=lambda context, parameter, values: [*map(_read_wording, values)],
    help="Another wording of QUERY, whose words count too; repeat it for more.",
)


def _read_wording(value: str) -> tuple[str, float]:
    """Return a text and the weight behind it."""
    weighted = _WEIGHTED.fullmatch(value)
    return (weighted[1], float(weighted[2])) if weighted else (value, 1.0)


def read_query(
    index: BM25Index | RayIndex,
    text: str,
    syntax: bool,
    also: Sequence[tuple[str, float]] = (),
    timeout: float | None = None,
) -> str | Query:
    """Return a query; parsed if --syntax is given, with what --also adds."""
    query = Query.parse(text, fields=index.fields, timeout=timeout) if syntax else Query(text)
    weights: dict[str, float] = {}
    for wording, weight in also:
        weights[wording] = weights.get(wording, 0.0) + weight
    return query.replaced(also=weights) if syntax or also else text


def _parse_vector(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> dict[str, float] | None:
    parsed = _parse_json(context, parameter, value)
    try:
        return None if parsed is None else parse_vector(parsed, "the vector")
    except (TypeError, ValueError) as error:
        raise click.BadParameter(one_line(error)) from error


vector_option = click.option(
    "--vector",
    metavar="JSON",
    callback=_parse_vector,
    help="""A sparse vector to search by, as in '{"dog": 1.5}'; with QUERY, both are fused.""",
)

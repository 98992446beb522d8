"""Evaluation as in the papers: how good a retriever is, what it costs, and what tuning gains.

``import bm25rag`` does not import it. It needs ``pip install 'bm25rag[eval]'``.
"""

from bm25rag.evaluation.beir import download
from bm25rag.evaluation.bench import benchmark
from bm25rag.evaluation.collections import Collection, load_beir, load_ir_dataset
from bm25rag.evaluation.cost import (
    PRICES,
    Instance,
    cheapest,
    cost_by_latency,
    cost_by_throughput,
    read_prices,
)
from bm25rag.evaluation.dynascore import Dynascores, dynascore
from bm25rag.evaluation.files import read_qrels, read_run, write_qrels, write_run
from bm25rag.evaluation.fusion_tuning import FusionSettings, FusionTuning, fuse_runs, tune_fusion
from bm25rag.evaluation.known_items import KnownItems, ask_model, known_items
from bm25rag.evaluation.measures import MEASURES, Evaluation, evaluate
from bm25rag.evaluation.runs import run_of
from bm25rag.evaluation.significance import (
    Change,
    Comparison,
    Interval,
    bootstrap_interval,
    compare,
)
from bm25rag.evaluation.tuning import Settings, Tuning, other_analyzers, tune

__all__ = [
    "MEASURES",
    "PRICES",
    "Change",
    "Collection",
    "Comparison",
    "Dynascores",
    "Evaluation",
    "FusionSettings",
    "FusionTuning",
    "Instance",
    "Interval",
    "KnownItems",
    "Settings",
    "Tuning",
    "ask_model",
    "benchmark",
    "bootstrap_interval",
    "cheapest",
    "compare",
    "cost_by_latency",
    "cost_by_throughput",
    "download",
    "dynascore",
    "evaluate",
    "fuse_runs",
    "known_items",
    "load_beir",
    "load_ir_dataset",
    "other_analyzers",
    "read_prices",
    "read_qrels",
    "read_run",
    "run_of",
    "tune",
    "tune_fusion",
    "write_qrels",
    "write_run",
]

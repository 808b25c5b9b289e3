"""neuropareto bench: run campaigns, and print the tables and figures of the paper from their records.

grids                 the grids that ship with the package
run GRID              run a grid (a name or a TOML file); resumes what is there
status GRID           how much of a grid has been run, what failed
table [NAME]          a table of the paper, ours beside printed; without NAME: their names
figure [NAME]         a figure of the paper; without NAME: their names
score                 the paper's 83 cells: ours, printed, best other, verdicts
results               write a Markdown page about a campaign
compact FROM TO       copy records without the points off the front: a tenth of the size
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from neuropareto.bench.grid import Grid, Scale, load, shipped
from neuropareto.bench.layout import FORMS, render
from neuropareto.bench.material import Material, count

FOLDER = Path("bench-records")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command; returns its exit code."""
    options = _parser().parse_args(argv)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="neuropareto bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    grids = commands.add_parser("grids", help="the grids that ship with the package")
    grids.set_defaults(run=_grids)
    run = _command(commands, "run", "run a grid; resumes what is there", _run)
    run.add_argument("grid", help="a shipped grid's name or a TOML file")
    run.add_argument("--workers", type=int, metavar="N", help="processes (default: cores)")
    run.add_argument(
        "--checkpoint", type=float, default=30.0, metavar="S",
        help="seconds between checkpoints of a running cell (default: 30)",
    )  # fmt: skip
    status = _command(commands, "status", "how much of a grid has been run", _status)
    status.add_argument("grid", help="a shipped grid's name or a TOML file")
    table = _command(commands, "table", "a table of the paper, ours beside printed", _table)
    table.add_argument("name", nargs="?", help="leave it out to list the names")
    _form(table)
    figure = _command(commands, "figure", "a figure of the paper", _figure)
    figure.add_argument("name", nargs="?", help="leave it out to list the names; 'all' makes all")
    figure.add_argument(
        "--output", type=Path, default=Path("bench-figures"), metavar="PATH",
        help="a folder, or a file ending in .png or .svg (default: bench-figures/)",
    )  # fmt: skip
    score = _command(commands, "score", "the paper's 83 cells: ours, printed, best other", _score)
    score.add_argument("--holm", action="store_true", help="correct the verdicts after Holm")
    score.add_argument("--of", default="neuropareto", metavar="NAME", help="whose score")
    _form(score)
    results = _command(commands, "results", "write a Markdown page about a campaign", _results)
    results.add_argument("--output", type=Path, default=Path("docs/results.md"), metavar="FILE")
    results.add_argument("--no-figures", action="store_true", help="only the text")
    compact = commands.add_parser("compact", help="copy records, a tenth of the size")
    compact.add_argument("source", type=Path)
    compact.add_argument("target", type=Path)
    compact.set_defaults(run=_compact)
    return parser


def _command(commands: object, name: str, about: str, run: object) -> argparse.ArgumentParser:
    assert isinstance(commands, argparse._SubParsersAction)
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(run=run)
    parser.add_argument(
        "--records", type=Path, action="append", metavar="FOLDER",
        help=f"where records are (default: {FOLDER}/); may be given several times",
    )  # fmt: skip
    if name in ("table", "figure", "score", "results"):
        parser.add_argument(
            "--grid", dest="own_grid", metavar="GRID", help="instead of the paper's"
        )
    scale = parser.add_argument_group("scale")
    scale.add_argument("--problems", nargs="+", metavar="NAME", help="only these problems")
    scale.add_argument("--dimensions", nargs="+", type=int, metavar="D", help="only these")
    scale.add_argument("--variants", nargs="+", metavar="NAME", help="only these")
    scale.add_argument(
        "--algorithms", nargs="+", metavar="NAME",
        help="these instead of the grid's; your own as package.module:Name",
    )  # fmt: skip
    scale.add_argument("--seeds", metavar="N|A-B|A,B", help="how many, or which")
    scale.add_argument("--budget", type=int, metavar="N", help="evaluations of each run")
    return parser


def _form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMS, default="text", help="default: text")


def seeds_of(text: str | None) -> tuple[int, ...] | None:
    """ "3" -> 0, 1, 2; "2-4" -> 2, 3, 4; "1,5" -> 1, 5; None stays None."""
    if text is None:
        return None
    try:
        if text.isdigit():
            return tuple(range(int(text)))
        found: list[int] = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
        return tuple(found)
    except ValueError:
        raise ValueError(
            f"Seeds are a count, a range or a list: 3, 2-4 or 1,5; got {text!r}."
        ) from None


def _scale(options: argparse.Namespace) -> Scale:
    return Scale(
        options.problems, options.dimensions, options.variants, options.algorithms,
        seeds_of(options.seeds), options.budget,
    )  # fmt: skip


def _folders(options: argparse.Namespace) -> list[Path]:
    return list(options.records or [FOLDER])


def _material(options: argparse.Namespace) -> Material:
    return Material(_folders(options), _scale(options), options.own_grid)


def _grids(options: argparse.Namespace) -> int:
    names = shipped()
    width = max(map(len, names))
    for name, title in names.items():
        print(f"{name:<{width}}  {title} ({count(len(load(name).cells), 'cell')})")
    return 0


def _run(options: argparse.Namespace) -> int:
    from neuropareto.bench.live import screen_for
    from neuropareto.bench.runner import run

    # An algorithm of the user's own may lie beside the grid, as for `python -m`.
    sys.path.insert(0, str(Path.cwd()))
    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers must be at least 1, got {options.workers}.")
    grid = load(options.grid, _scale(options))
    if not grid.cells:
        raise ValueError("Nothing of the grid is left; see --problems, --dimensions, --variants.")
    folders = _folders(options)
    if len(folders) != 1:
        raise ValueError(f"A run writes to one folder, got {len(folders)}; give --records once.")
    console = Console(stderr=True)
    outcome = run(
        grid, folders[0], workers=options.workers, checkpoint=options.checkpoint,
        screen=screen_for(console),
    )  # fmt: skip
    for name in outcome.unavailable:
        console.print(f"not run: {name} is not part of this version", highlight=False)
    for cell, error in outcome.failed.items():
        console.print(f"failed: {cell.key}: {error}", style="red", highlight=False, markup=False)
    print(
        f"{len(outcome.done)} run, {len(outcome.skipped)} found, {len(outcome.failed)} failed, "
        f"{len(outcome.left)} left; records in {folders[0]}"
    )
    if outcome.left:
        return 130
    return 1 if outcome.failed else 0


def _status(options: argparse.Namespace) -> int:
    from neuropareto.bench.material import missing_lines
    from neuropareto.bench.records import Records
    from neuropareto.bench.runner import failures

    grid: Grid = load(options.grid, _scale(options))
    records = Records(_folders(options))
    gone = [cell for cell in grid.cells if cell not in records]
    print(f"{grid.title}: {len(grid.cells) - len(gone)} of {len(grid.cells)} cells finished")
    for line in missing_lines(gone, grid.cells):
        print(f"  missing {line}")
    for folder in _folders(options):
        for cell, error in failures(folder, gone).items():
            print(f"  failed  {cell.key}: {error}")
    for path, reason in records.broken.items():
        print(f"  broken  {path}: {reason}")
    return 0 if not gone else 1


def _table(options: argparse.Namespace) -> int:
    from neuropareto.bench.tables import TABLES, table

    if options.name is None:
        _list({name: (spec.label, spec.about) for name, spec in TABLES.items()})
        return 0
    print(render(table(options.name, _material(options)), options.format), end="")
    return 0


def _figure(options: argparse.Namespace) -> int:
    from neuropareto.bench.figures import FIGURES, NotYet, save

    if options.name is None:
        _list({name: (spec.label, spec.about) for name, spec in FIGURES.items()})
        return 0
    names = list(FIGURES) if options.name == "all" else [options.name]
    code = 0
    for name in names:
        material = _material(options)
        try:
            paths = save(name, material, options.output)
        except NotYet as reason:
            print(f"{name}: not made. {reason}", file=sys.stderr)
            code = 1
            continue
        for path in paths:
            print(path)
        for line in (*material.account(), *(f"missing {x}" for x in material.missing_lines())):
            print(f"  {line}")
    return code


def _score(options: argparse.Namespace) -> int:
    from neuropareto.bench.score import score

    made = score(_material(options), corrected=options.holm, algorithm=options.of)
    print("\n".join(render(table, options.format) for table in made), end="")
    return 0


def _results(options: argparse.Namespace) -> int:
    from neuropareto.bench.results import write_results

    for path in write_results(_material(options), options.output, figures=not options.no_figures):
        print(path)
    return 0


def _compact(options: argparse.Namespace) -> int:
    from neuropareto.bench.record import compacted, write
    from neuropareto.bench.records import Records

    if options.source.resolve() == options.target.resolve():
        raise ValueError("Compact records go to another folder; the source is kept.")
    before = after = 0
    records = Records([options.source])
    for entry in records:
        path = options.target / entry.name
        write(compacted(entry.read()), path)
        before, after = before + entry.path.stat().st_size, after + path.stat().st_size
    print(
        f"{count(len(records), 'record')}: {before / 1e6:.1f} MB -> {after / 1e6:.1f} MB "
        f"in {options.target}"
    )
    return 0


def _list(names: dict[str, tuple[str, str]]) -> None:
    width = max(map(len, names))
    labels = max(len(label) for label, _ in names.values())
    for name, (label, about) in names.items():
        print(f"{name:<{width}}  {label:<{labels}}  {about}")


if __name__ == "__main__":
    sys.exit(main())
